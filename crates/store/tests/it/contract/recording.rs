//! The record: what it holds of each write, that a restart goes on with it, and that rows changed behind its back are found.

use std::path::Path;
use std::sync::Arc;

use chancery_core::{Append, Appended, Block, FreezeScope, RecordNote, Store};
use chancery_evidence::export::{ExportFault, ExportSelection, RecordRange, examine, export};
use chancery_evidence::record::{Entry, EvidenceConfig, NOTHING, Recorder, entries_of, text_of, types};
use chancery_evidence::{bundle, record};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_protocol::{TaskState, Timestamp};
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};
use rusqlite::Connection;

use crate::contract::sample::{at, change, creation, decision, pieces, task};

pub(crate) fn scribe() -> Arc<Recorder> {
    let recorder = Recorder::new(&EvidenceConfig { segment_entries: 16, checkpoint_entries: 4, ..EvidenceConfig::default() });
    let mut ring = KeyRing::default();
    ring.ensure(KeyUse::Receipts, None, Algorithm::EdDsa, at(0)).unwrap();
    recorder.take_keys(&ring, at(0));
    Arc::new(recorder)
}

fn open(path: &Path, scribe: &Arc<Recorder>) -> Arc<dyn Store> {
    let scribe: Arc<dyn chancery_core::Scribe> = scribe.clone();
    Arc::new(SqliteStore::open_recording(path, SqliteOptions::default(), Some(scribe)).unwrap())
}

/// Six tasks that are made and end, a refusal, a task that is taken back, and what nothing came of.
pub(crate) async fn fill(store: &dyn Store) {
    for number in 0..6 {
        let task = task(&format!("t{number}"));
        store.append(creation(&task)).await.unwrap();
        store.append(pieces(&task, 2, 3)).await.unwrap();
        store.append(change(&task, 4, TaskState::Completed, at(number + 1))).await.unwrap();
    }
    store.decide(decision("d", None)).await.unwrap();
    let gone = task("gone");
    store.append(creation(&gone)).await.unwrap();
    let note = |at| RecordNote::Withdrawn { task: gone.id.clone(), at };
    assert!(store.withdraw(&gone.id, Some(note(at(10)))).await.unwrap());
    assert!(!store.withdraw(&gone.id, Some(note(at(11)))).await.unwrap(), "once");
    let thaw = RecordNote::Thawed { scope: FreezeScope::Everything, by: "operator".into(), at: at(12) };
    assert!(!store.thaw(&FreezeScope::Everything, Some(thaw)).await.unwrap(), "nothing was frozen");
    let out_of_turn = pieces(&task("t0"), 9, 9);
    assert!(store.append(out_of_turn).await.is_err());
}

pub(crate) const ENTRIES: u64 = 6 * 4 + 1 + 1 + 1;

pub(crate) async fn entries(store: &dyn Store) -> Vec<Entry> {
    let (mut prev, mut all) = (NOTHING, Vec::new());
    for block in store.record().unwrap().blocks(0, usize::MAX).await.unwrap() {
        let entries = entries_of(&block, prev).unwrap();
        prev = block.hash;
        all.extend(entries);
    }
    all
}

async fn kinds(store: &dyn Store) -> Vec<String> {
    entries(store).await.into_iter().map(|entry| entry.kind).collect()
}

#[tokio::test]
async fn every_write_that_happened_is_recorded_once_and_none_that_did_not() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = open(&folder.path().join("chancery.db"), &scribe());
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::recording(scribe()));
    for store in [&sqlite, &memory] {
        fill(&**store).await;
        let kinds = kinds(&**store).await;
        assert_eq!(kinds.len() as u64, ENTRIES, "{kinds:?}");
        assert_eq!(kinds[..4], [types::REQUESTED, types::ARTIFACT, types::ARTIFACT, types::UPDATED]);
        assert_eq!(kinds[24..], [types::REFUSED, types::REQUESTED, types::WITHDRAWN]);
    }
    assert_eq!(kinds(&*sqlite).await, kinds(&*memory).await, "both stores tell the same");
    assert!(MemoryStore::new().record().is_none());
}

