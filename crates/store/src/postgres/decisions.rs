//! What was decided about calls that made no task, newest last.

use chancery_core::Decision;
use chancery_protocol::TaskId;
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, SqlValues, as_text, limit, sought};
use super::fault::PostgresFault;
use crate::rows::decisions::{EncodedDecision, decode};

/// One that is known stays as it is: a decision never changes, but its writing may be tried again.
pub(super) async fn keep<D: DatabaseSession>(
    db: &D,
    EncodedDecision { decision, body }: &EncodedDecision,
) -> Result<(), PostgresFault> {
    let sql = "INSERT INTO decisions (id, task, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING";
    let task = decision.task.as_ref().map(TaskId::as_str);
    db.execute(sql, &[&&*decision.id, &task, &decision.at.micros(), &body.as_bytes()]).await?;
    Ok(())
}

pub(super) async fn by_id<D: DatabaseSession>(db: &D, id: &str) -> Result<Option<Decision>, PostgresFault> {
    let found = columns::row(db, "SELECT body, at FROM decisions WHERE id = $1", &[&sought(id)]).await?;
    found.as_ref().map(decision).transpose()
}

pub(super) async fn of_task<D: DatabaseSession>(db: &D, task: &TaskId) -> Result<Vec<Decision>, PostgresFault> {
    all(db, "SELECT body, at FROM decisions WHERE task = $1 ORDER BY num", &[&sought(task.as_str())]).await
}

pub(super) async fn newest<D: DatabaseSession>(db: &D, most: usize) -> Result<Vec<Decision>, PostgresFault> {
    all(db, "SELECT body, at FROM decisions ORDER BY num DESC LIMIT $1", &[&limit(most)]).await
}

pub(super) async fn before<D: DatabaseSession>(db: &D, id: &str, most: usize) -> Result<Vec<Decision>, PostgresFault> {
    let sql = "SELECT body, at FROM decisions WHERE num < (SELECT num FROM decisions WHERE id = $1) ORDER BY num DESC LIMIT $2";
    all(db, sql, &[&sought(id), &limit(most)]).await
}

/// Numbers have gaps, so the newest to go is found by its place.
pub(super) async fn keep_newest<D: DatabaseSession>(db: &D, keep: u64, at_most: i64) -> Result<(), PostgresFault> {
    let sql = "DELETE FROM decisions WHERE num IN (SELECT num FROM decisions
                   WHERE num <= (SELECT num FROM decisions ORDER BY num DESC OFFSET $1 LIMIT 1) ORDER BY num LIMIT $2)";
    db.execute(sql, &[&i64::try_from(keep).unwrap_or(i64::MAX), &at_most]).await?;
    Ok(())
}

async fn all<D: DatabaseSession>(db: &D, sql: &str, values: &SqlValues<'_>) -> Result<Vec<Decision>, PostgresFault> {
    columns::each(db.rows(sql, values).await?, decision)
}

fn decision(row: &Row) -> Result<Decision, PostgresFault> {
    Ok(decode(as_text(row.bytes(0)?)?, row.time(1)?)?)
}
