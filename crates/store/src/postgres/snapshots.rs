//! Snapshots of tasks as rows: the task without its artifacts, and the artifacts beside it.

use chancery_core::TaskSnapshot;
use chancery_protocol::TaskId;
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, as_text, sought};
use super::fault::PostgresFault;
use crate::rows::snapshots::{SnapshotRow, decode};

/// Part of a batch's transaction. Neither an older snapshot nor one of entries that are not there replaces what is kept.
pub(super) async fn keep<D: DatabaseSession>(db: &D, row: &SnapshotRow) -> Result<(), PostgresFault> {
    let sql = "INSERT INTO snapshots SELECT num, $2, $3, $4 FROM tasks WHERE id = $1 AND seq >= $2
               ON CONFLICT (task) DO UPDATE SET seq = excluded.seq, body = excluded.body, artifacts = excluded.artifacts
               WHERE excluded.seq > snapshots.seq";
    db.execute(sql, &[&row.task.as_str(), &row.seq, &row.body.as_bytes(), &row.artifacts.as_bytes()]).await?;
    Ok(())
}

pub(super) async fn of_task<D: DatabaseSession>(
    db: &D,
    task: &TaskId,
    artifacts: bool,
) -> Result<Option<TaskSnapshot>, PostgresFault> {
    let sql = if artifacts {
        "SELECT snapshots.seq, body, artifacts FROM tasks JOIN snapshots ON task = num WHERE id = $1"
    } else {
        "SELECT snapshots.seq, body FROM tasks JOIN snapshots ON task = num WHERE id = $1"
    };
    let found = columns::row(db, sql, &[&sought(task.as_str())]).await?;
    found.map(|row| snapshot(&row, artifacts)).transpose()
}

fn snapshot(row: &Row, artifacts: bool) -> Result<TaskSnapshot, PostgresFault> {
    let artifacts = if artifacts { Some(as_text(row.bytes(2)?)?) } else { None };
    Ok(decode(row.count(0)?, as_text(row.bytes(1)?)?, artifacts)?)
}