#[tokio::test]
async fn a_name_that_is_known_records_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("chancery.db"), &scribe());
    let named = |id: &str| {
        let mut record = (*task(id)).clone();
        record.client_task_id = Some("mine".into());
        Append { task: Arc::new(record.clone()), ..creation(&Arc::new(record)) }
    };
    assert_eq!(store.append(named("a")).await.unwrap(), Appended::Recorded);
    assert!(matches!(store.append(named("b")).await.unwrap(), Appended::ClientIdKnown { .. }));
    assert_eq!(kinds(&*store).await, [types::REQUESTED]);
}

pub(crate) async fn stand(store: &dyn Store) -> Result<RecordRange, ExportFault> {
    examine(&*store.record().unwrap()).await
}

async fn close(store: Arc<dyn Store>) {
    store.close(std::time::Duration::from_secs(20)).await.unwrap();
}

#[tokio::test]
async fn a_restart_goes_on_with_the_record_and_old_segments_go_without_breaking_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, scribe) = (folder.path().join("chancery.db"), scribe());
    let store = open(&path, &scribe);
    fill(&*store).await;
    let before = stand(&*store).await.unwrap();
    close(store).await;
    let store = open(&path, &scribe);
    let again = stand(&*store).await.unwrap();
    assert_eq!(again, before);
    let more = task("more");
    store.append(creation(&more)).await.unwrap();
    assert_eq!(stand(&*store).await.unwrap().end, ENTRIES + 1);
    let kept = store.record().unwrap();
    assert!(kept.forget(16).await.unwrap() > 0);
    assert_eq!(kept.forget(16).await.unwrap(), 0);
    let stand = stand(&*store).await.unwrap();
    assert_eq!((stand.first, stand.end, stand.sealed_segments), (16, ENTRIES + 1, 1));
    let ends: Vec<_> = kept.checkpoints(0).await.unwrap().iter().map(|one| (one.end, one.sealed)).collect();
    assert_eq!(ends, [(16, true), (20, false), (24, false), (28, false)], "a seal stands for those before it");
    let all = export(&*kept, &ExportSelection::Between(None, None), at(30)).await.unwrap();
    assert_eq!(bundle::verify(&all, &[]).unwrap().1.entries as u64, ENTRIES + 1 - 16);
}

/// The blocks as they lie there.
fn blocks(database: &Connection) -> Vec<Block> {
    let mut rows =
        database.prepare("SELECT first, count, at, hash, ifnull(shorthand, entries) FROM record ORDER BY first").unwrap();
    let read = rows.query_map([], |row| {
        let at = Timestamp::from_micros(row.get(2)?);
        Ok(Block { first: row.get(0)?, count: row.get(1)?, at, hash: row.get(3)?, entries: row.get_ref(4)?.as_bytes()?.to_vec() })
    });
    read.unwrap().map(Result::unwrap).collect()
}

/// Lines in JSON, as they were kept before there was a shorthand, with other words in them.
fn write_out(database: &Connection, block: &Block, from: &str, to: &str) -> Block {
    let text = text_of(block).unwrap().replace(from, to);
    let put = "UPDATE record SET entries = ?2, shorthand = NULL WHERE first = ?1";
    database.execute(put, (block.first, &text)).unwrap();
    Block { entries: text.into_bytes(), ..block.clone() }
}

fn write_all_out(database: &Connection, from: &str, to: &str) {
    blocks(database).iter().for_each(|block| drop(write_out(database, block, from, to)));
}

/// Changes an entry and makes every hash from there on right again, as somebody would who knows the format but not the key.
fn recompute(database: &Connection) {
    let (mut prev, mut changed) = (NOTHING, false);
    for mut block in blocks(database) {
        if !changed && text_of(&block).unwrap().contains("TASK_STATE_COMPLETED") {
            block = write_out(database, &block, "TASK_STATE_COMPLETED", "TASK_STATE_REJECTED");
            changed = true;
        }
        prev = entries_of(&block, prev).unwrap().last().unwrap().hash;
        database.execute("UPDATE record SET hash = ?2 WHERE first = ?1", (block.first, prev.as_slice())).unwrap();
    }
}

