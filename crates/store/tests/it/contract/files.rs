//! What SQLite leaves on disk: it is kept, it is private, it is for one process, and it does not grow without end.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Append, Appended, Freeze, FreezeScope, Names, Store, SweepPlan};
use chancery_protocol::TaskState;
use chancery_store::{SqliteOptions, SqliteStore, Synchronous};

use crate::contract::sample::{
    ada, at, change, completed, creation, creation_with_key, decision, governed_creation, listed_ids, piece, pieces, spend, task,
};

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("data/chancery.db"), SqliteOptions::default()).unwrap()
}

#[tokio::test]
async fn a_store_that_was_dropped_has_kept_everything() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let kept = task("t1");
    store.append(creation_with_key(&kept, "k", 7, at(1_000_000))).await.unwrap();
    store.append(pieces(&kept, 2, 200)).await.unwrap();
    let before = store.find_any("t1").await.unwrap();
    drop(store);

    let store = open(folder.path());
    assert_eq!(store.find_any("t1").await.unwrap(), before);
    let entries = store.entries(&kept.id, 1, 1000).await.unwrap();
    assert!(entries.iter().zip(2..=200).all(|(entry, seq)| *entry == piece(seq)) && entries.len() == 199);
    let known = store.append(creation_with_key(&task("t2"), "k", 8, at(1_000_000))).await.unwrap();
    assert_eq!(known, Appended::KeyKnown { task: "t1".into(), fingerprint: [7; 32] });
    store.append(pieces(&kept, 201, 201)).await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_closed_has_kept_what_was_spent_decided_and_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for (id, root) in [("gone", "gone"), ("root", "root"), ("child", "root"), ("ended", "ended")] {
        store.append(governed_creation(&task(id), root, 1)).await.unwrap();
    }
    for (id, end) in [("gone", 1), ("ended", 2)] {
        let change = change(&task(id), 2, TaskState::Completed, at(end));
        store.append(Append { spend: Some(spend(5, Some(end))), ..change }).await.unwrap();
    }
    let sweep = SweepPlan { keep_at_most: Some(1), at_most: 9, spent_since: Some(at(0)), ..SweepPlan::default() };
    assert_eq!(store.sweep(sweep).await.unwrap(), 1);
    store.settle(&"child".into(), spend(7, Some(3))).await.unwrap();
    store.decide(decision("refused", None)).await.unwrap();
    let freeze = |scope| Freeze { scope, by: "op".into(), at: at(4), why: None };
    store.freeze(freeze(FreezeScope::Everything)).await.unwrap();
    store.freeze(freeze(FreezeScope::Agent("echo".into()))).await.unwrap();
    assert!(store.thaw(&FreezeScope::Everything, None).await.unwrap());
    let before = (
        store.ledger(at(0)).await.unwrap(),
        store.tree(&"root".into()).await.unwrap(),
        store.decisions(10).await.unwrap(),
        store.freezes().await.unwrap(),
    );
    assert_eq!((before.0.tasks.len(), before.0.past.len()), (3, 1));
    assert_eq!(before.1[1].governed.spend, spend(7, Some(3)));
    assert_eq!((before.2.len(), before.3.len()), (1, 1));
    store.close(Duration::from_secs(30)).await.unwrap();

    let store = open(folder.path());
    let after = (
        store.ledger(at(0)).await.unwrap(),
        store.tree(&"root".into()).await.unwrap(),
        store.decisions(10).await.unwrap(),
        store.freezes().await.unwrap(),
    );
    assert_eq!(after, before);
}

#[tokio::test]
async fn the_count_of_finished_tasks_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for number in 0..5 {
        completed(&store, &format!("t{number}"), number).await;
    }
    drop(store);
    let store = open(folder.path());
    let plan = SweepPlan { keep_at_most: Some(3), at_most: 100, ..SweepPlan::default() };
    assert_eq!(store.sweep(plan).await.unwrap(), 2);
    assert_eq!(listed_ids(&store).await, ["t4", "t3", "t2"]);
}

#[tokio::test]
async fn a_closed_store_refuses_work_and_lets_the_next_one_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.append(creation(&task("t1"))).await.unwrap();
    store.close(Duration::from_secs(30)).await.unwrap();
    store.close(Duration::from_secs(30)).await.unwrap();
    for refusal in [
        store.append(creation(&task("t2"))).await.unwrap_err(),
        store.find(&ada(), "t1", Names::Server).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ] {
        assert_eq!(refusal.to_string(), "the store is closed");
    }
    let next = open(folder.path());
    assert!(next.find_any("t1").await.unwrap().is_some());
    // All of it is in the one file.
    let wal = folder.path().join("data/chancery.db-wal");
    assert_eq!(std::fs::metadata(wal).map_or(0, |file| file.len()), 0);
}

#[tokio::test]
async fn what_is_queued_when_the_store_closes_is_still_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let appends = (0..300).map(|number| {
        let store = Arc::clone(&store);
        async move { store.append(creation(&task(&format!("t{number}")))).await }
    });
    // All appends are asked for before the store is told to close.
    let (answers, closed) = futures::join!(futures::future::join_all(appends), store.close(Duration::from_secs(30)));
    closed.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(listed_ids(&open(folder.path())).await.len(), 300);
}

