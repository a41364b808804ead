//! What the next start finds is what the last run was told is kept.

use std::time::Duration;

use chancery_core::push::{LaneAction, LaneFilter, LaneSettlement, LaneStep, Outbox, Registered, Span};
use chancery_core::{Freeze, FreezeScope, NonceVerdict, SpentNonce, Store, SweepPlan};
use chancery_protocol::TaskState;
use chancery_store::{PostgresOptions, PostgresStore};

use crate::contract::outbox::{ORIGIN, attempt, claim, new, receipt, step, told_creation};
use crate::contract::recording::{ENTRIES, fill, scribe, stand};
use crate::contract::sample::{at, change, completed, creation, decision, governed_creation, listed_ids, pieces, spend, task};
use crate::server::TestDatabase;

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

async fn close(store: PostgresStore) {
    store.close(Duration::from_secs(20)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_ledger_decisions_freezes_and_counts() {
    let database = database().await;
    let store = database.open().await;
    let (root, child) = (task("root"), task("child"));
    store.append(governed_creation(&root, "root", 1)).await.unwrap();
    store.append(governed_creation(&child, "root", 1)).await.unwrap();
    store.settle(&child.id, spend(7, Some(3))).await.unwrap();
    store.append(change(&child, 2, TaskState::Completed, at(3))).await.unwrap();
    store.decide(decision("d", None)).await.unwrap();
    store.freeze(Freeze { scope: FreezeScope::Everything, by: "op".into(), at: at(4), why: None }).await.unwrap();
    for number in 0..5 {
        completed(&store, &format!("t{number}"), number).await;
    }
    let seen = async |store: &PostgresStore| {
        let (ledger, tree) = (store.ledger(at(0)).await.unwrap(), store.tree(&root.id).await.unwrap());
        (ledger, tree, store.decisions(10).await.unwrap(), store.freezes().await.unwrap(), listed_ids(store).await)
    };
    let before = seen(&store).await;
    assert_eq!((before.0.tasks.len(), before.1.len(), before.2.len(), before.3.len(), before.4.len()), (2, 2, 1, 1, 7));
    close(store).await;
    let store = database.open().await;
    assert_eq!(seen(&store).await, before);
    let plan = SweepPlan { keep_at_most: Some(3), at_most: 100, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 3, "of six that have ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_lanes_and_waits_for_nobodys_lease() {
    let database = database().await;
    let store = database.open().await;
    let first = task("t1");
    store.append(told_creation(&first, false)).await.unwrap();
    store.append(pieces(&first, 2, 4)).await.unwrap();
    let lane = claim(&store, at(2_000_000)).await.remove(0);
    let taken = LaneStep {
        receipt: Some(receipt(&lane, 1, 1, at(2_000_001))),
        attempt: Some(attempt(&lane, 1, at(2_000_001))),
        ..step(&lane, LaneAction::Ack { span: Span::single(1), keep: Some(at(9_000_000)) }, at(2_000_001))
    };
    store.settle_lanes(vec![taken]).await.unwrap();
    let lanes = async |store: &PostgresStore| store.lanes(&LaneFilter::default(), 0, 100).await.unwrap().lanes;
    let mut before = lanes(&store).await;
    close(store).await;

    let store = database.open().await;
    assert!(before[0].cursor.orphan(), "it was claimed, and is nobody's now");
    assert_eq!(lanes(&store).await, before);
    assert_eq!(store.attempts(lane.number(), at(0), 10).await.unwrap().len(), 1);
    let next = claim(&store, at(2_000_003)).await.remove(0);
    assert_eq!((next.cursor.head, next.cursor.tail, next.receipt), (2, 4, Some([1; 32])));
    let late = step(&lane, LaneAction::Ack { span: Span::single(2), keep: None }, at(2_000_004));
    assert!(matches!(store.settle_lanes(vec![late]).await.unwrap()[0], LaneSettlement::Fenced));
    // Numbers go on where they were, also after the newest has gone.
    let Registered::Kept { lane: newest, .. } = store.register(new(&first, "x", ORIGIN)).await.unwrap() else { panic!() };
    store.unregister(&first.id, "x").await.unwrap();
    close(store).await;
    let store = database.open().await;
    let Registered::Kept { lane, .. } = store.register(new(&first, "x", ORIGIN)).await.unwrap() else { panic!() };
    assert!(lane > newest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_with_the_record() {
    let database = database().await;
    let scribe = scribe();
    let open = async || PostgresStore::open_recording(PostgresOptions::at(database.url()), Some(scribe.clone())).await.unwrap();
    let store = open().await;
    fill(&store).await;
    let before = stand(&store).await.unwrap();
    assert_eq!(before.end, ENTRIES);
    close(store).await;
    let store = open().await;
    assert_eq!(stand(&store).await.unwrap(), before);
    store.append(creation(&task("more"))).await.unwrap();
    let kept = store.record().unwrap();
    assert!(kept.forget(16).await.unwrap() > 0);
    assert_eq!(kept.forget(16).await.unwrap(), 0);
    let after = stand(&store).await.unwrap();
    assert_eq!((after.first, after.end, after.sealed_segments), (16, ENTRIES + 1, 1));
    let ends: Vec<_> = kept.checkpoints(0).await.unwrap().iter().map(|one| (one.end, one.sealed)).collect();
    assert_eq!(ends, [(16, true), (20, false), (24, false), (28, false)], "a seal stands for those before it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_knows_the_nonces_of_the_last() {
    let database = database().await;
    let spend = async |store: &PostgresStore, nonce: u8| {
        store.spend_nonce(SpentNonce { nonce: [nonce; 32], until: at(300), now: at(1), most: 2 }).await.unwrap()
    };
    let store = database.open().await;
    assert_eq!(spend(&store, 1).await, NonceVerdict::Fresh);
    close(store).await;
    let store = database.open().await;
    assert_eq!(spend(&store, 1).await, NonceVerdict::Replayed);
    assert_eq!(spend(&store, 2).await, NonceVerdict::Fresh);
    assert_eq!(spend(&store, 3).await, NonceVerdict::Full, "those of the last process are counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_when_the_store_closes_is_still_written() {
    let database = database().await;
    let store = database.open().await;
    let appends = (0..300).map(|number| {
        let task = task(&format!("t{number}"));
        let store = &store;
        async move { store.append(creation(&task)).await }
    });
    // All appends are asked for before the store is told to close.
    let (answers, closed) = futures::join!(futures::future::join_all(appends), store.close(Duration::from_secs(30)));
    closed.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(listed_ids(&database.open().await).await.len(), 300);
}
