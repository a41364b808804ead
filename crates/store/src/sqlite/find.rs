//! Looks tasks up by name, or by having been left unfinished, and turns their rows into records.

use std::sync::Arc;

use chancery_core::{Names, Progress, Stored, TaskRecord};
use chancery_protocol::{Caller, ContextId, TaskId, TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::SqliteFault;
use crate::rows::dialects::dialect;

/// In the order `stored` reads them.
pub(super) const COLUMNS: &str = "id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, \
                                  message_only, client_task_id";

pub(super) fn find(connection: &Connection, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, SqliteFault> {
    let parameters = (&*owner.tenant, &*owner.name, id);
    let by = |column: &str| {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE tenant = ?1 AND owner = ?2 AND {column} = ?3");
        one(connection.prepare_cached(&sql)?.query_row(parameters, |row| Ok(stored(row))))
    };
    match (by("id")?, names) {
        (None, Names::ServerOrClient) => by("client_task_id"),
        (found, _) => Ok(found),
    }
}

pub(super) fn find_any(connection: &Connection, id: &str) -> Result<Option<Stored>, SqliteFault> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
    one(connection.prepare_cached(&sql)?.query_row([id], |row| Ok(stored(row))))
}

/// The index has to be named: SQLite does not see that stage 1 is below 3.
pub(super) fn unfinished_query() -> String {
    format!("SELECT {COLUMNS} FROM tasks INDEXED BY tasks_open WHERE stage < 3 AND stage = 1")
}

pub(super) fn unfinished(connection: &Connection) -> Result<Vec<Stored>, SqliteFault> {
    let mut statement = connection.prepare(&unfinished_query())?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(stored(row)?);
    }
    Ok(found)
}

fn one(found: rusqlite::Result<Result<Stored, SqliteFault>>) -> Result<Option<Stored>, SqliteFault> {
    found.optional()?.transpose()
}

pub(super) fn stored(row: &Row<'_>) -> Result<Stored, SqliteFault> {
    let text =
        |at: usize| -> Result<Arc<str>, SqliteFault> { Ok(row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?.into()) };
    let time = |at: usize| row.get(at).map(Timestamp::from_micros);
    let state: i64 = row.get(7)?;
    Ok(Stored {
        task: Arc::new(TaskRecord {
            id: TaskId::new(text(0)?),
            context_id: ContextId::new(text(1)?),
            agent: text(2)?,
            owner: Caller { tenant: text(3)?, name: text(4)? },
            dialect: dialect(&text(5)?)?,
            created_at: time(6)?,
            client_task_id: row.get::<_, Option<String>>(12)?.map(Arc::from),
        }),
        progress: Progress {
            state: TaskState::from_number(state).ok_or_else(|| SqliteFault::unreadable(format!("task state {state}")))?,
            status_at: time(8)?,
            seq: row.get(9)?,
            bytes: row.get(10)?,
            message_only: row.get(11)?,
        },
    })
}
