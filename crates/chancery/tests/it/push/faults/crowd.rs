//! F4: one origin has a crowd of registrations waiting for it and takes its time. Others are told meanwhile as if nothing were.
//! F14: a receiver is down while a task makes a long row of pieces. When it is back it gets a few requests, and the task as it is.

use std::time::Duration;

use serde_json::{Value, json};

use super::journal::all_lanes;
use crate::push::receiver::{Act, Receiver};
use crate::push::{lasting, send};
use crate::support::counts::full_counts;
use crate::support::patience::soon;
use crate::support::server::Home;

const NO_RATES: &str = "\n[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_at_one_origin_keeps_no_other_waiting() {
    let home = Home::new();
    let lines = "barrier_ms = 0\nhost_requests_per_second = 0\nconfigs_per_tenant = 20000\nexchange_ms = 600000\n";
    let server = lasting(&home, &format!("{lines}{NO_RATES}"));
    let crowded = Receiver::new(|_| Act::Slow(200, Duration::from_secs(300))).await;
    let crowd = full_counts(300, 10_000);
    for _ in 0..crowd {
        send(&server, "complete", json!({ "url": crowded.url("/") }), true).await;
    }
    crowded.has_got(1).await;
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(Receiver::kind().await);
    }
    let each = full_counts(10, 100);
    for number in 0..10 * each {
        send(&server, "complete", json!({ "url": others[number % 10].url("/") }), true).await;
    }
    for other in &others {
        other.has_taken(2 * each).await;
    }
    // The others were through while most of the crowd still waited: nobody stood in line behind it.
    let waiting = async || {
        let pending = |lane: &&Value| lane["origin"] == crowded.url("") && lane["pending"] != 0;
        all_lanes(&server).await.iter().filter(pending).count()
    };
    let left = waiting().await;
    println!("{left} of {crowd} wait, {} others were told", 20 * each);
    assert!(left > crowd / 2, "{left} of {crowd}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_long_row_of_pieces_a_receiver_gets_few_requests_and_the_task_as_it_is() {
    let pieces = full_counts(2_000, 1_000_000);
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(503)).await;
    let lines = "schedule_s = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nbarrier_ms = 0\nbacklog_bytes = 65536\n";
    let limits =
        "calls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\ntask_events = 1100000\ntask_bytes = 4294967296\n";
    let server = lasting(&home, &format!("{lines}[limits]\n{limits}"));
    let task = send(&server, &format!("stream {pieces}"), json!({ "url": receiver.url("/") }), true).await;
    receiver.has_got(1).await;
    let lane = async || all_lanes(&server).await.remove(0);
    // As long as it takes: a million pieces take longer than anything else here.
    let mut tail = 0;
    while tail < pieces as u64 + 2 {
        let before = tail;
        let grown = async || lane().await["tail"].as_u64().filter(|tail| *tail > before);
        tail = soon("the log grows", grown).await;
    }
    let id = task["id"].clone();
    // Whoever was on the way when the last piece came knows of fewer. The next one knows of all.
    let before = receiver.got().len();
    let refused = || receiver.got().iter().skip(before).any(|got| got.answered == Some(503));
    soon("it is tried once more, or given up", async || (refused() || lane().await["state"] != "active").then_some(())).await;
    if lane().await["state"] != "active" {
        // Nobody waited that long: an operator turns it on again.
        crate::push::admin(&server, &home.data(), "/enable", Some(json!({ "task": id }))).await;
    }
    let tried = receiver.got().len();
    receiver.now_does(|_| Act::Answer(200));
    soon("everything is told", async || (lane().await["pending"] == 0).then_some(())).await;
    let requests = receiver.got().len() - tried;
    let whole = server.call("GetTask", json!({ "id": id })).await["result"].take();
    let last = receiver.taken().pop().expect("the last is the task as it is");
    println!("{pieces} pieces, {requests} requests, the last of {} bytes", last.body.len());
    assert!(requests <= 5, "{requests}");
    let compacted = last.header("a2a-event-compacted");
    assert_eq!(compacted.split_once('-').map(|(_, to)| to), Some(&*tail.to_string()), "{compacted}");
    assert!(last.json()["task"] == whole, "what is told is what can be asked for");
}