/// Takes the tasks apart into the two tables that versions up to 10 had, as far as version 5 had their columns.
const TWO_ROWS_PER_TASK: &str = "
    CREATE TABLE ledger (task INTEGER PRIMARY KEY, root TEXT, trace BLOB NOT NULL, parent TEXT, depth INTEGER NOT NULL,
        settled_usd INTEGER NOT NULL, settled_tokens INTEGER NOT NULL, settled_tasks INTEGER NOT NULL,
        reserved_usd INTEGER NOT NULL, reserved_tokens INTEGER NOT NULL, reserved_tasks INTEGER NOT NULL,
        overrun_usd INTEGER NOT NULL, overrun_tokens INTEGER NOT NULL, overrun_tasks INTEGER NOT NULL,
        settled_at INTEGER, estimated_by INTEGER NOT NULL, known_by INTEGER, facts TEXT NOT NULL) STRICT;
    INSERT INTO ledger SELECT num, root, trace, parent, depth, settled_usd, settled_tokens, settled_tasks, reserved_usd,
        reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, estimated_by, known_by, facts
        FROM tasks WHERE trace IS NOT NULL;
    DROP INDEX ledger_trees; DROP INDEX ledger_roots; DROP INDEX tasks_open; DROP INDEX tasks_finished; DROP INDEX tasks_listed;
    ALTER TABLE tasks ADD COLUMN key_fingerprint BLOB; ALTER TABLE tasks ADD COLUMN key_expires_at INTEGER;
    DROP TABLE snapshots; DROP TABLE ended_counts;";

#[tokio::test]
async fn a_record_from_before_the_shorthand_is_read_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, scribe) = (folder.path().join("chancery.db"), scribe());
    let store = open(&path, &scribe);
    fill(&*store).await;
    let before = (stand(&*store).await.unwrap(), entries(&*store).await);
    close(store).await;
    let database = Connection::open(&path).unwrap();
    write_all_out(&database, "", "");
    // As version 5 left it.
    database.execute_batch(TWO_ROWS_PER_TASK).unwrap();
    let later = "SELECT name FROM pragma_table_info('tasks') WHERE cid >= 17 AND name NOT LIKE 'key%'";
    let columns: Vec<String> = {
        let mut statement = database.prepare(later).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for column in columns {
        database.execute_batch(&format!("ALTER TABLE tasks DROP COLUMN {column}")).unwrap();
    }
    let keys = "CREATE UNIQUE INDEX tasks_key ON tasks (tenant, owner, key) WHERE key IS NOT NULL;
                CREATE INDEX tasks_key_expiry ON tasks (key_expires_at) WHERE key IS NOT NULL; DROP TABLE keys;
                DROP TABLE nonces; ALTER TABLE spent DROP COLUMN root;";
    database.execute_batch(keys).unwrap();
    database.execute_batch("ALTER TABLE record DROP COLUMN shorthand; PRAGMA user_version = 5").unwrap();
    drop(database);
    let store = open(&path, &scribe);
    assert_eq!((stand(&*store).await.unwrap(), entries(&*store).await), before);
    store.append(creation(&task("later"))).await.unwrap();
    assert_eq!(stand(&*store).await.unwrap().end, ENTRIES + 1);
    let all = export(&*store.record().unwrap(), &ExportSelection::Between(None, None), at(30)).await.unwrap();
    assert_eq!(bundle::verify(&all, &[]).unwrap().1.entries as u64, ENTRIES + 1);
}

