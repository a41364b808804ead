//! When SQLite or the disk says no: who hears of it, who does not, and that work goes on.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use chancery_core::{Append, LogEntry, Store, StoreError, SweepPlan};
use chancery_protocol::{Message, Role, TaskEvent, TaskState};
use chancery_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use crate::contract::sample::{at, change, creation, decision, governed_creation, pieces, spend, task};

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("chancery.db"), SqliteOptions::default()).unwrap()
}

/// Asks for all appends while somebody else holds the database, so that each shares its batch with a neighbour: the
/// writer may have taken some when it had to wait, and takes the others together afterwards.
async fn together(store: &SqliteStore, folder: &Path, appends: Vec<Append>) -> Vec<Result<(), StoreError>> {
    let other = Connection::open(folder.join("chancery.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let appends = appends.into_iter().map(async |append| store.append(append).await.map(drop));
    let release = async { other.execute_batch("ROLLBACK").unwrap() };
    // Polled in this order: each append is queued at its first poll.
    let (answers, ()) = futures::join!(futures::future::join_all(appends), release);
    answers
}

#[tokio::test]
async fn an_append_that_cannot_be_written_does_not_fail_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let tasks: Vec<_> = (0..20).map(|number| task(&format!("t{number:02}"))).collect();
    for task in &tasks {
        store.append(creation(task)).await.unwrap();
    }
    // Where the next row of one task's log belongs, there is one already.
    Connection::open(folder.path().join("chancery.db"))
        .unwrap()
        .execute("INSERT INTO log SELECT num * 16777216 + 2, 2, '[]' FROM tasks WHERE id = 't07'", [])
        .unwrap();

    let ends = tasks.iter().map(|task| change(task, 2, TaskState::Completed, at(2))).collect();
    let answers = together(&store, folder.path(), ends).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), number == 7, "{number}: {answer:?}");
    }
    let refusal = answers[7].as_ref().unwrap_err().to_string();
    assert!(refusal.starts_with("writing to the log failed"), "{refusal}");
    assert_eq!(store.find_any("t07").await.unwrap().unwrap().progress.seq, 1);
    assert_eq!(store.find_any("t08").await.unwrap().unwrap().progress.seq, 2);

    // The batch was undone and done again; its tasks are counted once.
    let keep_all = SweepPlan { keep_at_most: Some(19), at_most: 100, ..SweepPlan::default() };
    assert_eq!(store.sweep(keep_all).await.unwrap(), 0);
    let keep_fewer = SweepPlan { keep_at_most: Some(18), ..keep_all };
    assert_eq!(store.sweep(keep_fewer).await.unwrap(), 1);
}

#[tokio::test]
async fn an_append_whose_last_part_cannot_be_written_leaves_none_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (old, new, other) = (task("old"), task("new"), task("other"));
    store.append(governed_creation(&old, "old", 1)).await.unwrap();
    let trigger = "CREATE TRIGGER refusing BEFORE INSERT ON decisions WHEN new.id LIKE 'bad%'
                   BEGIN SELECT raise(ABORT, 'not this one'); END";
    Connection::open(folder.path().join("chancery.db")).unwrap().execute_batch(trigger).unwrap();

    let bad = |append: Append| Append { spend: Some(spend(9, Some(9))), decision: Some(decision("bad", None)), ..append };
    let good = Append { decision: Some(decision("good", Some("other"))), ..governed_creation(&other, "other", 1) };
    let batch = vec![bad(change(&old, 2, TaskState::Completed, at(2))), good, bad(governed_creation(&new, "old", 1))];
    let answers = together(&store, folder.path(), batch).await;
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);

    let after = store.find_any("old").await.unwrap().unwrap().progress;
    assert_eq!((after.seq, after.state), (1, TaskState::Submitted));
    assert_eq!(store.entries(&old.id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.governed(&old.id).await.unwrap().unwrap().spend, Default::default());
    assert_eq!(store.find_any("new").await.unwrap(), None);
    let tree: Vec<_> = store.tree(&old.id).await.unwrap().into_iter().map(|row| row.task).collect();
    assert_eq!(tree, ["old".into()]);
    assert_eq!(store.governed(&other.id).await.unwrap().unwrap().spend, Default::default());
    assert_eq!(store.decisions(10).await.unwrap().len(), 1);
    store.decide(decision("bad too", None)).await.unwrap_err();
    store.decide(decision("good too", None)).await.unwrap();
}

