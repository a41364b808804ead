//! Lost answers to taking and releasing: each is found out, and nothing is done twice.

use chancery_core::{Store, TaskHolder};
use chancery_store::PostgresOptions;

use super::{LONG_LEASE, Node, database};
use crate::contract::sample::{creation, pieces, task};
use crate::postgres::proxy::{CutPoint, FaultyProxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_held_by_one_node_wherever_the_connection_of_a_taker_is_cut() {
    let database = database().await;
    let proxy = FaultyProxy::to(database.port()).await;
    let options = PostgresOptions {
        answer_timeout_ms: 500,
        idle_in_transaction_timeout_ms: 500,
        patience_ms: 30_000,
        ..PostgresOptions::at(database.url_by(proxy.port()))
    };
    let (cut, other) = (Node::join_with(options).await, Node::join(database.url(), LONG_LEASE).await);
    let held = task("t");
    other.store.append(creation(&held)).await.unwrap();
    let mut seq = 1;
    for point in CutPoint::ALL.into_iter().filter(|point| *point != CutPoint::InBatch) {
        other.cluster.release(&held.id, false).await.unwrap();
        proxy.cut(point, 0);
        let (first, second) = futures::join!(cut.cluster.take(&held.id), other.cluster.take(&held.id));
        let (first, second) = (first.unwrap().unwrap(), second.unwrap().unwrap());
        let winner = match (first, second) {
            (TaskHolder::ThisNode, TaskHolder::OtherNode(node)) if node == cut.number() => &cut,
            (TaskHolder::OtherNode(node), TaskHolder::ThisNode) if node == other.number() => &other,
            both => panic!("{point:?}: {both:?}"),
        };
        seq += 1;
        winner.store.append(pieces(&held, seq, seq)).await.unwrap();
        winner.cluster.release(&held.id, false).await.unwrap();
        assert_eq!(other.cluster.take(&held.id).await.unwrap(), Some(TaskHolder::ThisNode));
    }
    assert_eq!(other.store.entries(&held.id, 0, 100).await.unwrap().len() as u64, seq);
    assert!(proxy.cuts() > 0);
}
