//! What one send costs the disk, counted: statements, rows, index entries, pages and bytes. A change that makes a send dearer fails
//! here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery_core::budget::Amount;
use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::{
    Append, Creation, Governed, LineageRecord, LogEntry, MicroUsd, Progress, RecordEnd, RecordedWrite, Scribe as _, Spend,
    SweepPlan, TaskRecord,
};
use chancery_evidence::record::{EvidenceConfig, Recorder};
use chancery_identity::{Algorithm, KeyRing, KeyUse};
use chancery_protocol::{Caller, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp, TraceId, Version};
use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use tokio::sync::oneshot;

use super::PreparedAppend;
use crate::sqlite::answers::AppendAnswer;
use crate::sqlite::health::Health;
use crate::sqlite::write_job::{WriteOrder, write_job};
use crate::sqlite::writer::{Job, StoreWriter};
use crate::sqlite::{SqliteOptions, connection, schema};

/// A page of the write-ahead log: the page and its header.
const FRAME_BYTES: u64 = 4096 + 24;
const LOG_HEADER_BYTES: u64 = 32;

/// All else that a send writes to is an index.
const TABLES: [&str; 5] = ["ended_counts", "log", "record", "spent", "tasks"];

/// How many rows and index entries each table and index has.
type Cells = BTreeMap<String, i64>;

struct Scene {
    folder: tempfile::TempDir,
    connection: Connection,
    health: Health,
    statements: Arc<AtomicU64>,
    /// Of a node that keeps a record.
    recorder: Recorder,
}

/// What something cost: statements, changed rows, index entries that came or went, pages and bytes of the write-ahead log.
#[derive(Debug, PartialEq, Eq)]
struct WriteCounts {
    statements: u64,
    rows: u64,
    index_entries: u64,
    pages: u64,
    bytes: u64,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chancery.db");
        std::fs::File::create(&path).unwrap();
        let mut connection = connection::to_write(&path, SqliteOptions::default()).unwrap();
        schema::migrate(&mut connection).unwrap();
        let statements = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&statements);
        let count = move |_: TraceEvent<'_>| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count)).unwrap();
        let (recorder, mut ring, now) =
            (Recorder::new(&EvidenceConfig::default()), KeyRing::default(), Timestamp::from_micros(0));
        ring.ensure(KeyUse::Receipts, None, Algorithm::EdDsa, now).unwrap();
        recorder.take_keys(&ring, now);
        Self { folder, connection, health: Health::default(), statements, recorder }
    }

    fn recording_writer(&self) -> StoreWriter<'_> {
        let chain = self.recorder.go_on(RecordEnd::default());
        StoreWriter::new(&self.connection, SqliteOptions::default(), Some(chain), &self.health).unwrap()
    }

    /// What the steps cost together, each of which only adds index entries or only takes them away.
    fn costs(&self, steps: &mut [&mut dyn FnMut()]) -> WriteCounts {
        let (pages, bytes, rows) = (self.pages(), self.log_bytes(), self.connection.total_changes());
        let (mut statements, mut index_entries, mut cells) = (0, 0, self.cells());
        for step in steps {
            self.statements.store(0, Ordering::Relaxed);
            step();
            statements += self.statements.load(Ordering::Relaxed);
            let after = self.cells();
            let changed = difference(&cells, &after).into_iter().filter(|(name, _)| !TABLES.contains(&name.as_str()));
            index_entries += changed.map(|(_, change)| change.unsigned_abs()).sum::<u64>();
            cells = after;
        }
        WriteCounts {
            statements,
            rows: self.connection.total_changes() - rows,
            index_entries,
            pages: self.pages() - pages,
            bytes: self.log_bytes() - bytes,
        }
    }

    fn writer(&self) -> StoreWriter<'_> {
        StoreWriter::new(&self.connection, SqliteOptions::default(), None, &self.health).unwrap()
    }

    fn cells(&self) -> Cells {
        let sql = "SELECT name, sum(ncell) FROM dbstat WHERE pagetype = 'leaf' GROUP BY name";
        let mut statement = self.connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.folder.path().join("chancery.db-wal")).map_or(0, |file| file.len())
    }

    /// Pages in the write-ahead log. No checkpoint runs here, so each commit adds the pages that it wrote.
    fn pages(&self) -> u64 {
        self.log_bytes().saturating_sub(LOG_HEADER_BYTES) / FRAME_BYTES
    }
}

/// What was added and what was taken away, without what stayed.
fn difference(before: &Cells, after: &Cells) -> Vec<(String, i64)> {
    let changed = after.iter().map(|(name, count)| (name.clone(), count - before.get(name).unwrap_or(&0)));
    changed.filter(|(_, change)| *change != 0).collect()
}

