//! Receivers that fail: one that flaps (F3), many that hang (F4), and one that comes back to a long backlog (F14).

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::receiver::{Act, Got, Receiver};
use super::{lasting, send};
use crate::support::counts::full_counts;
use crate::support::patience::soon;
use crate::support::server::Home;

/// A small generator, so that a seed tells the whole story.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// By path, in the order they came.
fn by_path(all: &[Got]) -> BTreeMap<&str, Vec<&Got>> {
    let mut sorted: BTreeMap<&str, Vec<&Got>> = BTreeMap::new();
    for got in all {
        sorted.entry(&got.path).or_default().push(got);
    }
    sorted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_flaps_gets_everything_in_order() {
    let seed = std::process::id().into();
    println!("seed {seed}");
    let mut chance = Chance(seed);
    // Five faults in a row would be an origin that is down, which is left alone for half a minute and more.
    let mut in_a_row = 0;
    let receiver = Receiver::new(move |_| {
        let act = match chance.below(100) {
            _ if in_a_row >= 2 => Act::Answer(200),
            0..30 => Act::Answer(503),
            30..40 => Act::BreakOff,
            40..45 => Act::Hang,
            45..50 => Act::With(429, vec![("retry-after", "1".to_owned())]),
            _ => Act::Answer(200),
        };
        in_a_row = if matches!(act, Act::Answer(200)) { 0 } else { in_a_row + 1 };
        act
    })
    .await;
    let home = Home::new();
    let quick = "schedule_s = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nexchange_ms = 3000\nbarrier_ms = 0\n\
                 host_requests_per_second = 0";
    let server = lasting(&home, quick);
    let tasks = full_counts(6, 200);
    for number in 0..tasks {
        send(&server, "stream 3", json!({ "url": receiver.url(&format!("/{number}")) }), true).await;
    }
    let ended = |got: &&Got| got.answered == Some(200) && got.json()["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED";
    let count_ended = || by_path(&receiver.got()).values().filter(|all| all.iter().any(ended)).count();
    let mut told = 0;
    while told < tasks {
        // Hundreds take longer than one of them may.
        let before = told;
        told = soon("one more task's end arrives", async || Some(count_ended()).filter(|told| *told > before)).await;
    }
    let got = receiver.got();
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    for (path, all) in by_path(&got) {
        let mut next = 1;
        for one in all {
            let body = bodies.entry(one.header("webhook-id").to_owned()).or_insert_with(|| one.body.to_vec());
            assert_eq!(*body, one.body, "seed {seed}: two bodies under one id");
            assert!(one.seq() <= next, "seed {seed}: {path} got {} before {next}", one.seq());
            if one.answered.is_some_and(|status| status == 200) {
                next = next.max(one.seq() + 1);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_hang_keep_no_other_waiting() {
    let home = Home::new();
    let server = lasting(&home, "barrier_ms = 0\nhost_requests_per_second = 0\nexchange_ms = 600000");
    let mut hanging = Vec::new();
    for _ in 0..full_counts(10, 50) {
        hanging.push(Receiver::new(|_| Act::Hang).await);
    }
    let healthy = Receiver::kind().await;
    for receiver in &hanging {
        for _ in 0..10 {
            send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
        }
    }
    for receiver in &hanging {
        receiver.has_got(1).await;
    }
    let tasks = full_counts(50, 950);
    for _ in 0..tasks {
        send(&server, "complete", json!({ "url": healthy.url("/") }), true).await;
    }
    healthy.has_taken(2 * tasks).await;
    // The healthy ones were done before any exchange that hangs had ended: none was tried again.
    assert!(hanging.iter().all(|receiver| receiver.got().iter().all(|got| got.attempt() == 1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_comes_back_gets_one_picture_instead_of_a_long_past() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(503)).await;
    let server = lasting(&home, "schedule_s = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nbarrier_ms = 0\nbacklog_events = 20");
    let task = send(&server, "steps 60", json!({ "url": receiver.url("/") }), true).await;
    let get = async || server.call("GetTask", json!({ "id": task["id"] })).await["result"].take();
    let ended = async || Some(get().await).filter(|task: &Value| task["status"]["state"] == "TASK_STATE_COMPLETED");
    let whole = soon("the task ends", ended).await;
    receiver.has_got(1).await;
    receiver.now_does(|_| Act::Answer(200));
    let picture = async || receiver.taken().into_iter().find(|got| !got.header("a2a-event-compacted").is_empty());
    let got = soon("a picture of the whole arrives", picture).await;
    assert_eq!(got.json()["task"], whole, "what is told is what can be asked for");
    assert!(receiver.taken().len() <= 22, "{} instead of more than 60", receiver.taken().len());
    assert!(got.header("webhook-id").ends_with("-s"));
}
