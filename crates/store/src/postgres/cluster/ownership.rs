//! Who holds a task. A node takes and releases tasks in batches, behind the fence.

use chancery_core::{NodeNumber, Stored, TaskHolder};
use chancery_protocol::TaskId;

use super::forwarded;
use crate::postgres::columns::{self, Columns as _, DatabaseSession, limit, sought};
use crate::postgres::ended_counts;
use crate::postgres::fault::PostgresFault;
use crate::postgres::find::{COLUMNS, stored};
use crate::postgres::writer_state::WriterState;

pub(super) async fn holder<D: DatabaseSession>(db: &D, me: i64, task: &TaskId) -> Result<Option<TaskHolder>, PostgresFault> {
    let row = columns::row(db, "SELECT node FROM tasks WHERE id = $1", &[&sought(task.as_str())]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(match row.try_get::<_, Option<i64>>(0)? {
        None => TaskHolder::Nobody,
        Some(node) if node == me => TaskHolder::ThisNode,
        Some(node) => TaskHolder::OtherNode(NodeNumber(node)),
    }))
}

const TAKE: &str = "UPDATE tasks SET node = $2, released = false WHERE id = $1 AND node IS NULL AND stage < 3";

/// Of two nodes that take one task, the second waits for the first and then finds it taken.
pub(super) async fn take(state: &mut WriterState, task: &TaskId) -> Result<Option<TaskHolder>, PostgresFault> {
    let (session, me) = (state.session()?, state.identity.node);
    if !state.has_left {
        session.execute(TAKE, &[&sought(task.as_str()), &me]).await?;
    }
    holder(&*session, me, task).await
}

const RELEASE: &str = "UPDATE tasks SET node = NULL, released = $3::boolean AND stage < 3 WHERE id = $1 AND node = $2
     RETURNING watched, seq";

/// Calls that other nodes forwarded for the task look for its next holder. Nodes that watch the task are woken.
pub(super) async fn release(state: &mut WriterState, task: &TaskId, to_resume: bool) -> Result<(), PostgresFault> {
    let (session, me) = (state.session()?, state.identity.node);
    let released = columns::row(&*session, RELEASE, &[&sought(task.as_str()), &me, &to_resume]).await?;
    if let Some(row) = released
        && row.try_get(0)?
    {
        tell_watchers(state, task, row.count(1)?).await?;
    }
    state.news.add_answers(forwarded::mark_moved(&*session, me, Some(task)).await?);
    state.set_open(task, None);
    Ok(())
}

/// Whether this node is the successor of one that writes no more. Its row stays locked: neither is changed meanwhile.
const IS_SHUT_OUT: &str = "SELECT 1 FROM nodes WHERE node = $2 AND successor = $1
     AND NOT EXISTS (SELECT 1 FROM writers WHERE writers.node = $2 AND NOT closed) FOR SHARE";

/// A page of what a node held that this one succeeds, by their numbers.
pub(super) async fn take_inherited(state: &mut WriterState, expired: i64, most: usize) -> Result<Vec<Stored>, PostgresFault> {
    let (session, me) = (state.session()?, state.identity.node);
    if state.has_left || columns::row(&*session, IS_SHUT_OUT, &[&me, &expired]).await?.is_none() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH taken AS (UPDATE tasks SET node = $1
             WHERE num IN (SELECT num FROM tasks WHERE node = $2 ORDER BY num LIMIT $3 FOR UPDATE)
             RETURNING num, {COLUMNS})
         SELECT {COLUMNS} FROM taken ORDER BY num"
    );
    let taken = columns::each(session.rows(&sql, &[&me, &expired, &limit(most)]).await?, stored)?;
    // Its own statement, so that it sees a call for one of these tasks that was left while the rows were waited for.
    state.news.add_answers(forwarded::mark_moved(&*session, expired, None).await?);
    if taken.is_empty() {
        ended_counts::inherit(&*session, me, expired).await?;
    }
    Ok(taken)
}

/// Nodes that take at the same time get different tasks.
pub(super) async fn take_released(state: &mut WriterState, most: usize) -> Result<Vec<Stored>, PostgresFault> {
    let (session, me) = (state.session()?, state.identity.node);
    if state.has_left {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH taken AS (UPDATE tasks SET node = $1, released = false
             WHERE num IN (SELECT num FROM tasks WHERE released AND node IS NULL ORDER BY num LIMIT $2 FOR UPDATE SKIP LOCKED)
             RETURNING num, {COLUMNS})
         SELECT {COLUMNS} FROM taken ORDER BY num"
    );
    columns::each(session.rows(&sql, &[&me, &limit(most)]).await?, stored)
}

/// A watched task has changed without an append. Part of a batch's transaction.
pub(in crate::postgres) async fn tell_watchers(state: &mut WriterState, task: &TaskId, seq: u64) -> Result<(), PostgresFault> {
    let sql = "UPDATE writers SET told = batch WHERE node = $1 AND writer = $2";
    state.session()?.execute(sql, &[&state.identity.node, &state.identity.writer]).await?;
    state.news.add_task(task, seq);
    Ok(())
}

/// No append that comes after this leaves its task's watchers out.
pub(super) async fn watch<D: DatabaseSession>(db: &D, task: &TaskId) -> Result<(), PostgresFault> {
    let sql = "UPDATE tasks SET watched = true WHERE id = $1 AND NOT watched";
    db.execute(sql, &[&sought(task.as_str())]).await?;
    Ok(())
}
