//! Leases, by the time of the database.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::Store;
use chancery_store::PostgresOptions;

use super::{Node, SHORT_LEASE, database};
use crate::contract::sample::{creation, pieces, task};

/// Waits until the database says that a lease is over.
async fn until_over(session: &tokio_postgres::Client, node: &Node) {
    let over = "SELECT lease_until < now() FROM nodes WHERE node = $1";
    while !session.query_one(over, &[&node.number().0]).await.unwrap().get::<_, bool>(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_only_late_keeps_what_it_holds() {
    let database = database().await;
    let node = Node::join(database.url(), SHORT_LEASE).await;
    let own = task("own");
    node.store.append(creation(&own)).await.unwrap();
    until_over(&database.session().await, &node).await;
    node.store.append(pieces(&own, 2, 2)).await.unwrap();
    node.renew().await;
    node.store.append(pieces(&own, 3, 3)).await.unwrap();
}

/// After an outage of the database all leases are over. Whoever comes back first takes nobody over before the others could renew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_nobody_is_taken_over_before_all_could_renew() {
    let database = database().await;
    let (one, two) = (Node::join(database.url(), SHORT_LEASE).await, Node::join(database.url(), SHORT_LEASE).await);
    let session = database.session().await;
    until_over(&session, &one).await;
    until_over(&session, &two).await;
    assert!(one.renew().await.expired.is_empty(), "its own lease has just begun again");
    assert!(!one.cluster.succeed(two.number()).await.unwrap(), "it may not, whatever it asks for");
    two.renew().await;
    // Both are as old as a lease when nobody is late any more.
    let is_mature = "SELECT since <= now() - interval '800 ms' AND lease_until > now() FROM nodes WHERE node = $1";
    while !session.query_one(is_mature, &[&one.number().0]).await.unwrap().get::<_, bool>(0) {
        let (first, second) = (one.renew().await, two.renew().await);
        assert!(first.expired.is_empty() && second.expired.is_empty());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_of_a_node_whose_writer_hangs_is_not_renewed() {
    let database = database().await;
    // The server ends no statement of the writer by itself.
    let options = PostgresOptions {
        lease_ms: 300,
        lock_timeout_ms: 60_000,
        statement_timeout_ms: 60_000,
        patience_ms: 60_000,
        answer_timeout_ms: 60_000,
        ..PostgresOptions::at(database.url())
    };
    let node = Node::join_with(options).await;
    let session = database.session().await;
    session.batch_execute("BEGIN; LOCK TABLE log IN EXCLUSIVE MODE").await.unwrap();
    let append = {
        let store = Arc::clone(&node.store);
        tokio::spawn(async move { store.append(creation(&task("t"))).await })
    };
    let refused = loop {
        match node.cluster.renew().await {
            Err(refused) => break refused,
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert!(refused.to_string().contains("the writer has had no answer"), "{refused}");
    session.batch_execute("COMMIT").await.unwrap();
    append.await.unwrap().unwrap();
    node.renew().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_goes_on_over_a_new_connection() {
    let database = database().await;
    let node = Node::join(database.url(), SHORT_LEASE).await;
    node.renew().await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND application_name LIKE 'chancery node%'";
    database.session().await.batch_execute(end).await.unwrap();
    node.renew().await;
}
