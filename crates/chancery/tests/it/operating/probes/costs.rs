//! What things cost: a stream's events, memory per request, disk per request.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use serde_json::json;

use super::{Kept, serve};
use crate::support::counts::full_counts;
use crate::support::line::{Beside, Event, Line};
use crate::support::patience::soon;
use crate::support::server::{Home, Server};

/// Processor time so far, in ticks of the kernel.
pub(super) fn cpu_ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("the process is there");
    // The name in parentheses may hold anything; the fields are counted from behind it.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    [11, 12].map(|field: usize| fields[field].parse::<u64>().expect("a number")).iter().sum()
}

pub(super) fn resident_bytes(server: &Server) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the process is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse::<i64>().ok()).expect("a number") * 1024
}

fn bytes_on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |metadata| metadata.len())).sum()
}

#[tokio::test]
async fn the_cost_of_a_stream_grows_with_its_events_and_no_faster() {
    let few = full_counts(5_000, 20_000);
    let home = Home::new();
    let (server, line) = serve(&home, Kept::OnDisk, "");
    let cost = async |events: usize| {
        let before = cpu_ticks(&server);
        let seen = line.streaming_send(&format!("stream {events}")).await.all().await.unwrap();
        assert_eq!(seen.len(), events + 2);
        cpu_ticks(&server) - before
    };
    cost(few / 4).await;
    let (small, large) = (cost(few).await.max(1), cost(4 * few).await);
    println!("{few} events took {small} ticks, {} took {large}", 4 * few);
    // Four times as many events: linear is 4, quadratic is 16.
    assert!(large <= 8 * small + 10, "{few} events took {small} ticks, {} took {large}", 4 * few);
}

/// The write-ahead log is started anew at 64 MiB; the rest is far smaller.
const MOST_ON_DISK: u64 = 80 * 1024 * 1024;
const RETAINED: &str = "[retention]\nmax_tasks = 200\nmax_keys = 200\n";

/// Each of a kind, each with a key of its own: what could be kept of a request is there to be kept. Above `max_keys` the node
/// rejects new keys, and the request goes out again without one.
async fn requests(line: &Line, count: usize) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let sent = futures::stream::iter(0..count).map(async |_| {
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(5) {
            let events = line.streaming_send("stream 2").await.all().await.expect("the server is there");
            assert!(events.last().is_some_and(Event::ends_the_task), "{events:?}");
            return;
        }
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("complete {number}") }] });
        let key = format!("request-{number}");
        let params = json!({ "message": message });
        let mut done = line.call("SendMessage", &params, Beside::key(&key)).await.expect("the server is there");
        if done["error"]["data"][0]["metadata"]["limit"] == "max_keys" {
            done = line.call("SendMessage", &params, Beside::default()).await.expect("the server is there");
        }
        assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    });
    sent.buffer_unordered(16).collect::<Vec<_>>().await;
}

/// Memory is handed out in steps, so one round may take some; a leak takes it in every round.
async fn growth_per_request(server: &Server, line: &Line) -> i64 {
    let count = full_counts(1_500, 20_000);
    requests(line, count).await;
    let mut least = i64::MAX;
    for _ in 0..4 {
        let before = resident_bytes(server);
        requests(line, count).await;
        least = least.min((resident_bytes(server) - before) / count as i64);
    }
    least
}

#[tokio::test]
async fn memory_does_not_grow_with_requests_once_retention_is_reached() {
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let home = Home::new();
        let (server, line) = serve(&home, kept, RETAINED);
        let growth = growth_per_request(&server, &line).await;
        println!("{kept:?}: {growth} bytes a request");
        assert!(growth < 300, "{kept:?}: {growth} bytes a request stay");
    }
}

#[tokio::test]
async fn a_node_in_memory_deletes_the_oldest_ended_tasks_over_its_bytes() {
    let home = Home::new();
    let (_server, line) = serve(&home, Kept::InMemory, "[retention]\nmax_bytes = 1000000\n");
    let text = format!("complete {}", "x".repeat(100_000));
    let mut ids = Vec::new();
    for number in 0..30 {
        let message = json!({ "messageId": format!("m{number}"), "role": "ROLE_USER", "parts": [{ "text": text }] });
        let done =
            line.call("SendMessage", &json!({ "message": message }), Beside::default()).await.expect("the server is there");
        ids.push(done["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned());
    }
    // Each task has at least 100,000 bytes, so at most nine fit, and a sweep follows soon after the last.
    let kept = soon("the sweep", async || {
        let total = line.admin("/tasks?limit=1&total=true").await.unwrap()["total"].as_u64().unwrap();
        (total <= 9).then_some(total)
    });
    assert!(kept.await >= 1, "the bound leaves room for some");
    let newest = line.call("GetTask", &json!({ "id": ids[29] }), Beside::default()).await.unwrap();
    assert_eq!(newest["result"]["id"], ids[29], "{newest}");
    let oldest = line.call("GetTask", &json!({ "id": ids[0] }), Beside::default()).await.unwrap();
    assert!(oldest["error"].is_object(), "{oldest}");
}

#[tokio::test]
async fn disk_does_not_grow_with_requests_once_retention_is_reached() {
    let count = full_counts(1_000, 20_000);
    let home = Home::new();
    let mut sizes = Vec::new();
    for round in [1, 3] {
        // The record is not tasks, and is kept by rules of its own.
        let (server, line) = serve(&home, Kept::OnDisk, &format!("{RETAINED}\n[evidence]\nrecord = false\n"));
        requests(&line, round * count).await;
        let listed = line.admin("/tasks?limit=1&total=true").await.unwrap()["total"].as_u64().unwrap();
        assert!(listed < 500, "retention keeps to its number: {listed}");
        let open = bytes_on_disk(&home.data());
        assert!(open < MOST_ON_DISK, "{open} bytes while it runs");
        server.terminate();
        sizes.push(bytes_on_disk(&home.data()));
    }
    println!("{sizes:?} bytes after {count} and {} requests", 4 * count);
    assert!(sizes[1] <= sizes[0] + sizes[0] / 4 + 64 * 1024, "{sizes:?}");
}