#[tokio::test]
async fn rows_that_were_changed_in_the_database_are_found_and_named() {
    let run = |database: &Connection, sql: &str| assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    let replace = "UPDATE record SET shorthand = unhex(replace(hex(shorthand), hex('t4'), hex('t5')))";
    let drop_one = "DELETE FROM record WHERE first = (SELECT first FROM record ORDER BY first LIMIT 1 OFFSET 2)";
    let move_one =
        "UPDATE record SET first = first + 1000 WHERE first = (SELECT first FROM record ORDER BY first LIMIT 1 OFFSET 2)";
    let cut = "DELETE FROM record WHERE first >= 23";
    let cut_segment = "DELETE FROM record WHERE first BETWEEN 8 AND 15";
    let forge =
        "UPDATE record_checkpoints SET body = replace(body, '\"count\":4', '\"count\":3'), end = end - 1 WHERE number = 5";
    let exchange =
        "UPDATE record_checkpoints SET (body, signature) = (SELECT body, signature FROM record_checkpoints WHERE number = 6)
                    WHERE number = 5";
    type Change<'a> = Box<dyn Fn(&Connection) + 'a>;
    let changes: Vec<(&str, Change<'_>)> = vec![
        ("are not as they were written", Box::new(|database| run(database, replace))),
        ("are not as they were written", Box::new(|database| write_all_out(database, "_COMPLETED", "_REJECTED"))),
        ("are not as they were written", Box::new(|database| write_all_out(database, "{\"at\":", "{\"at\":-1"))),
        ("does not agree with the record", Box::new(recompute)),
        ("are missing", Box::new(|database| run(database, drop_one))),
        ("are missing", Box::new(|database| run(database, move_one))),
        (
            "are not as they were written",
            Box::new(|database| run(database, "UPDATE record SET count = 1 << 60 WHERE first = (SELECT max(first) FROM record)")),
        ),
        ("were signed and are gone", Box::new(|database| run(database, cut))),
        ("are missing", Box::new(|database| run(database, cut_segment))),
        ("is not signed by the key it carries", Box::new(|database| run(database, forge))),
        ("differs from the stored one", Box::new(|database| run(database, exchange))),
    ];
    for (fault, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let (path, scribe) = (folder.path().join("chancery.db"), scribe());
        let store = open(&path, &scribe);
        fill(&*store).await;
        store.record().unwrap().sign(at(20)).await.unwrap();
        assert_eq!(stand(&*store).await.unwrap().signed, ENTRIES);
        close(store).await;
        change(&Connection::open(&path).unwrap());
        let store = open(&path, &scribe);
        let found = stand(&*store).await.unwrap_err().to_string();
        assert!(found.contains(fault), "{fault}: {found}");
        // A node that goes on with it does not cover it up.
        store.append(creation(&task("later"))).await.unwrap();
        let later = stand(&*store).await.unwrap_err().to_string();
        assert!(later.contains(fault) || later.contains("are missing"), "{fault}: {later}");
        let exported = export(&*store.record().unwrap(), &ExportSelection::Between(None, None), at(30)).await;
        assert!(matches!(exported, Err(ExportFault::Record(_))), "{fault}: {:?}", exported.map(|bundle| record::hex(&bundle)));
    }
}

#[tokio::test]
async fn a_checkpoint_that_was_deleted_from_the_file_is_named_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (path, scribe) = (folder.path().join("chancery.db"), scribe());
    let store = open(&path, &scribe);
    fill(&*store).await;
    let numbers: Vec<u64> =
        store.record().unwrap().checkpoints(0).await.unwrap().iter().filter(|one| !one.sealed).map(|one| one.number).collect();
    assert!(numbers.len() > 1, "{numbers:?}");
    close(store).await;
    let deleted = Connection::open(&path).unwrap().execute("DELETE FROM record_checkpoints WHERE number = ?1", [numbers[0]]);
    assert_eq!(deleted.unwrap(), 1);
    let store = open(&path, &scribe);
    let fault = stand(&*store).await.unwrap_err().to_string();
    assert!(fault.contains(&format!("checkpoint {} was removed", numbers[0])), "{fault}");
}
