//! Lanes in the SQLite store after a restart, and when the disk or the database says no: nothing is acknowledged that is not kept.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use chancery_core::push::{LaneAction, LaneFilter, LaneSettlement, LaneStep, Outbox, Registered, Span};
use chancery_core::{Appended, Store};
use chancery_protocol::TaskState;
use chancery_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use super::{LEASE, ORIGIN, ack, attempt, claim, letter, new, receipt, step, told_creation};
use crate::contract::sample::{at, change, creation, pieces, task};

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("chancery.db"), SqliteOptions::default()).unwrap()
}

async fn lanes(outbox: &dyn Outbox) -> Vec<chancery_core::push::Lane> {
    outbox.lanes(&LaneFilter::default(), 0, 100).await.unwrap().lanes
}

#[tokio::test]
async fn a_restart_keeps_lanes_letters_receipts_and_attempts_and_waits_for_nobodys_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (first, second) = (task("t1"), task("t2"));
    store.append(told_creation(&first, false)).await.unwrap();
    store.append(pieces(&first, 2, 4)).await.unwrap();
    store.append(told_creation(&second, true)).await.unwrap();
    let lane = claim(&store, at(2_000_000)).await.remove(0);
    let keep = Some(at(2_000_000) + LEASE);
    let taken = LaneStep {
        receipt: Some(receipt(&lane, 1, 1, at(2_000_001))),
        attempt: Some(attempt(&lane, 1, at(2_000_001))),
        ..step(&lane, LaneAction::Ack { span: Span::single(1), keep }, at(2_000_001))
    };
    let rejected = LaneAction::Reject {
        span: Span::single(2),
        reason: chancery_core::push::DeadReason::Rejected,
        unauthorized: true,
        disable: None,
        keep,
    };
    let rejected = LaneStep { dead: Some(letter(&lane, at(2_000_002))), ..step(&lane, rejected, at(2_000_002)) };
    store.settle_lanes(vec![taken, rejected]).await.unwrap();
    let mut before = lanes(&store).await;
    assert_eq!((before[0].cursor.head, before[0].cursor.refusals), (3, 1));
    let letters = store.dead_letters(&Default::default(), 0, 10).await.unwrap();
    let receipts = store.receipts(None, 0, 10).await.unwrap();
    store.close(std::time::Duration::from_secs(10)).await.unwrap();
    drop(store);

    let store = open(folder.path());
    assert!(before[0].cursor.orphan(), "it was claimed, and is nobody's now");
    assert_eq!(lanes(&store).await, before);
    assert_eq!(store.dead_letters(&Default::default(), 0, 10).await.unwrap(), letters);
    assert_eq!(store.receipts(None, 0, 10).await.unwrap(), receipts);
    assert_eq!(store.attempts(lane.number(), at(0), 10).await.unwrap().len(), 1);
    let next = claim(&store, at(2_000_003)).await.remove(0);
    assert_eq!((next.cursor.head, next.cursor.tail, next.receipt), (3, 4, Some([1; 32])));
    assert_eq!(next.cursor.span, Some(Span::single(3)), "it may have been sent");
    assert!(matches!(store.settle_lanes(vec![ack(&lane, 3, at(2_000_004))]).await.unwrap()[0], LaneSettlement::Fenced));
    // Numbers go on where they were, also after the newest has gone.
    let Registered::Kept { lane: newest, .. } = store.register(new(&first, "x", ORIGIN)).await.unwrap() else { panic!() };
    store.unregister(&first.id, "x").await.unwrap();
    store.close(std::time::Duration::from_secs(10)).await.unwrap();
    drop(store);
    let store = open(folder.path());
    let Registered::Kept { lane, .. } = store.register(new(&first, "x", ORIGIN)).await.unwrap() else { panic!() };
    assert!(lane > newest);
}

