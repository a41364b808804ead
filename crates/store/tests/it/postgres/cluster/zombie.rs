//! Nodes under load are taken over one after the other while they still write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_core::Store;
use chancery_store::PostgresOptions;

use super::{Node, SHORT_LEASE, database};
use crate::contract::sample::{creation, task};
use crate::postgres::load::{KnownTasks, Load};
use crate::postgres::proxy::FaultyProxy;

/// What is wrong with the logs afterwards.
async fn faults(store: &dyn Store, known: &KnownTasks) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, task) in known {
        let stored = store.find_any(id).await.unwrap().map_or(0, |stored| stored.progress.seq);
        let log = store.entries(&id.as_str().into(), 0, 1_000).await.unwrap();
        let is_whole = log.len() as u64 == stored && log.iter().zip(1..).all(|(entry, seq)| entry.seq == seq);
        let is_known = stored == task.acknowledged || stored > task.acknowledged && task.in_doubt.contains(&stored);
        if !is_whole || !is_known {
            faults.push(format!("{id}: entry {stored} of {} is stored: {task:?}", log.len()));
        }
    }
    faults
}

/// Answers what is wrong, and how many writes of nodes that were taken over were acknowledged.
async fn successions(fenced: bool, rounds: usize) -> (Vec<String>, u64) {
    let database = database().await;
    let (mut known, mut late) = (BTreeMap::new(), 0);
    let mut successor = Node::join(database.url(), SHORT_LEASE).await;
    for round in 0..rounds {
        let proxy = FaultyProxy::to(database.port()).await;
        if !fenced {
            proxy.take_fence_out();
        }
        let options = PostgresOptions { lease_ms: 800, patience_ms: 2_000, ..PostgresOptions::at(database.url_by(proxy.port())) };
        let node = Node::join_with(options).await;
        let store: Arc<dyn Store> = Arc::clone(&node.store) as _;
        let load = Load::start(&store, &format!("node-{round}"), 6);
        load.control.more(30).await;
        successor.succeed(node.number()).await;
        // What was under way has been answered once another write is.
        late += u64::from(store.append(creation(&task(&format!("probe of {round}")))).await.is_ok());
        let before = load.control.acknowledged.load(Ordering::SeqCst);
        let mut held = Vec::new();
        loop {
            let page = successor.cluster.take_inherited(node.number(), 4).await.unwrap();
            if page.is_empty() {
                break;
            }
            held.extend(page);
        }
        // The successor's view of each is the last, whatever the other still tries.
        for stored in held {
            let now = successor.store.find_any(stored.task.id.as_str()).await.unwrap().unwrap();
            assert_eq!(now.progress, stored.progress);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        late += load.control.acknowledged.load(Ordering::SeqCst) - before;
        known.extend(load.stop().await);
        if round + 1 < rounds {
            successor = Node::join(database.url(), SHORT_LEASE).await;
        }
    }
    (faults(&*successor.store, &known).await, late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_node_under_load_gets_in_after_it_was_taken_over() {
    let (faults, late) = successions(true, 3).await;
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(late, 0, "writes of nodes that were taken over were acknowledged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_the_test_finds_the_fault() {
    let (_, late) = successions(false, 2).await;
    assert!(late > 0, "no write of a node that was taken over was acknowledged, so the other test shows nothing");
}