#[tokio::test]
async fn a_second_server_on_the_same_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let refusal = SqliteStore::open(folder.path().join("data/chancery.db"), SqliteOptions::default()).unwrap_err();
    assert!(refusal.to_string().contains("in use by another running server"), "{refusal}");
    first.append(creation(&task("t1"))).await.unwrap();
    drop(first);
    assert!(open(folder.path()).find_any("t1").await.unwrap().is_some());
}

#[tokio::test]
async fn another_program_can_read_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let other = rusqlite::Connection::open(folder.path().join("data/chancery.db")).unwrap();
    let count = || other.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0)).unwrap();
    for expected in 1..5 {
        completed(&store, &format!("t{expected}"), 1).await;
        assert_eq!(count(), expected);
    }
}

#[tokio::test]
async fn files_are_for_their_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    // A file that an earlier user made readable for all.
    std::fs::write(data.join("chancery.db"), "").unwrap();
    std::fs::set_permissions(data.join("chancery.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(folder.path());
    store.append(creation(&task("t1"))).await.unwrap();
    let mut seen = Vec::new();
    for file in std::fs::read_dir(data).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
        seen.push(file.file_name().into_string().unwrap());
    }
    seen.sort();
    assert_eq!(seen, ["chancery.db", "chancery.db-lock", "chancery.db-shm", "chancery.db-wal"]);
}

#[test]
fn a_database_from_the_future_or_from_elsewhere_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let path = folder.path().join("data/chancery.db");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refusal = SqliteStore::open(&path, SqliteOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("version 99") && refusal.contains("newer program"), "{refusal}");

    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    let refusal = SqliteStore::open(&foreign, SqliteOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("some other program"), "{refusal}");
    let tables: i64 = rusqlite::Connection::open(&foreign)
        .unwrap()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no database at all, but long enough to look at".repeat(50)).unwrap();
    let refusal = SqliteStore::open(&text, SqliteOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("notes.txt") && refusal.contains("not a database"), "{refusal}");
}

#[tokio::test]
async fn the_less_strict_mode_keeps_the_contract_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
    let path = folder.path().join("chancery.db");
    let store = SqliteStore::open(&path, options).unwrap();
    completed(&store, "t1", 5).await;
    drop(store);
    let store = SqliteStore::open(&path, options).unwrap();
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.state, TaskState::Completed);
}

/// A program that is being started holds copies of all open files for a moment, locks included.
#[test]
fn a_closed_store_can_be_opened_again_while_programs_are_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chancery.db");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(std::process::Command::new("/bin/true").status().unwrap().success());
                }
            });
        }
        let opened: Result<Vec<_>, _> = (0..100).map(|_| SqliteStore::open(&path, SqliteOptions::default()).map(drop)).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        opened.unwrap();
    });
}

/// Tasks come, end and are swept, all but the last few. Answers what is on disk when the store is closed.
async fn size_after(folder: &Path, cycles: std::ops::Range<u64>) -> u64 {
    const TASKS_A_CYCLE: u64 = 100;
    let store = open(folder);
    let plan = SweepPlan { keep_at_most: Some(50), at_most: 10_000, ..SweepPlan::default() };
    for cycle in cycles {
        let tasks = (0..TASKS_A_CYCLE).map(async |number| {
            // Lengths differ, so that freed places do not simply fit again.
            let task = task(&format!("{cycle:03}-{number:03}"));
            let last = 2 + (cycle * 7 + number * 13) % 90;
            store.append(creation(&task)).await.unwrap();
            store.append(pieces(&task, 2, last)).await.unwrap();
            let ended = at((cycle * TASKS_A_CYCLE + number) as i64);
            store.append(change(&task, last + 1, TaskState::Completed, ended)).await.unwrap();
        });
        futures::future::join_all(tasks).await;
        store.sweep(plan).await.unwrap();
    }
    assert_eq!(listed_ids(&store).await.len(), 50);
    store.close(Duration::from_secs(30)).await.unwrap();
    let files = std::fs::read_dir(folder.join("data")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[tokio::test]
async fn disk_use_stays_flat_while_tasks_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let after_ten = size_after(folder.path(), 0..10).await;
    let after_sixty = size_after(folder.path(), 10..60).await;
    assert!(after_sixty <= after_ten * 5 / 4, "{after_ten} bytes became {after_sixty}");
}

/// How often SQLite has started the log anew: a number in the header of its file.
fn log_starts(folder: &Path) -> u32 {
    let header = std::fs::read(folder.join("data/chancery.db-wal")).unwrap();
    header.get(12..16).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()))
}

#[tokio::test]
async fn the_log_is_started_anew_while_the_writer_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { wal_limit_bytes: 256 * 1024, ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path().join("data/chancery.db"), options).unwrap();
    store.append(creation(&task("first"))).await.unwrap();
    let before = log_starts(folder.path());
    // Several callers without a pause: the writer always finds the next batch waiting.
    let started_anew = std::sync::atomic::AtomicBool::new(false);
    let callers = (0..16).map(async |caller| {
        for round in 0..20_000 {
            if started_anew.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            store.append(creation(&task(&format!("{caller}-{round}")))).await.unwrap();
            if caller == 0 && log_starts(folder.path()) > before + 1 {
                started_anew.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    futures::future::join_all(callers).await;
    assert!(started_anew.into_inner(), "the log only grew");
}
