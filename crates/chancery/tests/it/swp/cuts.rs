//! Lines to SWP peers that are cut, that nobody answers for a while, and that nothing comes over because there is no news.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chancery_wire::swp::codec::a2a;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};

use super::Peer;
use super::chain::{node, texts};
use crate::support::line::{Event, Events, Line};
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::swp::address;

fn last(limits: &str) -> Server {
    Setup::conformance().config(&format!("[swp]\nlisten = '127.0.0.1:0'\n[limits]\n{limits}\n")).start()
}

/// A node whose card names the cutter before it.
async fn behind_a_cutter() -> (Server, Cutter, Server) {
    let listen = lasting_address();
    let cutter = Cutter::before(listen).await;
    let config = format!("[swp]\nlisten = '{listen}'\npublic_url = 'swp://{}'\n", cutter.address);
    let last = Setup::conformance().config(&config).start();
    let (authority, agent) = address(last.url()).await;
    assert_eq!(authority, cutter.address.to_string());
    let first = front(&authority, &agent, "");
    (last, cutter, first)
}

fn front(peer: &str, agent: &str, more: &str) -> Server {
    node(&Home::new(), lasting_address(), &format!("{more}[agents.front]\nurl = 'swp://{peer}/{agent}'\n"))
}

async fn tasks(node: &Server) -> usize {
    node.call("ListTasks", json!({})).await["result"]["tasks"].as_array().expect("a list").len()
}

/// A task of twenty pieces of which the first are there.
async fn three_of_twenty(node: &Server) -> (Events, Vec<Event>) {
    let mut events = Line::to(node.url(), "").streaming_send("stream 20 400").await;
    let mut seen = Vec::new();
    while texts(&seen).len() < 3 {
        seen.push(events.next().await.expect("an event").expect("more"));
    }
    (events, seen)
}

/// The task is sent again, is the same, and the rest of it is heard once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_line_is_taken_up_again_without_a_second_execution() {
    let (last, cutter, first) = behind_a_cutter().await;
    let (events, mut seen) = three_of_twenty(&first).await;
    let passed = cutter.passed.load(Ordering::Relaxed);
    cutter.cut();
    seen.extend(events.all().await.expect("to its end"));
    let expected: Vec<String> = (1..=20).map(|number| format!("chunk-{number} ")).collect();
    assert_eq!(texts(&seen), expected, "{}", first.log());
    assert!(cutter.passed.load(Ordering::Relaxed) > passed, "it was cut");
    assert_eq!(tasks(&last).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_nobody_answers_for_is_looked_for_until_it_is_back() {
    let (last, cutter, first) = behind_a_cutter().await;
    let (events, mut seen) = three_of_twenty(&first).await;
    cutter.set(false);
    soon("the first tries were in vain", async || first.log().contains("the stream of an agent broke off").then_some(())).await;
    cutter.set(true);
    seen.extend(events.all().await.expect("to its end"));
    let expected: Vec<String> = (1..=20).map(|number| format!("chunk-{number} ")).collect();
    assert_eq!(texts(&seen), expected, "{}", first.log());
    assert!(seen.last().expect("an end").ends_the_task());
    assert_eq!(tasks(&last).await, 1);
}

/// What it says again is no news, and starts no count anew by which somebody pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_cut_off_at_its_first_word_is_dialled_ever_more_seldom() {
    let (last, cutter, first) = behind_a_cutter().await;
    cutter.breaks_off.store(true, Ordering::Relaxed);
    let mut events = Line::to(first.url(), "").streaming_send("sleep 4000").await;
    let mut seen = vec![events.next().await.expect("an event").expect("more")];
    soon("the peer is done", async || completed(&last).await.then_some(())).await;
    let dialled = cutter.passed.load(Ordering::Relaxed);
    assert!(dialled < 40, "{dialled} times in four seconds");
    cutter.breaks_off.store(false, Ordering::Relaxed);
    seen.extend(events.all().await.expect("to its end"));
    assert!(seen.last().expect("an end").ends_the_task());
    assert_eq!(tasks(&last).await, 1);
}

