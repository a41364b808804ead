//! Streams of a large task that nobody reads, over every transport, on a node that has 1 GiB.

use chancery_wire::pb::v1::proto::SubscribeToTaskRequest;
use prost::Message as _;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::{Bounded, READER, windowless};
use crate::support::patience::soon;
use crate::support::wire_client::swp::address;
use crate::swp::telling;

/// Room for two hundred streams of one task. Nobody is given up before the test has looked.
const LIMITS: &str = "streams_per_caller = 300\nstreams_per_task = 300\nwrite_stall_ms = 600000";

/// A hundred pieces of 300 kB.
const THIRTY_MEGABYTES: &str = "stream 100 0 300000";

/// Streams that are open and not read.
#[derive(Default)]
struct Unread {
    lines: Vec<TcpStream>,
    heads: Vec<Response>,
    slim: Vec<TcpStream>,
}

impl Unread {
    /// Fifty over each of HTTP/1.1, HTTP/2 and gRPC. With `from_start` they are sent every event, else the task first.
    async fn open(&mut self, node: &Bounded, task: &str, from_start: bool) {
        let (params, header) = (json!({ "id": task }), if from_start { "Last-Event-ID: 0\r\n" } else { "" });
        let client = windowless();
        for _ in 0..50 {
            self.lines.push(node.unread_call("SubscribeToTask", &params, header).await);
            let mut request = node.request(&client, READER, "SubscribeToTask", &params);
            let message = SubscribeToTaskRequest { tenant: String::new(), id: task.to_owned() }.encode_to_vec();
            let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
            let mut grpc = client.post(format!("{}/lf.a2a.v1.A2AService/SubscribeToTask", node.server.url()));
            grpc =
                grpc.header("content-type", "application/grpc").header("te", "trailers").header("X-API-Key", READER).body(framed);
            if from_start {
                (request, grpc) = (request.header("Last-Event-ID", "0"), grpc.header("Last-Event-ID", "0"));
            }
            for request in [request, grpc] {
                let head = request.send().await.expect("a head");
                assert_eq!(head.status(), 200, "{head:?}");
                self.heads.push(head);
            }
        }
        for line in &mut self.lines {
            let mut seen = [0; 15];
            line.read_exact(&mut seen).await.expect("a head");
            assert_eq!(&seen, b"HTTP/1.1 200 OK");
        }
    }

    async fn closed(self, node: &Bounded, before: u64) {
        drop(self);
        soon("the memory is back", async || (node.resident() <= before + 48).then_some(())).await;
    }
}

/// The memory when it grows no more: three looks in a row have seen the same, within a megabyte.
async fn settled(node: &Bounded) -> u64 {
    let mut seen = Vec::new();
    soon("the memory grows no more", async || {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        seen.push(node.resident());
        let last = seen.last_chunk::<3>()?;
        (last.iter().max()?.abs_diff(*last.iter().min()?) <= 1).then_some(last[2])
    })
    .await
}

