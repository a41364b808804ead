//! Limits on one task: its log, its line of messages, its runner's time, its key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery::agents::BuiltIn;
use chancery::config::TaskLimits;
use chancery::{Finished, RunError, TaskRunner, TaskState, TaskUpdateSink, Turn};
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use super::{assert_refused, limited};
use crate::support::bare_service::BareService;
use crate::support::patience::soon;
use crate::support::server::Server;

const LIMIT_REACHED: i64 = -32042;
const NOT_CANCELABLE: i64 = -32002;

/// State and reason.
fn end(task: &Value) -> (&str, &str) {
    let status = &task["status"];
    (status["state"].as_str().unwrap_or_default(), status["message"]["parts"][0]["text"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_task_has_as_many_events_as_it_may_and_then_fails_with_that_reason() {
    let server = limited("task_events = 5");
    // The task itself is the first event. How it ended is always said, even past the limit.
    let within = server.send("steps 4").await;
    assert_eq!(end(&within["task"]).0, "TASK_STATE_COMPLETED", "{within}");
    let beyond = server.send("steps 5").await;
    let (state, reason) = end(&beyond["task"]);
    assert!(state == "TASK_STATE_FAILED" && reason.contains("limits.task_events = 5"), "{beyond}");
    let said = beyond["task"]["history"].as_array().unwrap().iter().filter(|message| message["role"] == "ROLE_AGENT").count();
    assert_eq!(said, 4, "what was said before is kept: {beyond}");

    let parked = server.send("ask a").await["task"]["id"].clone();
    let more = |text: &str| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "taskId": parked, "parts": [{ "text": text }] } });
    // Each round is two events: what the caller says and what the agent asks.
    let answer = server.call("SendMessage", more("ask b")).await;
    assert_eq!(end(&answer["result"]["task"]).0, "TASK_STATE_INPUT_REQUIRED", "{answer}");
    let answer = server.call("SendMessage", more("complete")).await;
    assert_eq!(end(&answer["result"]["task"]).0, "TASK_STATE_COMPLETED", "{answer}");
}

#[tokio::test]
async fn a_task_weighs_as_much_as_it_may_and_then_fails_with_that_reason() {
    let limit = 20_000;
    let server = limited(&format!("task_bytes = {limit}"));
    let completes = async |length: usize| {
        let sent = server.send(&format!("complete {}", "x".repeat(length))).await;
        let (state, reason) = end(&sent["task"]);
        let failed = state == "TASK_STATE_FAILED" && reason.contains(&format!("limits.task_bytes = {limit}"));
        assert!(state == "TASK_STATE_COMPLETED" || failed, "{state}: {reason}");
        !failed
    };
    let (mut passes, mut fails) = (0, limit);
    while passes + 1 < fails {
        let middle = (passes + fails) / 2;
        if completes(middle).await { passes = middle } else { fails = middle }
    }
    // The text is there twice, in the message and in the artifact; the rest is what surrounds it.
    assert!((limit - 2_000..=limit).contains(&(2 * passes)), "{passes} bytes of text passed");
}

/// Says a hundred things as fast as it can.
struct Hasty(Arc<AtomicU64>);

#[chancery::async_trait]
impl TaskRunner for Hasty {
    async fn run(&self, _turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        for _ in 0..100 {
            updates.working(None).await?;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(updates.complete(None))
    }
}

#[tokio::test]
async fn a_runner_far_ahead_of_the_store_waits_and_loses_nothing() {
    let said = Arc::new(AtomicU64::new(0));
    let limits = TaskLimits { task_updates_pending: 5, ..TaskLimits::default() };
    let bare_service = Arc::new(BareService::new(MemoryStore::new(), Arc::new(Hasty(said.clone())), limits));
    // Only the task itself gets through to the store for now.
    bare_service.store.close_gate();
    bare_service.store.admit(1);
    let sending = tokio::spawn({
        let bare_service = bare_service.clone();
        async move { bare_service.send("go").await }
    });
    soon("the runner has said what it may", async || (said.load(Ordering::SeqCst) == 5).then_some(())).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(said.load(Ordering::SeqCst), 5, "it waits for the store");
    bare_service.store.admit(1000);
    let task = sending.await.unwrap();
    assert_eq!((task.status.state, said.load(Ordering::SeqCst)), (TaskState::Completed, 100));
    let log = bare_service.chancery.operator_entries(task.id.as_str(), 0, 1000).await.unwrap();
    assert_eq!(log.len(), 102);
}

#[tokio::test]
async fn messages_wait_in_line_up_to_their_number_and_one_more_is_refused_whole() {
    let server = limited("task_messages_queued = 2");
    let send = async |task: Option<&Value>, text: &str| {
        let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
        if let Some(task) = task {
            message["taskId"] = task.clone();
        }
        server.call("SendMessage", json!({ "message": message, "configuration": { "returnImmediately": true } })).await
    };
    let started = send(None, "sleep 3600000").await;
    let id = &started["result"]["task"]["id"];
    for text in ["first in line", "second in line"] {
        let answer = send(Some(id), text).await;
        assert!(answer["result"]["task"].is_object(), "{answer}");
    }
    assert_refused(&send(Some(id), "too late").await, LIMIT_REACHED, "limits.task_messages_queued");
    let task = server.call("GetTask", json!({ "id": id })).await;
    assert!(task.to_string().contains("second in line"), "{task}");
    assert!(!task.to_string().contains("too late"), "a refused message is not part of the conversation: {task}");
}

async fn cancel_of(server: &Server, text: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let started = server.call("SendMessage", params).await;
    server.call("CancelTask", json!({ "id": started["result"]["task"]["id"] })).await
}

#[tokio::test]
async fn a_runner_that_does_not_stop_is_dropped_after_its_grace() {
    let strict = limited("cancel_grace_ms = 20");
    let answer = cancel_of(&strict, "stubborn 3600000").await;
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED", "{answer}");
    // With an hour of grace, a runner that wants to finish does, and the one that listens stops at once.
    let patient = limited("cancel_grace_ms = 3600000");
    let answer = cancel_of(&patient, "stubborn 300").await;
    assert_eq!(answer["error"]["code"], NOT_CANCELABLE, "{answer}");
    let answer = cancel_of(&patient, "sleep 3600000").await;
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED", "{answer}");
}

#[tokio::test]
async fn an_idempotency_key_is_known_up_to_its_last_moment() {
    let folder = tempfile::tempdir().unwrap();
    let limits = TaskLimits { idempotency_hours: 2, ..TaskLimits::default() };
    let sqlite = SqliteStore::open(folder.path().join("tasks.db"), SqliteOptions::default()).unwrap();
    let workshops = [
        BareService::new(MemoryStore::new(), BuiltIn::Echo.runner(), limits.clone()),
        BareService::new(sqlite, BuiltIn::Echo.runner(), limits),
    ];
    for bare_service in workshops {
        let mut context = BareService::context();
        context.idempotency_key = Some("once".into());
        let first = bare_service.send_with(&context, "hello", false).await.unwrap();
        bare_service.clock.move_on(2 * 3_600_000_000 - 1);
        assert_eq!(bare_service.send_with(&context, "hello", false).await.unwrap().id, first.id, "{:?}", bare_service.store);
        bare_service.clock.move_on(1);
        assert_ne!(bare_service.send_with(&context, "hello", false).await.unwrap().id, first.id, "{:?}", bare_service.store);
    }
}
