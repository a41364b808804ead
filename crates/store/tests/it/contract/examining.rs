//! A database is gone through from one end to the other, and what is damaged is named.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chancery_core::Store;
use chancery_protocol::TaskState;
use chancery_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use crate::contract::sample::{at, change, completed, creation_with_key, decision, governed_creation, pieces, task};

/// A database with something in most tables, closed, and all of it in one file.
async fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("chancery.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    for number in 0..60 {
        let task = task(&format!("t{number:02}"));
        store.append(governed_creation(&task, task.id.as_str(), number as u128)).await.unwrap();
        store.append(change(&task, 2, TaskState::Working, at(2))).await.unwrap();
        store.append(pieces(&task, 3, 40)).await.unwrap();
        store.decide(decision(&format!("d{number}"), None)).await.unwrap();
    }
    store.append(creation_with_key(&task("keyed"), "k", 1, at(9))).await.unwrap();
    completed(&store, "ended", 5).await;
    store.close(Duration::from_secs(30)).await.unwrap();
    path
}

fn page_size(path: &Path) -> usize {
    Connection::open(path).unwrap().pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0)).unwrap() as usize
}

#[tokio::test]
async fn a_sound_database_is_found_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let examined = SqliteStore::examine(&path).unwrap();
    assert!(examined.is_sound(), "{examined:?}");
    assert_eq!((examined.tasks, examined.entries), (62, 60 * 40 + 3));
}

#[tokio::test]
async fn whichever_page_is_damaged_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    let size = page_size(&path);
    let whole = std::fs::read(&path).unwrap();
    assert!(whole.len() / size > 30, "small pieces of many tables");
    let copy = folder.path().join("copy.db");
    for page in 0..whole.len() / size {
        let pattern = [0, 0xff, 0x41][page % 3];
        std::fs::write(&copy, &whole).unwrap();
        let file = OpenOptions::new().write(true).open(&copy).unwrap();
        file.write_all_at(&vec![pattern; size], (page * size) as u64).unwrap();
        drop(file);
        let examined = SqliteStore::examine(&copy).unwrap();
        assert!(!examined.is_sound(), "page {} of {} filled with {pattern:#x}", page + 1, whole.len() / size);
    }
}

/// Of the write-ahead log's file: what stands before the frames, and what before the page in each.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

#[tokio::test]
async fn a_damaged_write_ahead_log_loses_the_newest_commits_or_is_found_damaged() {
    const TASKS: i64 = 120;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chancery.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    for number in 0..TASKS {
        completed(&store, &format!("t{number:03}"), number).await;
    }
    // As a killed node leaves them: nobody has closed them.
    let (database, log) = (std::fs::read(&path).unwrap(), std::fs::read(folder.path().join("chancery.db-wal")).unwrap());
    let frame = FRAME_HEADER + page_size(&path);
    drop(store);
    let frames = (log.len() - WAL_HEADER) / frame;
    assert!(frames > 20, "{frames}");
    let mut lost_some = false;
    for damaged in (0..frames).step_by(frames / 20) {
        let copies = tempfile::tempdir().unwrap();
        let copy = copies.path().join("chancery.db");
        let mut log = log.clone();
        log[WAL_HEADER + damaged * frame + frame / 2] ^= 0x55;
        std::fs::write(&copy, &database).unwrap();
        std::fs::write(copies.path().join("chancery.db-wal"), log).unwrap();
        let Ok(store) = SqliteStore::open(&copy, SqliteOptions::default()) else { continue };
        let mut there = Vec::new();
        for number in 0..TASKS {
            there.push(matches!(store.find_any(&format!("t{number:03}")).await, Ok(Some(_))));
        }
        drop(store);
        if SqliteStore::examine(&copy).is_ok_and(|examined| examined.is_sound()) {
            assert!(there.is_sorted_by(|earlier, later| earlier >= later), "frame {damaged} of {frames}: {there:?}");
            lost_some |= there.contains(&false);
        }
    }
    assert!(lost_some, "the log matters");
}

#[tokio::test]
async fn what_does_not_fit_together_is_named_with_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path()).await;
    for (sql, named) in [
        (
            "UPDATE tasks SET seq = seq + 1 WHERE id = 't03'",
            "task t03: what is stored cannot be read: its log ends with entry 40",
        ),
        ("UPDATE tasks SET state = 4 WHERE id = 'ended'", "task ended: "),
        ("DELETE FROM log WHERE place = (SELECT num * 16777216 + 1 FROM tasks WHERE id = 't04')", "task t04: "),
        ("UPDATE log SET entries = '[]x' WHERE place = (SELECT num * 16777216 + 1 FROM tasks WHERE id = 't05')", "task t05: "),
        ("UPDATE decisions SET body = '{' WHERE id = 'd7'", "decision d7: "),
        ("DELETE FROM tasks WHERE id = 't06'", "table log: "),
        ("UPDATE ended_counts SET tasks = tasks + 1", "table ended_counts: "),
        ("DELETE FROM ended_counts", "table ended_counts: "),
    ] {
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        let database = Connection::open(&copy).unwrap();
        assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
        database.close().unwrap();
        let examined = SqliteStore::examine(&copy).unwrap();
        assert!(examined.damage.iter().any(|damage| damage.starts_with(named)), "{sql}: {examined:?}");
    }
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_not_taken_for_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let missing = SqliteStore::examine(folder.path().join("none.db")).unwrap_err().to_string();
    assert!(missing.contains("there is no such file"), "{missing}");
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let refused = SqliteStore::examine(&other).unwrap_err().to_string();
    assert!(refused.contains("some other program"), "{refused}");
}
