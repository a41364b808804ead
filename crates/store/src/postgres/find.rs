//! Looks tasks up by name, or by having been left unfinished, and turns their rows into records.

use std::sync::Arc;

use chancery_core::{Names, Progress, Stored, TaskRecord};
use chancery_protocol::{Caller, ContextId, TaskState};
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, sought};
use super::fault::PostgresFault;
use crate::rows::dialects::dialect;

/// In the order `stored` reads them.
pub(super) const COLUMNS: &str = "id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, \
                                  message_only, client_task_id";

/// A task by the name the server gave it comes before one by the client's name.
pub(super) async fn find<D: DatabaseSession>(
    db: &D,
    owner: &Caller,
    id: &str,
    names: Names,
) -> Result<Option<Stored>, PostgresFault> {
    let by_id = format!("SELECT {COLUMNS} FROM tasks WHERE tenant = $1 AND owner = $2 AND id = $3");
    let sql = match names {
        Names::Server => by_id,
        Names::ServerOrClient => format!(
            "SELECT * FROM ({by_id}) by_id UNION ALL
             (SELECT {COLUMNS} FROM tasks WHERE tenant = $1 AND owner = $2 AND client_task_id = $3)"
        ),
    };
    let found = columns::row(db, &sql, &[&sought(&owner.tenant), &sought(&owner.name), &sought(id)]).await?;
    found.as_ref().map(stored).transpose()
}

pub(super) async fn find_any<D: DatabaseSession>(db: &D, id: &str) -> Result<Option<Stored>, PostgresFault> {
    let found = columns::row(db, &format!("SELECT {COLUMNS} FROM tasks WHERE id = $1"), &[&sought(id)]).await?;
    found.as_ref().map(stored).transpose()
}

pub(super) async fn unfinished<D: DatabaseSession>(db: &D) -> Result<Vec<Stored>, PostgresFault> {
    // The index has open tasks alone, so the query names both conditions.
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE stage < 3 AND stage = 1 ORDER BY num");
    columns::each(db.rows(&sql, &[]).await?, stored)
}

pub(super) fn stored(row: &Row) -> Result<Stored, PostgresFault> {
    Ok(Stored {
        task: Arc::new(TaskRecord {
            id: row.task(0)?,
            context_id: ContextId::new(row.text(1)?),
            agent: row.text(2)?,
            owner: Caller { tenant: row.text(3)?, name: row.text(4)? },
            dialect: dialect(&row.text(5)?)?,
            created_at: row.time(6)?,
            client_task_id: row.text_or_none(12)?,
        }),
        progress: Progress {
            state: state(row, 7)?,
            status_at: row.time(8)?,
            seq: row.count(9)?,
            bytes: row.count(10)?,
            message_only: row.try_get(11)?,
        },
    })
}

pub(super) fn state(row: &Row, at: usize) -> Result<TaskState, PostgresFault> {
    let number: i64 = row.try_get(at)?;
    TaskState::from_number(number).ok_or_else(|| PostgresFault::unreadable(format!("task state {number}")))
}