#[tokio::test]
async fn a_delivery_whose_receipt_cannot_be_written_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for id in ["t1", "t2"] {
        store.append(told_creation(&task(id), false)).await.unwrap();
    }
    let claimed = claim(&store, at(10_000)).await;
    let trigger = "CREATE TRIGGER refusing BEFORE INSERT ON receipts BEGIN SELECT raise(ABORT, 'no room'); END";
    let other = Connection::open(folder.path().join("chancery.db")).unwrap();
    other.execute_batch(trigger).unwrap();
    let taken = |lane: &chancery_core::push::Lane| LaneStep {
        receipt: Some(receipt(lane, 1, 1, at(10_001))),
        ..ack(lane, 1, at(10_001))
    };
    let both = vec![ack(&claimed[0], 1, at(10_001)), taken(&claimed[1])];
    store.settle_lanes(both.clone()).await.unwrap_err();
    assert_eq!(lanes(&store).await, claimed, "neither of the two that were to be settled together");
    other.execute_batch("DROP TRIGGER refusing").unwrap();
    let settled = store.settle_lanes(both).await.unwrap();
    assert!(settled.iter().all(|settled| matches!(settled, LaneSettlement::Done { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_somebody_else_holds_the_database_nothing_is_acknowledged_and_nothing_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    let lane = claim(&*store, at(10_000)).await.remove(0);
    let other = Connection::open(folder.path().join("chancery.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer waits for as long as it is willing to.
    let refusal = store.settle_lanes(vec![ack(&lane, 1, at(10_001))]).await.unwrap_err().to_string();
    assert!(refusal.contains("locked"), "{refusal}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(lanes(&*store).await, std::slice::from_ref(&lane));
    assert!(matches!(store.settle_lanes(vec![ack(&lane, 1, at(10_001))]).await.unwrap()[0], LaneSettlement::Done { .. }));
}

#[tokio::test]
async fn an_event_that_cannot_be_told_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (told, other) = (task("t1"), task("t2"));
    store.append(told_creation(&told, true)).await.unwrap();
    store.append(creation(&other)).await.unwrap();
    refuse_changes_of_lanes(folder.path());
    store.append(change(&told, 2, TaskState::Completed, at(2))).await.unwrap_err();
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 1);
    store.append(change(&other, 2, TaskState::Completed, at(2))).await.unwrap();
}

fn refuse_changes_of_lanes(folder: &Path) {
    let trigger = "CREATE TRIGGER refusing BEFORE UPDATE ON lanes BEGIN SELECT raise(ABORT, 'no room'); END;
                   CREATE TRIGGER refusing_too BEFORE UPDATE ON push_origins BEGIN SELECT raise(ABORT, 'no room'); END";
    Connection::open(folder.join("chancery.db")).unwrap().execute_batch(trigger).unwrap();
}

#[tokio::test]
async fn what_happens_to_a_task_whose_webhook_is_behind_writes_nothing_but_that() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let task = task("t1");
    store.append(told_creation(&task, false)).await.unwrap();
    refuse_changes_of_lanes(folder.path());
    assert_eq!(store.append(pieces(&task, 2, 9)).await.unwrap(), Appended::RecordedBehind);
    assert_eq!(store.append(change(&task, 10, TaskState::Completed, at(2))).await.unwrap(), Appended::RecordedBehind);
    let lane = lanes(&store).await.remove(0);
    assert_eq!((lane.cursor.head, lane.cursor.tail), (1, 10), "it is to be told all the same");
    assert_eq!(store.outbox_load().await.unwrap().backlog_events, 10);
}

/// The tables of lanes are not there for these, so whoever touched one would fail.
#[tokio::test]
async fn appends_to_tasks_without_webhooks_touch_no_lane() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    // The writer prepares its statements when it begins, and those name the tables: it has begun once it has written.
    store.append(creation(&self::task("t0"))).await.unwrap();
    let task = task("t1");
    Connection::open(folder.path().join("chancery.db"))
        .unwrap()
        .execute_batch("DROP TABLE lanes; DROP TABLE registrations; DROP TABLE push_origins; DROP TABLE push_tenants")
        .unwrap();
    store.append(creation(&task)).await.unwrap();
    store.append(pieces(&task, 2, 9)).await.unwrap();
    store.append(change(&task, 10, TaskState::Completed, at(2))).await.unwrap();
    assert_eq!(
        store.sweep(chancery_core::SweepPlan { keep_at_most: Some(0), at_most: 9, ..Default::default() }).await.unwrap(),
        1
    );
}

const LIMITED: &str = "CHANCERY_TEST_LIMITED_OUTBOX";
const NAME: &str = "contract::outbox::durable::on_a_full_disk_nothing_is_acknowledged_and_work_goes_on_afterwards";

/// Files cannot grow beyond a limit that the shell sets, as on a disk that is full.
#[test]
fn on_a_full_disk_nothing_is_acknowledged_and_work_goes_on_afterwards() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Some(folder) = std::env::var_os(LIMITED) {
        return runtime.block_on(settle_on_a_full_disk(folder.as_ref()));
    }
    let folder = tempfile::tempdir().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact \"$1\" --nocapture";
    let child = Command::new("/bin/sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .arg(NAME)
        .env(LIMITED, folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}{}", String::from_utf8_lossy(&child.stderr));
    // Seen from a process without the limit.
    runtime.block_on(async {
        let store = open(folder.path());
        let lane = lanes(&store).await.remove(0);
        assert_eq!((lane.cursor.head, lane.cursor.tail), (2, 1));
        assert!(store.dead_letters(&Default::default(), 0, 10).await.unwrap().letters.is_empty());
    });
}

async fn settle_on_a_full_disk(folder: &Path) {
    let store = open(folder);
    store.append(told_creation(&task("t1"), false)).await.unwrap();
    let lane = claim(&store, at(10_000)).await.remove(0);
    let mut heavy = letter(&lane, at(10_001));
    heavy.body = vec![b'x'; 4_000_000].into();
    let gone = LaneStep { dead: Some(heavy), ..step(&lane, LaneAction::Gone { to: lane.cursor.tail }, at(10_001)) };
    store.settle_lanes(vec![gone]).await.unwrap_err();
    assert_eq!(lanes(&store).await, std::slice::from_ref(&lane), "the claim stands, and so does what is to be delivered");
    assert!(matches!(store.settle_lanes(vec![ack(&lane, 1, at(10_002))]).await.unwrap()[0], LaneSettlement::Done { .. }));
}