async fn made(node: &Bounded, text: &str) -> String {
    let task = node.send(READER, text).await;
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

#[tokio::test]
async fn unread_streams_of_all_events_add_little() {
    let node = Bounded::with(LIMITS);
    let task = made(&node, THIRTY_MEGABYTES).await;
    let before = settled(&node).await;
    let mut unread = Unread::default();
    unread.open(&node, &task, true).await;
    let added = settled(&node).await.saturating_sub(before);
    assert!(added < 64, "150 streams of all events add {added} MB");
    node.answers_others().await;
    unread.closed(&node, before).await;
}

#[tokio::test]
async fn unread_streams_that_open_with_the_task_add_little() {
    let node = Bounded::with(LIMITS);
    let mut task = Value::Null;
    for turn in 0..16 {
        let text = format!("ask {}", "x".repeat(950_000));
        let mut message = json!({ "messageId": turn.to_string(), "role": "ROLE_USER", "parts": [{ "text": text }] });
        if turn > 0 {
            message["taskId"] = task["id"].clone();
        }
        task = node.call(READER, "SendMessage", &json!({ "message": message })).await["result"]["task"].take();
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
    let before = settled(&node).await;
    let mut unread = Unread::default();
    unread.open(&node, task["id"].as_str().expect("a task"), false).await;
    let added = settled(&node).await.saturating_sub(before);
    // The task, which nobody had in memory before, and its bytes once; not once for each stream.
    assert!(added < 128, "150 streams that open with the task add {added} MB");
    node.answers_others().await;
    unread.closed(&node, before).await;
}

#[tokio::test]
async fn unread_streams_of_many_large_tasks_do_not_hold_the_tasks() {
    let node = Bounded::with(LIMITS);
    let mut tasks = Vec::new();
    for number in 0..12 {
        let mut task = Value::Null;
        for turn in 0..2 {
            let text = format!("ask {}", "x".repeat(3_800_000));
            let id = format!("{number} {turn}");
            let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
            if turn > 0 {
                message["taskId"] = task["id"].clone();
            }
            task = node.call(READER, "SendMessage", &json!({ "message": message })).await["result"]["task"].take();
            assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        }
        tasks.push(task["id"].take());
    }
    let before = settled(&node).await;
    let mut lines = Vec::new();
    for task in &tasks {
        let mut line = node.unread_call("SubscribeToTask", &json!({ "id": task }), "").await;
        let mut seen = [0; 15];
        line.read_exact(&mut seen).await.expect("a head");
        assert_eq!(&seen, b"HTTP/1.1 200 OK");
        lines.push(line);
    }
    let added = settled(&node).await.saturating_sub(before);
    println!("12 unread streams of tasks of 15 MB each add {added} MB");
    assert!(added < 128, "12 unread streams of tasks of 15 MB each add {added} MB");
    node.answers_others().await;
    drop(lines);
    soon("the memory is back", async || (node.resident() <= before + 48).then_some(())).await;
}

/// A node that speaks the slim wire. That has no key for its callers without TLS, so that the node is open.
async fn slim_node() -> (Bounded, String) {
    let node = Bounded::of(&format!("[swp]\nlisten = '127.0.0.1:0'\n[limits]\n{LIMITS}\n"));
    let (authority, _) = address(node.server.url()).await;
    (node, authority)
}

/// A connection of the slim wire that gives the node one task, the same as all others do, and reads nothing.
async fn slim(authority: &str) -> TcpStream {
    let small = TcpSocket::new_v4().expect("a socket");
    small.set_recv_buffer_size(4096).expect("a small buffer");
    let mut line = small.connect(authority.parse().expect("an address")).await.expect("the node listens");
    line.write_all(&telling("big", THIRTY_MEGABYTES)).await.expect("the node takes it");
    line
}

/// The id of the only task, once it has ended.
async fn ended(node: &Bounded) -> String {
    soon("the task has ended", async || {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let listed = node.server.call("ListTasks", json!({})).await;
        let tasks = listed["result"]["tasks"].as_array()?;
        assert!(tasks.len() <= 1, "one task, however many hear of it");
        let task = tasks.first().filter(|task| task["status"]["state"] == "TASK_STATE_COMPLETED")?;
        task["id"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn unread_connections_of_the_slim_wire_add_little_while_the_task_grows() {
    let (node, authority) = slim_node().await;
    let before = settled(&node).await;
    let mut lines = Vec::new();
    for _ in 0..50 {
        lines.push(slim(&authority).await);
    }
    ended(&node).await;
    let added = settled(&node).await.saturating_sub(before);
    // The task itself, its latest events once for all who listen, and a frame for each connection; not the task for each of them.
    assert!(added < 128, "a task of 30 MB and 50 connections that hear of it add {added} MB");
    drop(lines);
}

#[tokio::test]
async fn two_hundred_unread_streams_over_every_transport_add_little_together() {
    let (node, authority) = slim_node().await;
    let mut unread = Unread::default();
    let maker = slim(&authority).await;
    let task = ended(&node).await;
    let before = settled(&node).await;
    for _ in 0..50 {
        unread.slim.push(slim(&authority).await);
    }
    unread.open(&node, &task, true).await;
    let added = settled(&node).await.saturating_sub(before);
    assert!(added < 64, "200 streams of a task of 30 MB add {added} MB");
    drop(maker);
    unread.closed(&node, before).await;
}
