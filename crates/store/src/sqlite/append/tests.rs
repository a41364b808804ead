//! What one send costs the disk, counted: rows, index entries and pages. A change that makes a send dearer fails here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::{Append, Creation, Governed, LineageRecord, LogEntry, Progress, Spend, TaskRecord};
use chancery_protocol::{Caller, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp, TraceId, Version};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::PreparedAppend;
use crate::sqlite::health::Health;
use crate::sqlite::writer::{Job, StoreWriter};
use crate::sqlite::{SqliteOptions, connection, schema};

/// A page of the write-ahead log: the page and its header.
const FRAME_BYTES: u64 = 4096 + 24;
const LOG_HEADER_BYTES: u64 = 32;

/// How many rows and index entries each table and index has.
type Cells = BTreeMap<String, i64>;

struct Scene {
    folder: tempfile::TempDir,
    connection: Connection,
    health: Health,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chancery.db");
        std::fs::File::create(&path).unwrap();
        let mut connection = connection::to_write(&path, SqliteOptions::default()).unwrap();
        schema::migrate(&mut connection).unwrap();
        Self { folder, connection, health: Health::default() }
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

    /// Pages in the write-ahead log. No checkpoint runs here, so each commit adds the pages that it wrote.
    fn pages(&self) -> u64 {
        let log: &Path = &self.folder.path().join("chancery.db-wal");
        std::fs::metadata(log).map_or(0, |file| file.len().saturating_sub(LOG_HEADER_BYTES) / FRAME_BYTES)
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

/// One commit.
fn write(writer: &mut StoreWriter<'_>, appends: impl IntoIterator<Item = Append>) {
    let job = |append| {
        let (answer, answered) = oneshot::channel();
        (Job::Append(Box::new(PreparedAppend::new(append, Default::default()).unwrap()), answer), answered)
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
        (13, 48),
        "pages of a send that has its commits for itself, and of sixty-four that share theirs"
    );
}
