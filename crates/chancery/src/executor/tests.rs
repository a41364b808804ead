//! An executor's tasks are those of its node: under its rules, in its store and trees, to be watched and cancelled.

use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Finished, NextEvents, RunError, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{GetTask, Part, Role, TaskEvent};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::*;
use crate::agents::{BuiltIn, new_card};
use crate::config::AgentConfig;
use crate::{Config, NodeBuilder};

fn message(text: &str) -> Message {
    Message::of_parts(Role::User, "m", vec![Part::text(text)])
}

fn conformance() -> NodeBuilder {
    let agent = BuiltIn::Conformance;
    Node::builder().shared_agent("here", agent.card(), agent.runner())
}

/// The test of the ADR: a local and a remote agent end the same task in the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_agent_gives_what_a_local_one_gives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let back = conformance().public_url(&url).build().await.unwrap();
    let stop = CancellationToken::new();
    let until = stop.clone();
    chancery_core::spawn_watched("test", async move { back.serve(listener, until).await });

    let node = conformance().remote_agent("there", AgentConfig::at(&url)).build().await.unwrap();
    let (here, there) = (node.executor("here"), node.executor("there"));
    for text in ["complete", "hello there", "stream 3 1"] {
        let parts = |artifacts: Vec<Arc<Artifact>>| artifacts.iter().map(|one| one.parts.clone()).collect::<Vec<_>>();
        let local = parts(here.run(message(text), None).await.unwrap());
        let remote = parts(there.run(message(text), None).await.unwrap());
        assert_eq!(local, remote, "{text}");
    }
    for text in ["fail out of ink", "reject not today", "ask which one?"] {
        let (local, remote) = (here.run(message(text), None).await, there.run(message(text), None).await);
        assert_eq!(local.unwrap_err(), remote.unwrap_err(), "{text}");
    }
    stop.cancel();
}

#[tokio::test]
async fn the_rules_of_the_node_bound_an_executor() {
    let config = "[agents.here]\nrun = 'conformance'\nprice = { per_call_usd = '0.02' }\n\
        [budget.agent.here]\nmax_usd = '0.03'\nwindow = '1h'\n";
    let node = conformance().config(Config::parse(config).unwrap()).build().await.unwrap();
    let executor = node.executor("here");
    executor.run(message("complete"), None).await.unwrap();
    let error = executor.run(message("complete"), None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{error}");
}

#[tokio::test]
async fn a_task_of_an_executor_is_in_the_store_of_the_node_and_belongs_to_its_caller() {
    let node = conformance().build().await.unwrap();
    let ada = Caller::new("default", "ada");
    let executor = node.executor("here").with_caller(ada);
    let task = executor.run_task(message("complete"), None).await.unwrap();
    let get = |executor: &Executor| {
        let (chancery, context) = (node.chancery().clone(), executor.new_context());
        let get = Request::GetTask(GetTask { tenant: None, id: task.id.clone(), history_length: None });
        async move { chancery.call(&context, get).await }
    };
    let found = get(&executor).await.unwrap();
    assert!(matches!(found, Answer::Reply(Reply::Task(named)) if named.task.status == task.status));
    let foreign = get(&node.executor("here")).await.unwrap_err();
    assert_eq!(foreign.kind, ErrorKind::TaskNotFound);
    assert_eq!(node.executor("nobody").run(message("x"), None).await.unwrap_err().kind, ErrorKind::MethodNotFound);
}

#[tokio::test]
async fn events_come_as_they_are_made_and_the_task_can_be_cancelled_meanwhile() {
    let node = conformance().build().await.unwrap();
    let executor = node.executor("here");
    let mut events = executor.stream(message("sleep 600000"), None).await.unwrap();
    let id = events.task_id().clone();
    let NextEvents::Events(first) = events.next().await.unwrap() else { panic!("no event") };
    assert!(matches!(first[0].event, TaskEvent::Created(_)));
    assert_eq!(executor.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
    let mut last = None;
    while let NextEvents::Events(more) = events.next().await.unwrap() {
        last = more.last().cloned().or(last);
    }
    assert!(matches!(&last.unwrap().event, TaskEvent::Status(change) if change.status.state == TaskState::Canceled));
}

/// Says that it began, and works until it is cancelled.
struct Waits(Arc<Notify>);

#[async_trait]
impl TaskRunner for Waits {
    async fn run(&self, turn: Turn, _: TaskUpdateSink) -> Result<Finished, RunError> {
        self.0.notify_one();
        turn.cancelled.cancelled().await;
        Err(RunError::new("stopped"))
    }
}

#[tokio::test]
async fn run_until_ends_with_the_task_or_with_its_cancellation() {
    let started = Arc::new(Notify::new());
    let node = conformance().subagent("waits", new_card("Waits", "Waits."), Waits(Arc::clone(&started)));
    let node = node.build().await.unwrap();
    let (executor, cancelled) = (node.executor("here"), CancellationToken::new());
    let done = executor.run_until(message("complete"), None, &cancelled).await.unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
    let (waits, started) = (node.executor("waits"), started.notified());
    let slow = waits.run_until(message("x"), None, &cancelled);
    let (slow, ()) = tokio::join!(slow, async {
        started.await;
        cancelled.cancel();
    });
    assert_eq!(slow.unwrap().status.state, TaskState::Canceled);
}

/// Passes its message on to `here`.
struct Passing;

#[async_trait]
impl TaskRunner for Passing {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let executor = Executor::for_task(&turn.delegation, "here").map_err(RunError::refused)?;
        let child = message(turn.message.first_text().unwrap_or_default());
        let task = executor.run_until(child, None, &turn.cancelled).await.map_err(|error| RunError::new(error.to_string()))?;
        Ok(updates.complete(Some(message(task.id.as_str()))))
    }
}

#[tokio::test]
async fn a_task_that_an_executor_makes_for_another_is_its_child() {
    let node = conformance().subagent("passing", new_card("Passing", "Passes it on."), Passing).build().await.unwrap();
    let parent = node.executor("passing").run_task(message("complete"), None).await.unwrap();
    let child = parent.status.message.as_ref().and_then(|message| message.first_text()).unwrap();
    let trees = node.chancery().trees(parent.id.as_str()).await.unwrap();
    let lines: Vec<_> = trees[0].tasks.iter().map(|task| (task.task.as_str(), &*task.agent)).collect();
    assert_eq!(lines, [(parent.id.as_str(), "passing"), (child, "here")]);
    node.shut_down(Duration::from_secs(60)).await.unwrap();
}