fn record(number: u64) -> Arc<TaskRecord> {
    Arc::new(TaskRecord {
        id: format!("019a9777-0000-7000-8000-{number:012}").into(),
        context_id: "019a9777-ffff-7000-8000-000000000000".into(),
        agent: "echo".into(),
        owner: Caller::new("default", "anonymous"),
        dialect: Version::V1_0.into(),
        client_task_id: None,
        created_at: Timestamp::from_micros(1_000 + number as i64),
    })
}

fn append(task: &Arc<TaskRecord>, state: TaskState, seq: u64, event: TaskEvent) -> Append {
    let at = Timestamp::from_micros(task.created_at.micros() + seq as i64);
    Append {
        task: Arc::clone(task),
        creation: None,
        progress: Progress { state, status_at: at, seq, bytes: seq * 100, message_only: false },
        entries: vec![Arc::new(LogEntry { seq, at, event })],
        link: None,
        governed: None,
        spend: None,
        decision: None,
        register: None,
        notes: Vec::new(),
        answers: None,
    }
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, message: None, timestamp: None, unknown: Default::default() }
}

/// Makes a task that is a root, as most are.
fn made(number: u64) -> Append {
    let task = record(number);
    let created = Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: status(TaskState::Submitted),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    };
    let kinship = LineageRecord {
        root: task.id.clone(),
        trace: TraceId(u128::from(number)),
        made: true,
        parent: None,
        depth: 0,
        path: AgentPath::new(["caller/anonymous".into()]),
        attribution: Attribution::Root,
        claimed: None,
        skill: None,
        allowance: None,
    };
    let governed = Governed { kinship: Arc::new(kinship), spend: Spend::default(), verdicts: [].into() };
    Append {
        creation: Some(Creation::default()),
        governed: Some(Box::new(governed)),
        ..append(&task, TaskState::Submitted, 1, TaskEvent::Created(Arc::new(created)))
    }
}

/// Ends the task, and says what it cost.
fn ended(number: u64) -> Append {
    let change = StatusChange { status: status(TaskState::Completed), metadata: None, unknown: Default::default() };
    let task = record(number);
    let settled_at = Some(Timestamp::from_micros(task.created_at.micros() + 2));
    Append {
        spend: Some(Spend { settled_at, ..Spend::default() }),
        ..append(&task, TaskState::Completed, 2, TaskEvent::Status(change))
    }
}

/// The same as a node without prices sends it, for which each task counts as one.
fn counted(number: u64) -> [Append; 2] {
    let (one, mut made, mut ended) = (Amount::of_task(MicroUsd(0), 0), made(number), ended(number));
    made.governed.as_mut().unwrap().spend.reserved = one;
    ended.spend.as_mut().unwrap().settled = one;
    [made, ended]
}

/// Retention of a node that keeps a thousand tasks.
fn sweep(writer: &mut StoreWriter<'_>) {
    let spent_since = Some(Timestamp::from_micros(0));
    let plan = SweepPlan { keep_at_most: Some(1000), at_most: 500, spent_since, ..SweepPlan::default() };
    let (answer, mut answered) = oneshot::channel();
    let sweep = move |writer: &mut StoreWriter<'_>| writer.sweep(plan);
    writer.write(&mut vec![Job::Write(write_job("forgetting old tasks", WriteOrder::Tidying, sweep, answer))]);
    answered.try_recv().unwrap().unwrap();
}

/// One commit, with a record.
fn write_recorded(writer: &mut StoreWriter<'_>, recorder: &Recorder, appends: impl IntoIterator<Item = Append>) {
    let job = |append: Append| {
        let lines = recorder.write(RecordedWrite::Append(&append));
        Job::Append(Box::new(PreparedAppend::new(append, lines).unwrap()), AppendAnswer::here(oneshot::channel().0))
    };
    writer.write(&mut appends.into_iter().map(job).collect());
}

/// One commit.
fn write(writer: &mut StoreWriter<'_>, appends: impl IntoIterator<Item = Append>) {
    let job = |append| {
        let (answer, answered) = oneshot::channel();
        (Job::Append(Box::new(PreparedAppend::new(append, Default::default()).unwrap()), AppendAnswer::here(answer)), answered)
    };
    let (mut jobs, answers): (Vec<_>, Vec<_>) = appends.into_iter().map(job).unzip();
    writer.write(&mut jobs);
    for mut answer in answers {
        assert_eq!(answer.try_recv().unwrap().unwrap(), chancery_core::Appended::Recorded);
    }
}

fn named(changes: &[(&str, i64)]) -> Vec<(String, i64)> {
    changes.iter().map(|(name, change)| ((*name).to_owned(), *change)).collect()
}

