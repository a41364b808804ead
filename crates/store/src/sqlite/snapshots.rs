//! Snapshots of tasks as rows: the task without its artifacts, and the artifacts beside it.

use std::sync::Arc;

use chancery_core::{StoreError, TaskSnapshot};
use chancery_protocol::objects::from_json;
use chancery_protocol::{Artifact, Task, TaskId};
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::Serialize;

use super::fault::SqliteFault;
use super::schema::MOST_ENTRIES;

/// A snapshot in the form of its row. It is made where the snapshot is handed over, so that the one writer only writes.
#[derive(Debug)]
pub(super) struct SnapshotRow {
    task: TaskId,
    seq: i64,
    body: String,
    artifacts: String,
}

impl SnapshotRow {
    pub(super) fn new(snapshot: &TaskSnapshot) -> Result<Self, StoreError> {
        let task = &snapshot.task;
        let body = Task { artifacts: Vec::new(), ..Task::clone(task) };
        let seq = snapshot.seq.min(MOST_ENTRIES) as i64;
        Ok(Self { task: task.id.clone(), seq, body: encode(&body)?, artifacts: encode(&task.artifacts)? })
    }
}

fn encode(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::new(format!("a snapshot cannot be written as JSON: {error}")))
}

/// Part of a batch's transaction. Neither an older snapshot nor one of entries that are not there replaces what is kept.
pub(super) fn keep(connection: &Connection, row: &SnapshotRow) -> Result<(), SqliteFault> {
    let sql = "INSERT INTO snapshots SELECT num, ?2, ?3, ?4 FROM tasks WHERE id = ?1 AND seq >= ?2
               ON CONFLICT (task) DO UPDATE SET seq = excluded.seq, body = excluded.body, artifacts = excluded.artifacts
               WHERE excluded.seq > snapshots.seq";
    connection.prepare_cached(sql)?.execute((row.task.as_str(), row.seq, &row.body, &row.artifacts))?;
    Ok(())
}

pub(super) fn of_task(connection: &Connection, task: &TaskId, artifacts: bool) -> Result<Option<TaskSnapshot>, SqliteFault> {
    let sql = if artifacts {
        "SELECT snapshots.seq, body, artifacts FROM tasks JOIN snapshots ON task = num WHERE id = ?1"
    } else {
        "SELECT snapshots.seq, body FROM tasks JOIN snapshots ON task = num WHERE id = ?1"
    };
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([task.as_str()], |row| Ok(snapshot(row, artifacts))).optional()?.transpose()
}

/// The same by the number of the task.
pub(super) fn of_number(connection: &Connection, num: i64) -> Result<Option<TaskSnapshot>, SqliteFault> {
    let mut statement = connection.prepare_cached("SELECT seq, body, artifacts FROM snapshots WHERE task = ?1")?;
    statement.query_row([num], |row| Ok(snapshot(row, true))).optional()?.transpose()
}

fn snapshot(row: &Row<'_>, artifacts: bool) -> Result<TaskSnapshot, SqliteFault> {
    let text = |at: usize| row.get_ref(at).and_then(|value| value.as_str().map_err(Into::into));
    let unreadable = |error: serde_json::Error| SqliteFault::unreadable(format!("a snapshot: {error}"));
    let mut task: Task = from_json(text(1)?).map_err(unreadable)?;
    if artifacts {
        let found: Vec<Artifact> = from_json(text(2)?).map_err(unreadable)?;
        task.artifacts = found.into_iter().map(Arc::new).collect();
    }
    Ok(TaskSnapshot { seq: row.get(0)?, task: Arc::new(task) })
}
