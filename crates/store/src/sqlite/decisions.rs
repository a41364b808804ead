//! What was decided about calls that made no task, newest last.

use chancery_core::Decision;
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::fault::SqliteFault;
use crate::rows::decisions::{EncodedDecision, decode};

/// One that is known stays as it is: a decision never changes, but its writing may be tried again.
pub(super) fn keep(connection: &Connection, EncodedDecision { decision, body }: &EncodedDecision) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO decisions (id, task, at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING")?
        .execute((&*decision.id, decision.task.as_ref().map(TaskId::as_str), decision.at.micros(), body))?;
    Ok(())
}

pub(super) fn by_id(connection: &Connection, id: &str) -> Result<Option<Decision>, SqliteFault> {
    let mut statement = connection.prepare_cached("SELECT body, at FROM decisions WHERE id = ?1")?;
    statement.query_row([id], |row| Ok(decision(row))).optional()?.transpose()
}

pub(super) const OF_TASK: &str = "SELECT body, at FROM decisions WHERE task = ?1 ORDER BY num";

pub(super) fn of_task(connection: &Connection, task: &TaskId) -> Result<Vec<Decision>, SqliteFault> {
    all(connection, OF_TASK, [task.as_str()])
}

pub(super) fn newest(connection: &Connection, limit: usize) -> Result<Vec<Decision>, SqliteFault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(connection, "SELECT body, at FROM decisions ORDER BY num DESC LIMIT ?1", [limit])
}

pub(super) fn before(connection: &Connection, id: &str, limit: usize) -> Result<Vec<Decision>, SqliteFault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = "SELECT body, at FROM decisions WHERE num < (SELECT num FROM decisions WHERE id = ?1) ORDER BY num DESC LIMIT ?2";
    all(connection, sql, (id, limit))
}

pub(super) const FORGET: &str = "DELETE FROM decisions WHERE num IN (SELECT num FROM decisions
     WHERE num <= (SELECT max(num) FROM decisions) - ?1 ORDER BY num LIMIT ?2)";

pub(super) fn keep_newest(connection: &Connection, keep: u64, at_most: i64) -> Result<(), SqliteFault> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    connection.prepare_cached(FORGET)?.execute((keep, at_most))?;
    Ok(())
}

fn all(connection: &Connection, sql: &str, parameters: impl Params) -> Result<Vec<Decision>, SqliteFault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decision(row)?);
    }
    Ok(found)
}

pub(super) fn decision(row: &Row<'_>) -> Result<Decision, SqliteFault> {
    let body = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(decode(body, Timestamp::from_micros(row.get(1)?))?)
}
