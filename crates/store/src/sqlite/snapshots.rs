//! Snapshots of tasks as rows: the task without its artifacts, and the artifacts beside it.

use chancery_core::TaskSnapshot;
use chancery_protocol::TaskId;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::fault::SqliteFault;
use crate::rows::snapshots::{SnapshotRow, decode};

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
    Ok(decode(row.get(0)?, text(1)?, if artifacts { Some(text(2)?) } else { None })?)
}