#[tokio::test]
async fn refusals_inside_a_batch_are_each_callers_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (one, two) = (task("t1"), task("t2"));
    let batch = vec![
        creation(&one),
        creation(&one),
        pieces(&one, 2, 3),
        pieces(&one, 2, 2),
        pieces(&two, 2, 2),
        creation(&two),
        pieces(&one, 4, 4),
    ];
    let answers = together(&store, folder.path(), batch).await;
    let recorded: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(recorded, [true, false, true, false, false, true, true]);
    assert_eq!(store.find_any("t1").await.unwrap().unwrap().progress.seq, 4);
}

/// An entry of about this many bytes.
fn heavy(id: &str, bytes: usize) -> Append {
    let task = task(id);
    let message = Message::text(Role::User, "m", "x".repeat(bytes));
    let entry = LogEntry { seq: 1, at: at(1), event: TaskEvent::Said(Arc::new(message)) };
    Append { entries: vec![Arc::new(entry)], ..creation(&task) }
}

const LIMITED: &str = "CHANCERY_TEST_LIMITED_FOLDER";
const NAME: &str = "contract::faults::a_full_disk_fails_the_batch_and_the_next_one_starts_clean";

/// Files cannot grow beyond a limit that the shell sets, as on a disk that is full.
#[test]
fn a_full_disk_fails_the_batch_and_the_next_one_starts_clean() {
    if let Some(folder) = std::env::var_os(LIMITED) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(write_on_a_full_disk(folder.as_ref()));
    }
    let folder = tempfile::tempdir().unwrap();
    // 2048 blocks of 512 bytes. Without the signal, a write beyond that is an error like any other.
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

    // Seen from a process without the limit: what was answered is there, what was refused is not.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(folder.path());
        for (id, there) in [("before", true), ("at commit", false), ("at write", false), ("after", true)] {
            assert_eq!(store.find_any(id).await.unwrap().is_some(), there, "{id}");
        }
        assert_eq!(store.entries(&"after".into(), 0, 10).await.unwrap().len(), 3);
    });
}

async fn write_on_a_full_disk(folder: &Path) {
    let store = open(folder);
    store.append(creation(&task("before"))).await.unwrap();
    // Small enough to wait in SQLite's cache for the commit, too large for the file.
    let neighbours: Vec<_> = (0..20).map(|number| task(&format!("neighbour {number}"))).collect();
    let mut batch: Vec<_> = neighbours.iter().map(creation).collect();
    batch.insert(10, heavy("at commit", 1_200_000));
    let mut answers = together(&store, folder, batch).await;
    let refusal = answers.remove(10).unwrap_err().to_string();
    assert!(refusal.starts_with("writing to the log failed"), "{refusal}");
    assert!(answers.iter().any(Result::is_err), "whoever shared the commit shares its failure");
    for (task, answer) in neighbours.iter().zip(&answers) {
        assert_eq!(store.find_any(task.id.as_str()).await.unwrap().is_some(), answer.is_ok());
    }
    // Too large for the cache as well: fails before the commit.
    store.append(heavy("at write", 8_000_000)).await.unwrap_err();

    let after = task("after");
    store.append(creation(&after)).await.unwrap();
    store.append(pieces(&after, 2, 3)).await.unwrap();
    store.check().await.unwrap();
    assert_eq!(store.find_any("after").await.unwrap().unwrap().progress.state, TaskState::Working);
}
