//! Limits on streams: how many at once, how far behind, how silent.

use chancery::agents::BuiltIn;
use chancery::config::TaskLimits;
use chancery_store::MemoryStore;
use serde_json::{Value, json};

use super::{assert_refused, limited};
use crate::support::bare_service::{BareService, all_events};
use crate::support::patience::soon;
use crate::support::server::Server;

const LIMIT_REACHED: i64 = -32042;

/// An open stream, or the refusal.
async fn open(server: &Server, method: &str, params: Value) -> Result<reqwest::Response, Value> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body).send().await.unwrap();
    if response.headers()["content-type"] == "text/event-stream" { Ok(response) } else { Err(response.json().await.unwrap()) }
}

async fn subscribe(server: &Server, id: &Value) -> Result<reqwest::Response, Value> {
    open(server, "SubscribeToTask", json!({ "id": id })).await
}

/// A task that waits for its caller, so that its streams stay open.
async fn parked(server: &Server) -> Value {
    let sent = server.send("ask what now?").await;
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{sent}");
    sent["task"]["id"].clone()
}

/// Two streams pass, a third does not, also not one that a message asks for; then one closes and there is a place.
async fn two_and_no_third(limit: &str, tasks: usize) {
    let server = limited(&format!("{limit} = 2"));
    let mut ids = Vec::new();
    for _ in 0..tasks {
        ids.push(parked(&server).await);
    }
    let mut ids_again = ids.iter().cycle();
    let mut next = || ids_again.next().expect("a cycle has no end");
    let first = subscribe(&server, next()).await.expect("one stream");
    let _second = subscribe(&server, next()).await.expect("two streams");
    let third = next();
    let named = format!("limits.{limit}");
    assert_refused(&subscribe(&server, third).await.expect_err("not three"), LIMIT_REACHED, &named);

    let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete it" }] });
    if tasks == 1 {
        message["taskId"] = third.clone();
    }
    let refused = open(&server, "SendStreamingMessage", json!({ "message": message })).await.expect_err("not three");
    assert_refused(&refused, LIMIT_REACHED, &named);
    let listed = server.call("ListTasks", json!({})).await;
    let unchanged = listed["result"]["tasks"].as_array().unwrap().iter().all(|task| {
        task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" && task["history"].as_array().map(Vec::len) == Some(1)
    });
    assert!(listed["result"]["totalSize"] == tasks && unchanged, "a refused message leaves nothing behind: {listed:#}");

    drop(first);
    soon("there is a place again", async || subscribe(&server, third).await.ok().map(drop)).await;
}

#[tokio::test]
async fn streams_of_one_caller_are_held_at_their_number() {
    two_and_no_third("streams_per_caller", 3).await;
}

#[tokio::test]
async fn streams_of_one_task_are_held_at_their_number() {
    two_and_no_third("streams_per_task", 1).await;
}

#[tokio::test]
async fn streams_of_a_node_are_held_at_their_number() {
    two_and_no_third("streams_per_node", 3).await;
}

#[tokio::test]
async fn an_idle_stream_says_that_it_is_still_there() {
    let server = limited("stream_heartbeat_ms = 20");
    let mut stream = subscribe(&server, &parked(&server).await).await.expect("a stream");
    let mut seen = String::new();
    while seen.matches("\n: still here").count() < 2 {
        seen.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().expect("the stream is open")));
    }
    assert_eq!(seen.matches("data: ").count(), 1, "a heartbeat is no event: {seen}");
}

#[tokio::test]
async fn a_listener_for_a_task_that_never_comes_is_told_so() {
    let listen = async |server: &Server, name: &str| {
        reqwest::get(format!("{}/tasks/sendSubscribe?id={name}", server.url())).await.unwrap().text().await.unwrap()
    };
    let hasty = limited("listen_ms = 50");
    let told = listen(&hasty, "nobody").await;
    assert!(told.contains("event: error") || told.contains("-32001"), "{told}");
    assert!(!told.contains("completed"), "{told}");

    // With time enough, what is sent later is heard.
    let patient = limited("listen_ms = 3600000");
    let heard = async {
        let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "complete it" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": { "id": "later", "message": message } });
        reqwest::Client::new().post(patient.url()).json(&body).send().await.unwrap().text().await.unwrap()
    };
    let (told, sent) = futures::join!(listen(&patient, "later"), heard);
    assert!(told.contains("completed"), "{told}; {sent}");
}

#[tokio::test]
async fn a_reader_further_behind_than_its_buffer_is_served_from_the_log() {
    let limits = TaskLimits { stream_buffer_events: 4, ..TaskLimits::default() };
    let bare_service = BareService::new(MemoryStore::new(), BuiltIn::Conformance.runner(), limits);
    // The task, two pieces and the end are what the buffer holds: all is done before the first event is read.
    let at_the_limit = all_events(bare_service.stream("stream 2").await).await;
    assert_eq!((at_the_limit.len(), bare_service.store.entries_read()), (4, 0));
    let beyond = all_events(bare_service.stream("stream 3").await).await;
    let numbers: Vec<u64> = beyond.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5], "nothing is lost");
    assert!(bare_service.store.entries_read() > 0, "it came from the log");
}

#[tokio::test]
async fn events_are_held_for_readers_up_to_their_bytes_and_the_log_serves_the_rest() {
    // The message, the task and the end weigh little; each of two pieces weighs a thousand bytes and what an entry counts for.
    let weight = async |limits: TaskLimits| {
        let bare_service = BareService::new(MemoryStore::new(), BuiltIn::Conformance.runner(), limits);
        let events = all_events(bare_service.stream("stream 2 0 1000").await).await;
        assert_eq!(events.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4], "nothing is lost");
        let bytes = events.iter().map(|entry| chancery_core::task_state::weight(&entry.event)).sum::<u64>();
        (bytes, bare_service.store.entries_read())
    };
    let (bytes, read) = weight(TaskLimits::default()).await;
    assert!(bytes > 2000 && read == 0, "{bytes} bytes, {read} entries from the log");
    // One task has a sixteenth of what all may have.
    let limited = |stream_buffer_bytes| TaskLimits { stream_buffer_bytes, ..TaskLimits::default() };
    assert_eq!(weight(limited(16 * bytes)).await, (bytes, 0));
    let (_, read) = weight(limited(16 * (bytes - 1))).await;
    assert!(read > 0, "it came from the log");
}
