//! Snapshots of tasks: kept whole, never ahead of the log or behind a newer one, and gone with their tasks.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Store, SweepPlan, TaskRecord, TaskSnapshot, task_state};
use chancery_protocol::{Message, Role, Task, TaskState};
use chancery_store::{SqliteOptions, SqliteStore};

use crate::contract::sample::{Opened, at, change, completed, creation, on_every_store, pieces, task};

on_every_store! {
    a_snapshot_is_the_task_as_its_log_says,
    a_snapshot_without_artifacts_has_the_rest,
    an_older_snapshot_does_not_replace_a_newer_one,
    a_snapshot_is_never_ahead_of_the_log,
    a_snapshot_goes_with_its_task,
}

/// A task with a log of `last` entries.
async fn long(store: &dyn Store, id: &str, last: u64) -> Arc<TaskRecord> {
    let task = task(id);
    store.append(creation(&task)).await.unwrap();
    store.append(pieces(&task, 2, last - 1)).await.unwrap();
    store.append(change(&task, last, TaskState::Completed, at(9))).await.unwrap();
    task
}

/// The task as it is after an entry.
async fn folded(store: &dyn Store, task: &TaskRecord, seq: u64) -> TaskSnapshot {
    let entries = store.entries(&task.id, 0, seq as usize).await.unwrap();
    let mut task = task_state::fold(entries.iter().map(|entry| &entry.event)).unwrap();
    task.history.push(Arc::new(Message::text(Role::User, "m", "said \u{2192} \"quoted\"")));
    TaskSnapshot { seq, task: Arc::new(task) }
}

async fn a_snapshot_is_the_task_as_its_log_says(Opened { store, .. }: Opened) {
    let task = long(&*store, "t1", 200).await;
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), None);
    let whole = folded(&*store, &task, 200).await;
    store.keep_snapshot(whole.clone()).await.unwrap();
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), Some(whole));
    assert_eq!(store.snapshot(&"other".into(), true).await.unwrap(), None);
}

async fn a_snapshot_without_artifacts_has_the_rest(Opened { store, .. }: Opened) {
    let task = long(&*store, "t1", 70).await;
    let whole = folded(&*store, &task, 70).await;
    store.keep_snapshot(whole.clone()).await.unwrap();
    let rest = Arc::new(Task { artifacts: Vec::new(), ..Task::clone(&whole.task) });
    assert_eq!(store.snapshot(&task.id, false).await.unwrap(), Some(TaskSnapshot { task: rest, ..whole.clone() }));
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), Some(whole), "what was left out is still there");
}

async fn an_older_snapshot_does_not_replace_a_newer_one(Opened { store, .. }: Opened) {
    let task = long(&*store, "t1", 100).await;
    let (older, newer) = (folded(&*store, &task, 80).await, folded(&*store, &task, 90).await);
    store.keep_snapshot(newer.clone()).await.unwrap();
    store.keep_snapshot(older).await.unwrap();
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), Some(newer));
    let newest = folded(&*store, &task, 100).await;
    store.keep_snapshot(newest.clone()).await.unwrap();
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), Some(newest));
}

async fn a_snapshot_is_never_ahead_of_the_log(Opened { store, .. }: Opened) {
    let task = long(&*store, "t1", 100).await;
    let ahead = TaskSnapshot { seq: 101, ..folded(&*store, &task, 100).await };
    store.keep_snapshot(ahead.clone()).await.unwrap();
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), None);
    let unknown = Task { id: "unknown".into(), ..Task::clone(&ahead.task) };
    store.keep_snapshot(TaskSnapshot { seq: 1, task: Arc::new(unknown) }).await.unwrap();
    assert_eq!(store.snapshot(&"unknown".into(), true).await.unwrap(), None);
}

async fn a_snapshot_goes_with_its_task(Opened { store, .. }: Opened) {
    let task = long(&*store, "t1", 70).await;
    store.keep_snapshot(folded(&*store, &task, 70).await).await.unwrap();
    let sweep = SweepPlan { keep_at_most: Some(0), at_most: 9, ..SweepPlan::default() };
    assert_eq!(store.sweep(sweep).await.unwrap(), 1);
    assert_eq!(store.snapshot(&task.id, true).await.unwrap(), None);
    // The next task may get the number of the one that went.
    completed(&*store, "t2", 5).await;
    assert_eq!(store.snapshot(&"t2".into(), true).await.unwrap(), None);
}

#[tokio::test]
async fn a_check_of_the_database_compares_each_snapshot_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chancery.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    let task = long(&store, "t1", 70).await;
    let entries = store.entries(&task.id, 0, 70).await.unwrap();
    let folded = Arc::new(task_state::fold(entries.iter().map(|entry| &entry.event)).unwrap());
    store.keep_snapshot(TaskSnapshot { seq: 70, task: folded }).await.unwrap();
    store.close(Duration::from_secs(30)).await.unwrap();
    assert!(SqliteStore::examine(&path).unwrap().is_sound());

    let database = rusqlite::Connection::open(&path).unwrap();
    for (sql, named) in [
        ("UPDATE snapshots SET artifacts = replace(artifacts, 'piece 7 ', 'other ')", "differs from its log at entry 70"),
        ("UPDATE snapshots SET seq = 71", "its snapshot says 71"),
        ("UPDATE snapshots SET body = '{'", "a snapshot: "),
        ("UPDATE snapshots SET task = 77", "table snapshots: 1 rows belong to no task"),
    ] {
        assert_eq!(database.execute(sql, []).unwrap(), 1, "{sql}");
        let examined = SqliteStore::examine(&path).unwrap();
        assert!(examined.damage.iter().any(|damage| damage.contains(named)), "{sql}: {examined:?}");
    }
}
