//! What becomes of the tasks of a node that is gone, and of one that leaves.

use std::time::Duration;

use chancery_protocol::TaskState;

use super::cluster::{LEASE_MS, PATIENCE, TestCluster, assert_whole, read, reason};
use crate::postgres::proxy::FaultyProxy;

/// A takeover takes a lease and up to two seconds more; the machine may have much else to do.
const TAKEN_WITHIN: Duration = Duration::from_millis(LEASE_MS + 8_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_that_is_gone_leaves_is_taken_over_once() {
    let cluster = TestCluster::new();
    let (a, b, c) = (cluster.node("a").await, cluster.node("b").await, cluster.node("c").await);
    let local = a.begin("local", "hold x").await;
    let relayed = a.begin("relay", "relay 1").await;
    let parked = a.send("local", "ask", None).await.unwrap();
    b.until("relay", &relayed, TaskState::Working).await;
    let stream = b.subscribe("relay", &relayed, Some(0)).await.unwrap();
    let of_local = c.subscribe("local", &local, Some(0)).await.unwrap();
    a.kill();
    let since = std::time::Instant::now();
    let numbers = read(of_local, usize::MAX).await;
    assert!(since.elapsed() < TAKEN_WITHIN, "{:?}", since.elapsed());
    assert_whole(&numbers, 1);
    let failed = b.until("local", &local, TaskState::Failed).await;
    assert_eq!(reason(&failed), "the node that worked on this task is gone; send the message again");
    while cluster.oracle.followed() == 0 {
        assert!(since.elapsed() < TAKEN_WITHIN);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cluster.oracle.open_gate();
    let numbers = read(stream, usize::MAX).await;
    assert_whole(&numbers, 1);
    let done = c.until("relay", &relayed, TaskState::Completed).await;
    assert_eq!(done.artifacts.len(), 1);
    assert_eq!(cluster.oracle.followed(), 1, "one node follows the link");
    let went_on = c.send("local", "work 2 y", Some(&parked.id)).await.unwrap();
    assert_eq!(went_on.status.state, TaskState::Completed);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_leaves_behind_when_it_shuts_down_is_taken_at_once() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let local = a.begin("local", "hold x").await;
    let relayed = a.begin("relay", "relay 1").await;
    b.until("relay", &relayed, TaskState::Working).await;
    let stream = b.subscribe("relay", &relayed, Some(0)).await.unwrap();
    a.leave(Duration::from_millis(200)).await;
    let failed = b.until("local", &local, TaskState::Failed).await;
    assert_eq!(reason(&failed), "the node that worked on this task is gone; send the message again");
    cluster.oracle.open_gate();
    assert_whole(&read(stream, usize::MAX).await, 1);
    assert_eq!(b.get("relay", &relayed).await.status.state, TaskState::Completed);
    assert_eq!(cluster.oracle.turns_of("relay 1"), ["a", "b"]);
    assert_eq!(cluster.oracle.followed(), 1);
    cluster.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_after_its_lease_writes_nothing_and_says_so() {
    let cluster = TestCluster::new();
    let proxy = FaultyProxy::to(cluster.database.port()).await;
    let a = cluster.node_at("a", cluster.database.url_by(proxy.port())).await;
    let b = cluster.node("b").await;
    let id = a.begin("local", "hold 20 x").await;
    let stream = b.subscribe("local", &id, Some(0)).await.unwrap();
    proxy.set_away(true);
    let numbers = read(stream, usize::MAX).await;
    assert_whole(&numbers, 1);
    let failed = b.until("local", &id, TaskState::Failed).await;
    // The turn at A still runs, and goes on now.
    cluster.oracle.open_gate();
    proxy.set_away(false);
    let taken_over = a.plane.taken_over().unwrap();
    tokio::time::timeout(PATIENCE, taken_over.cancelled()).await.expect("A learns that it was succeeded");
    a.plane.check().await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = b.get("local", &id).await;
    assert_eq!((&after.status, after.artifacts.len()), (&failed.status, failed.artifacts.len()), "nothing of A came in");
    // It joins again under another number.
    let again = cluster.node("a2").await;
    assert_eq!(again.get("local", &id).await.status, failed.status);
    let done = again.send("local", "work 1 y", None).await.unwrap();
    assert_eq!(b.get("local", &done.id).await.status.state, TaskState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_leaves_the_tasks_of_others_alone() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let local = a.begin("local", "hold 3 x").await;
    let relayed = a.begin("relay", "relay 1").await;
    let b = cluster.node("b").await;
    tokio::time::sleep(Duration::from_millis(2 * LEASE_MS)).await;
    assert_eq!(b.get("local", &local).await.status.state, TaskState::Submitted);
    cluster.oracle.open_gate();
    b.until("local", &local, TaskState::Completed).await;
    b.until("relay", &relayed, TaskState::Completed).await;
    assert_eq!((cluster.oracle.turns_of("hold 3 x"), cluster.oracle.followed()), (vec!["a"], 0));
    cluster.assert_sound();
}
