//! What other nodes show of a task that one of them works on.

use std::time::Duration;

use chancery_protocol::{CallContext, ErrorKind, TaskState, Version};

use super::cluster::{TestCluster, assert_whole, context, read};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_read_and_listed_at_every_node_as_it_is_now() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let done = a.send("local", "work 3 x", None).await.unwrap();
    let read = b.get("local", &done.id).await;
    assert_eq!((read.status.state, read.artifacts.len()), (TaskState::Completed, 3));
    let id = a.begin("local", "hold y").await;
    let working = b.until("local", &id, TaskState::Submitted).await;
    assert_eq!(working.id, id);
    let listed = b.list("local").await;
    assert_eq!(listed.len(), 2);
    cluster.oracle.open_gate();
    let ended = b.until("local", &id, TaskState::Completed).await;
    assert_eq!(a.get("local", &id).await.status, ended.status);
    assert_eq!(b.list("local").await.iter().filter(|task| task.status.state == TaskState::Completed).count(), 2);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_at_every_node_show_each_event_once_and_in_order() {
    let cluster = TestCluster::new();
    let (a, b, c) = (cluster.node("a").await, cluster.node("b").await, cluster.node("c").await);
    let id = a.begin("local", "hold 150 x").await;
    let at_a = a.subscribe("local", &id, Some(0)).await.unwrap();
    let at_b = b.subscribe("local", &id, Some(0)).await.unwrap();
    let from_now = c.subscribe("local", &id, None).await.unwrap();
    let cut = b.subscribe("local", &id, Some(0)).await.unwrap();
    cluster.oracle.open_gate();
    // One reader loses its connection in the middle and goes on at another node.
    let half = read(cut, 40).await;
    let seen = *half.last().unwrap();
    let rest = c.subscribe("local", &id, Some(seen)).await.unwrap();
    let (at_a, at_b, from_now, rest) =
        tokio::join!(read(at_a, usize::MAX), read(at_b, usize::MAX), read(from_now, usize::MAX), read(rest, usize::MAX));
    assert_whole(&at_a, 1);
    assert_eq!(at_a, at_b);
    assert_eq!(at_a.len() as u64, *at_a.last().unwrap());
    assert_whole(&from_now, from_now[0]);
    assert_eq!(from_now.last(), at_a.last());
    let resumed: Vec<u64> = half.into_iter().chain(rest).collect();
    assert_eq!(resumed, at_a, "a stream that goes on at another node");
    let beyond = b.subscribe("local", &id, Some(9_999)).await.unwrap_err();
    assert_eq!(beyond.kind, ErrorKind::InvalidParams);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_with_the_same_key_at_another_node_waits_for_the_first_call() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let first = tokio::spawn(async move {
        let done = a.send_with_key("local", "hold 2 x", "key").await;
        (a, done)
    });
    while b.list("local").await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let retry = tokio::spawn(async move {
        let done = b.send_with_key("local", "hold 2 x", "key").await;
        (b, done)
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!retry.is_finished(), "the turn is not over");
    cluster.oracle.open_gate();
    let ((_a, first), (_b, retry)) = (first.await.unwrap(), retry.await.unwrap());
    let (first, retry) = (first.unwrap(), retry.unwrap());
    assert_eq!((&first.id, first.status.state), (&retry.id, TaskState::Completed));
    assert_eq!(cluster.oracle.turns_of("hold 2 x"), ["a"], "it ran once");
    cluster.assert_sound();
}

/// Before 1.0 a stream ends with the turn. Whether an auth-required task goes on by itself is known only by who holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_at_another_node_stays_open_while_the_agent_waits_for_an_authorization() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let older = || CallContext { version: Version::V0_3, last_event_id: Some(0), ..context("local") };
    let ended = a.begin("local", "sign-in x").await;
    a.until("local", &ended, TaskState::AuthRequired).await;
    let numbers = read(b.subscribe_as(older(), &ended).await.unwrap(), usize::MAX).await;
    assert_eq!((numbers[..2].to_vec(), numbers.last()), (vec![1, 2], Some(&2)), "it ends with the turn: {numbers:?}");
    let goes_on = a.begin("local", "authorize 2 y").await;
    b.until("local", &goes_on, TaskState::AuthRequired).await;
    let stream = tokio::spawn(read(b.subscribe_as(older(), &goes_on).await.unwrap(), usize::MAX));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!stream.is_finished(), "the agent goes on by itself");
    cluster.oracle.open_gate();
    let numbers = stream.await.unwrap();
    assert_whole(&numbers, 1);
    assert_eq!(numbers.len(), 6, "created, auth-required, working, two artifacts, completed");
    cluster.assert_sound();
}
