//! The limits on waiting: for room in a budget, and for tasks below a cancelled one.

use std::sync::Arc;
use std::time::Duration;

use chancery::agents::BuiltIn;
use chancery::config::Config;
use chancery::protocol::{Message, Part, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Unknown};
use chancery::{Finished, Node, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait};
use chancery_core::{Answer, CascadeOutcome};
use serde_json::json;

use super::limited;
use crate::support::bare_service::BareService;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_its_budget_as_long_as_it_may_and_no_longer() {
    let budget = "[budget.global]\nmax_tasks_per_minute = 1\noverflow = { queue = { max_queue_depth = 1 } }";
    let short = limited(&format!("budget_wait_ms = 50\n{budget}"));
    short.send("complete").await;
    let refused = short.call("SendMessage", message()).await;
    assert_eq!(refused["error"]["code"], -32050, "{refused}");
    assert!(refused.to_string().contains("global window=1m of=tasks limit=1"), "{refused}");

    let long = limited(&format!("budget_wait_ms = 600000\n{budget}"));
    long.send("complete").await;
    let waiting = tokio::time::timeout(Duration::from_millis(500), long.call("SendMessage", message())).await;
    assert!(waiting.is_err(), "it waits, and so does not answer: {waiting:?}");
}

fn message() -> serde_json::Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete" }] } })
}

struct Boss;

#[async_trait]
impl TaskRunner for Boss {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let message = Message::of_parts(Role::User, "m", vec![Part::text("work")]);
        tokio::select! {
            _ = turn.delegation.call("stubborn", message) => turn.cancelled.cancelled().await,
            () = turn.cancelled.cancelled() => {}
        }
        Ok(updates.canceled())
    }
}

struct Stubborn;

#[async_trait]
impl TaskRunner for Stubborn {
    async fn run(&self, _: Turn, _updates: TaskUpdateSink) -> Result<Finished, RunError> {
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_does_not_end_in_time_is_left_behind_by_the_cascade() {
    for (cascade_ms, expected) in [(100, CascadeOutcome::Unreachable), (600_000, CascadeOutcome::Cancelled)] {
        // Without grace the stubborn one is dropped at once, so that only the first case has to wait.
        let grace = if cascade_ms == 100 { 600_000 } else { 0 };
        let config = Config::parse(&format!("[limits]\ncascade_ms = {cascade_ms}\ncancel_grace_ms = {grace}\n")).unwrap();
        let card = BuiltIn::Echo.card();
        let node = Node::builder().config(config).agent("boss", card.clone(), Boss).agent("stubborn", card, Stubborn);
        let node = node.build().await.unwrap();
        let plane = node.chancery();
        let message = Arc::new(Message::of_parts(Role::User, "m", vec![Part::text("go")]));
        let configuration = SendConfiguration { return_immediately: true, ..SendConfiguration::default() };
        let send =
            SendMessage { tenant: None, message, configuration, metadata: None, client_task_id: None, unknown: Unknown::none() };
        let answer = plane.call(&BareService::context(), Request::SendMessage(send)).await.unwrap();
        let Answer::Reply(Reply::Sent(Sent::Task(root))) = answer else { panic!("{answer:?}") };
        let mut tree = plane.trees(root.task.id.as_str()).await.unwrap();
        while tree.first().is_none_or(|tree| tree.tasks.len() < 2) {
            tokio::task::yield_now().await;
            tree = plane.trees(root.task.id.as_str()).await.unwrap();
        }
        let cascaded = plane.cancel_tree(&root.task.id).await;
        let outcomes: Vec<_> = cascaded.iter().map(|left| (&*left.agent, left.outcome)).collect();
        assert_eq!(outcomes, [("stubborn", expected), ("boss", CascadeOutcome::Cancelled)], "{cascade_ms}: {cascaded:?}");
    }
}