async fn completed(node: &Server) -> bool {
    let tasks = node.call("ListTasks", json!({})).await["result"]["tasks"].take();
    tasks[0]["status"]["state"] == "TASK_STATE_COMPLETED"
}

/// It never says that it is still there, so that it is asked: often, because every answer starts the count anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_has_nothing_to_say_is_asked_again_for_as_long_as_it_answers() {
    let last = last("stream_heartbeat_ms = 600000");
    let (authority, agent) = address(last.url()).await;
    let first = front(&authority, &agent, "[peers]\nread_ms = 300\n");
    let answer = first.send("sleep 3000").await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}\n{}", first.log());
    assert_eq!(tasks(&last).await, 1);
}

/// A message that goes on with a task cannot be sent again; a peer that is a node says meanwhile that it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_nothing_to_say_says_that_it_is_still_there() {
    let last = last("stream_heartbeat_ms = 50");
    let (authority, agent) = address(last.url()).await;
    let first = front(&authority, &agent, "[peers]\nread_ms = 4000\n");
    let line = Line::to(first.url(), "");
    let asked = line.send("ask how long?").await;
    let answered = line.follow_up(&asked["task"]["id"], "sleep 9000").await;
    assert_eq!(answered["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answered}\n{}", first.log());

    let mut peer = Peer::of(&last).await;
    peer.tell("t", "sleep 600000", None).await;
    while !matches!(peer.report().await, a2a::A2aMessage::Handshake(_)) {}
}

/// Passes octets on until it is told to cut every connection there is, or to be gone for a while.
struct Cutter {
    address: SocketAddr,
    cut: broadcast::Sender<()>,
    is_there: watch::Sender<bool>,
    /// Connections so far.
    passed: Arc<AtomicUsize>,
    /// Every connection is over once something has come back on it.
    breaks_off: Arc<AtomicBool>,
}

impl Cutter {
    async fn before(target: SocketAddr) -> Self {
        let address = lasting_address();
        let mut listener = Some(TcpListener::bind(address).await.expect("nobody else is told of it"));
        let (cut, is_there) = (broadcast::Sender::new(1), watch::Sender::new(true));
        let passed = Arc::new(AtomicUsize::new(0));
        let (cuts, mut there, count) = (cut.clone(), is_there.subscribe(), Arc::clone(&passed));
        let breaks_off = Arc::<AtomicBool>::default();
        let breaks = Arc::clone(&breaks_off);
        tokio::spawn(async move {
            while let Some(open) = listener.take() {
                loop {
                    tokio::select! {
                        _ = there.wait_for(|there| !there) => break,
                        Ok((near, _)) = open.accept() => {
                            count.fetch_add(1, Ordering::Relaxed);
                            match breaks.load(Ordering::Relaxed) {
                                true => tokio::spawn(break_off(near, target)),
                                false => tokio::spawn(pass_on(near, target, cuts.subscribe())),
                            };
                        }
                    }
                }
                // In this order, so that nobody gets in who comes back at once.
                drop(open);
                let _ = cuts.send(());
                if there.wait_for(|there| *there).await.is_ok() {
                    listener = TcpListener::bind(address).await.ok();
                }
            }
        });
        Self { address, cut, is_there, passed, breaks_off }
    }

    fn cut(&self) {
        let _ = self.cut.send(());
    }

    fn set(&self, is_there: bool) {
        self.is_there.send_replace(is_there);
    }
}

/// Passes one word back and no more.
async fn break_off(mut near: TcpStream, target: SocketAddr) {
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    let ((mut said, mut heard), (mut answered, mut asked)) = (near.split(), far.split());
    let mut word = [0; 64 * 1024];
    let length = tokio::select! {
        _ = tokio::io::copy(&mut said, &mut asked) => return,
        Ok(length) = answered.read(&mut word) => length,
    };
    let _ = heard.write_all(&word[..length]).await;
}

async fn pass_on(mut near: TcpStream, target: SocketAddr, mut cut: broadcast::Receiver<()>) {
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _ = cut.recv() => {}
    }
}
