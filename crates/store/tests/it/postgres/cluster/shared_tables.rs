//! What several nodes write to the same tables at the same time: keys, names, nonces, counts.

use chancery_core::{Append, Appended, NonceVerdict, SpentNonce, Store, SweepPlan, TaskRecord};
use std::sync::Arc;

use super::{LONG_LEASE, Node, database};
use crate::contract::sample::{ada, at, completed, creation, creation_with_key, listed_ids, record, task};

async fn two() -> (crate::server::TestDatabase, Node, Node) {
    let database = database().await;
    let (one, two) = (Node::join(database.url(), LONG_LEASE).await, Node::join(database.url(), LONG_LEASE).await);
    (database, one, two)
}

/// One of two answers is a new task, and the other names it.
fn one_of(first: (&str, Appended), second: (&str, Appended)) {
    let names = |appended: &Appended, other: &str| match appended {
        Appended::KeyKnown { task, .. } | Appended::ClientIdKnown { task } => task.as_str() == other,
        _ => false,
    };
    let is_one = match (&first.1, &second.1) {
        (Appended::Recorded, known) => names(known, first.0),
        (known, Appended::Recorded) => names(known, second.0),
        _ => false,
    };
    assert!(is_one, "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_or_a_name_that_two_nodes_use_at_once_makes_one_task() {
    let (_database, one, two) = two().await;
    for round in 0..30 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let by_key = |id: &str| creation_with_key(&task(id), &format!("key {round}"), 1, at(i64::MAX));
        let (first, second) = futures::join!(one.store.append(by_key(&a)), two.store.append(by_key(&b)));
        one_of((&a, first.unwrap()), (&b, second.unwrap()));
        let (c, d) = (format!("c{round}"), format!("d{round}"));
        let by_name = |id: &str| -> Append {
            creation(&Arc::new(TaskRecord { client_task_id: Some(format!("name {round}").into()), ..record(id, ada()) }))
        };
        let (first, second) = futures::join!(one.store.append(by_name(&c)), two.store.append(by_name(&d)));
        one_of((&c, first.unwrap()), (&d, second.unwrap()));
    }
    assert_eq!(listed_ids(&*one.store).await.len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nonce_that_two_nodes_are_sent_at_once_is_fresh_at_one() {
    let (_database, one, two) = two().await;
    for round in 0..40_u8 {
        let spent = SpentNonce { nonce: [round + 1; 32], until: at(300), now: at(1), most: 1_000 };
        let (first, second) = futures::join!(one.store.spend_nonce(spent), two.store.spend_nonce(spent));
        let mut verdicts = [first.unwrap(), second.unwrap()];
        verdicts.sort_by_key(|verdict| *verdict != NonceVerdict::Fresh);
        assert_eq!(verdicts, [NonceVerdict::Fresh, NonceVerdict::Replayed], "{round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_sweep_at_once_count_each_task_once() {
    let (_database, one, two) = two().await;
    for number in 0..40 {
        completed(&*one.store, &format!("t{number}"), number).await;
    }
    let plan = SweepPlan { keep_at_most: Some(10), at_most: 4, ..SweepPlan::default() };
    let mut gone = 0;
    while gone < 30 {
        let (first, second) = futures::join!(one.store.sweep(plan), two.store.sweep(plan));
        gone += first.unwrap() + second.unwrap();
    }
    for node in [&one, &two] {
        assert_eq!(node.store.sweep(plan).await.unwrap(), 0);
        // The total comes from the counts, the ids from the tasks.
        assert_eq!(listed_ids(&*node.store).await.len(), 10);
    }
    assert_eq!(gone, 30);
}
