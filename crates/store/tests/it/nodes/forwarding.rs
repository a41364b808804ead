//! Messages and cancels for a task of another node.

use std::time::Duration;

use chancery_core::ListFilter;
use chancery_protocol::{ErrorKind, TaskState};

use super::cluster::{TestCluster, assert_whole, read};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_for_its_caller_goes_on_at_whichever_node_is_called() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let asked = a.send("local", "ask 1", None).await.unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let at_a = a.subscribe("local", &asked.id, Some(0)).await.unwrap();
    let again = b.send("local", "ask 2", Some(&asked.id)).await.unwrap();
    assert_eq!(again.status.state, TaskState::InputRequired);
    let again = a.send("local", "ask 3", Some(&asked.id)).await.unwrap();
    assert_eq!(again.status.state, TaskState::InputRequired);
    let done = b.send("local", "work 5 4", Some(&asked.id)).await.unwrap();
    assert_eq!((done.status.state, done.artifacts.len()), (TaskState::Completed, 5));
    let said = done.history.iter().filter_map(|message| message.first_text()).collect::<Vec<_>>();
    for text in ["ask 1", "ask 2", "ask 3", "work 5 4"] {
        assert_eq!(said.iter().filter(|said| **said == text).count(), 1, "{said:?}");
    }
    let numbers = read(at_a, usize::MAX).await;
    assert_whole(&numbers, 1);
    assert_eq!(numbers.len(), 16, "a stream at A sees what A and B recorded: {numbers:?}");
    let late = a.send("local", "work 1 5", Some(&asked.id)).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::UnsupportedOperation);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_for_a_task_that_another_node_works_on_waits_in_line_there() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let asked = a.send("local", "ask first", None).await.unwrap();
    let id = asked.id.clone();
    let held = tokio::spawn(async move {
        let held = a.send("local", "hold 1 x", Some(&asked.id)).await;
        (a, held)
    });
    b.until("local", &id, TaskState::InputRequired).await;
    while cluster.oracle.turns_of("hold 1 x").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let owned = id.clone();
    let follow_up = tokio::spawn(async move {
        let done = b.send("local", "work 2 y", Some(&owned)).await;
        (b, done)
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    cluster.oracle.open_gate();
    let (a, held) = held.await.unwrap();
    assert_eq!(held.unwrap().status.state, TaskState::Completed);
    let (_b, late) = follow_up.await.unwrap();
    // The turn before it ended the task, so its message is in the history and has no turn.
    assert_eq!(late.unwrap().status.state, TaskState::Completed);
    let task = a.get("local", &id).await;
    let said = task.history.iter().filter(|message| message.first_text() == Some("work 2 y")).count();
    assert_eq!(said, 1, "{:?}", task.history);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_the_node_that_works_on_the_task() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let id = a.begin("local", "hold x").await;
    let cancelled = b.cancel("local", &id).await.unwrap();
    assert_eq!(cancelled.status.state, TaskState::Canceled);
    assert_eq!(a.get("local", &id).await.status.state, TaskState::Canceled);
    let again = b.cancel("local", &id).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::TaskNotCancelable);
    // One that waits for its caller belongs to nobody.
    let asked = a.send("local", "ask", None).await.unwrap();
    assert_eq!(b.cancel("local", &asked.id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(a.get("local", &asked.id).await.status.state, TaskState::Canceled);
    cluster.assert_sound();
}

/// The task below waits for its caller, so no node works on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_any_node_ends_the_tasks_below_too() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let parent = a.begin("local", "parent x").await;
    let states = async |state: TaskState| {
        let (tasks, _) = b.plane.operator_list(&ListFilter::default(), None, 10).await.unwrap();
        tasks.iter().filter(|stored| stored.progress.state == state).count()
    };
    while states(TaskState::InputRequired).await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(b.cancel("local", &parent).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(states(TaskState::Canceled).await, 2, "the task and the one below it");
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_callers_task_is_not_found_at_any_node() {
    use chancery_protocol::{CallContext, Caller, Request, SendMessage};
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let asked = a.send("local", "ask", None).await.unwrap();
    let stranger = CallContext { caller: Caller::new("tenant", "stranger"), ..super::cluster::context("local") };
    let message = chancery_protocol::Message {
        task_id: Some(asked.id.clone()),
        ..chancery_protocol::Message::text(chancery_protocol::Role::User, "m", "work 1 z")
    };
    for node in [&a, &b] {
        let refused = node.call(&stranger, Request::SendMessage(SendMessage::new(message.clone()))).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::TaskNotFound);
    }
    assert!(cluster.oracle.turns_of("work 1 z").is_empty());
}