#[test]
fn a_task_is_made_by_two_rows_and_three_index_entries_and_ended_by_three_rows_and_three() {
    let scene = Scene::new();
    let mut writer = scene.writer();
    let rows = |before: u64| scene.connection.total_changes() - before;

    let (before, changes) = (scene.cells(), scene.connection.total_changes());
    write(&mut writer, [made(1)]);
    let open = scene.cells();
    assert_eq!(rows(changes), 2, "the task's row and its first entry");
    let expected = [("ledger_roots", 1), ("log", 1), ("sqlite_autoindex_tasks_1", 1), ("tasks", 1), ("tasks_open", 1)];
    assert_eq!(difference(&before, &open), named(&expected));

    let changes = scene.connection.total_changes();
    write(&mut writer, [ended(1)]);
    assert_eq!(rows(changes), 3, "the task's row again, its last entries, and the count of ended tasks");
    let expected = [("ended_counts", 1), ("log", 1), ("tasks_finished", 1), ("tasks_listed", 1), ("tasks_open", -1)];
    assert_eq!(difference(&open, &scene.cells()), named(&expected));
}

#[test]
fn a_lone_send_writes_few_pages_and_sixty_four_in_one_commit_share_them() {
    let scene = Scene::new();
    let mut writer = scene.writer();
    write(&mut writer, (1..=1000).map(made));
    write(&mut writer, (1..=1000).map(ended));

    let before = scene.pages();
    write(&mut writer, [made(1001)]);
    write(&mut writer, [ended(1001)]);
    let alone = scene.pages() - before;

    let before = scene.pages();
    write(&mut writer, (2001..=2064).map(made));
    write(&mut writer, (2001..=2064).map(ended));
    let together = scene.pages() - before;
    assert_eq!(
        (alone, together),
        (13, 45),
        "pages of a send that has its commits for itself, and of sixty-four that share theirs"
    );
}

#[test]
fn a_send_with_the_record_and_retention_costs_no_more_than_it_did() {
    let scene = Scene::new();
    let writer = std::cell::RefCell::new(scene.recording_writer());
    let write = |appends: Vec<Append>| write_recorded(&mut writer.borrow_mut(), &scene.recorder, appends);
    let send = |numbers: std::ops::RangeInclusive<u64>| {
        let (made, ended): (Vec<_>, Vec<_>) = numbers.map(|number| counted(number).into()).unzip();
        scene.costs(&mut [&mut || write(made.clone()), &mut || write(ended.clone()), &mut || sweep(&mut writer.borrow_mut())])
    };
    send(1..=1000);
    let alone = send(1001..=1001);
    assert_eq!(alone, WriteCounts { statements: 24, rows: 12, index_entries: 11, pages: 24, bytes: 98_880 });
    let together = send(1002..=1065);
    assert_eq!(together, WriteCounts { statements: 276, rows: 453, index_entries: 637, pages: 75, bytes: 309_000 });
}

/// What the requester of an append waits on.
type Answered = oneshot::Receiver<Result<chancery_core::Appended, chancery_core::StoreError>>;

fn awaited(number: u64) -> (Job, Answered) {
    let (answer, answered) = oneshot::channel();
    let prepared = Box::new(PreparedAppend::new(made(number), Default::default()).unwrap());
    (Job::Append(prepared, AppendAnswer::here(answer)), answered)
}

#[tokio::test]
async fn a_batch_is_answered_from_the_runtime_of_its_requesters_and_a_lone_append_at_once() {
    let scene = Scene::new();
    let mut writer = scene.writer();
    let is_told = |answered: &mut Answered| answered.try_recv().is_ok_and(|outcome| outcome.is_ok());
    let (lone, mut answered) = awaited(1);
    writer.write(&mut vec![lone]);
    assert!(is_told(&mut answered));

    let (mut jobs, mut answers): (Vec<_>, Vec<_>) = (2..=4).map(awaited).unzip();
    // This one waits on no runtime.
    let (job, mut elsewhere) = std::thread::spawn(|| awaited(5)).join().unwrap();
    jobs.push(job);
    writer.write(&mut jobs);
    assert!(is_told(&mut elsewhere));
    assert!(!answers.iter_mut().any(is_told), "the runtime has not run since");
    tokio::task::yield_now().await;
    assert!(answers.iter_mut().all(is_told));
}

#[test]
fn a_batch_is_answered_when_the_runtime_of_its_requesters_has_stopped() {
    let scene = Scene::new();
    let mut writer = scene.writer();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut jobs, mut answers): (Vec<_>, Vec<_>) = runtime.block_on(async { (1..=3).map(awaited).unzip() });
    drop(runtime);
    writer.write(&mut jobs);
    assert!(answers.iter_mut().all(|answered| answered.try_recv().unwrap().is_ok()));
}
