//! Calls for tasks that other nodes hold: each is carried out by the holder once, or not at all.

use chancery_core::{CallAnswer, ForwardedCall, ForwardedCallNumber, ForwardedCallState, NodeNumber, ReceivedCall};
use chancery_protocol::TaskId;

use crate::postgres::columns::{self, Columns as _, DatabaseSession, limit, sought};
use crate::postgres::fault::PostgresFault;
use crate::postgres::writer_state::WriterState;

/// The node that left a call, and the call's number.
pub(super) type CallOfNode = (i64, i64);

/// Taken before the call is left: so the same call can be sent again when an answer is lost.
pub(super) async fn next_number<D: DatabaseSession>(db: &D) -> Result<ForwardedCallNumber, PostgresFault> {
    Ok(ForwardedCallNumber(columns::number(db, "SELECT nextval('forwarded_call_numbers')", &[]).await?))
}

/// The task's row is locked meanwhile, so the next holder of the task finds the call.
const LEAVE: &str = "INSERT INTO forwarded_calls (num, from_node, to_node, task, state, body)
     SELECT $1, $2, $3, $4, 1, $5 FROM (SELECT 1 FROM tasks WHERE id = $4 AND node = $3 FOR SHARE) held
     WHERE EXISTS (SELECT 1 FROM nodes WHERE node = $2 AND successor IS NULL AND NOT gone)
     ON CONFLICT (num) DO NOTHING";

/// Answers whether the call is there.
pub(super) async fn leave_call<D: DatabaseSession>(
    db: &D,
    number: ForwardedCallNumber,
    from: i64,
    call: &ForwardedCall,
) -> Result<bool, PostgresFault> {
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&number.0, &from, &call.to.0, &sought(call.task.as_str()), &call.body];
    let left = db.execute(LEAVE, &values).await? > 0;
    // It may have been left by an attempt whose answer was lost.
    Ok(left || columns::row(db, "SELECT 1 FROM forwarded_calls WHERE num = $1", &[&number.0]).await?.is_some())
}

/// A call that is forgotten was not made, as far as anyone can tell.
pub(super) async fn state<D: DatabaseSession>(
    db: &D,
    number: ForwardedCallNumber,
    from: i64,
) -> Result<ForwardedCallState, PostgresFault> {
    let sql = "SELECT state, answer FROM forwarded_calls WHERE num = $1 AND from_node = $2";
    let Some(row) = columns::row(db, sql, &[&number.0, &from]).await? else { return Ok(ForwardedCallState::Moved) };
    Ok(match row.try_get::<_, i64>(0)? {
        1 => ForwardedCallState::Waiting,
        2 => ForwardedCallState::Answered(row.try_get::<_, Option<Vec<u8>>>(1)?.unwrap_or_default()),
        _ => ForwardedCallState::Moved,
    })
}

/// Answers the same at a second attempt, after a lost answer.
pub(super) async fn withdraw<D: DatabaseSession>(db: &D, number: ForwardedCallNumber, from: i64) -> Result<bool, PostgresFault> {
    let sql = "UPDATE forwarded_calls SET state = 4 WHERE num = $1 AND from_node = $2 AND state IN (1, 4)";
    Ok(db.execute(sql, &[&number.0, &from]).await? > 0)
}

pub(super) async fn received<D: DatabaseSession>(db: &D, me: i64, most: usize) -> Result<Vec<ReceivedCall>, PostgresFault> {
    let sql = "SELECT num, from_node, task, body FROM forwarded_calls WHERE to_node = $1 AND state = 1 ORDER BY num LIMIT $2";
    columns::each(db.rows(sql, &[&me, &limit(most)]).await?, |row| {
        Ok(ReceivedCall {
            number: ForwardedCallNumber(row.try_get(0)?),
            from: NodeNumber(row.try_get(1)?),
            task: row.task(2)?,
            body: row.try_get(3)?,
        })
    })
}

const ANSWER: &str = "UPDATE forwarded_calls SET state = 2, answer = $3 WHERE num = $1 AND to_node = $2 AND state = 1
     RETURNING from_node, num";

/// Part of a batch's transaction, so a node that has a successor answers nothing.
pub(super) async fn answer(state: &mut WriterState, answer: &CallAnswer) -> Result<bool, PostgresFault> {
    let (session, me) = (state.session()?, state.identity.node);
    let answered = calls(session.rows(ANSWER, &[&answer.number.0, &me, &answer.body]).await?)?;
    let was_waiting = !answered.is_empty();
    state.news.add_answers(answered);
    Ok(was_waiting)
}

/// Calls that wait for a node, for one task or for any, look for the next holder. Answers whose they are.
pub(super) async fn mark_moved<D: DatabaseSession>(
    db: &D,
    node: i64,
    task: Option<&TaskId>,
) -> Result<Vec<CallOfNode>, PostgresFault> {
    let sql = "UPDATE forwarded_calls SET state = 3 WHERE to_node = $1 AND state = 1 AND ($2::text IS NULL OR task = $2)
               RETURNING from_node, num";
    let task = task.map(|task| sought(task.as_str()).into_owned());
    calls(db.rows(sql, &[&node, &task]).await?)
}

fn calls(rows: Vec<tokio_postgres::Row>) -> Result<Vec<CallOfNode>, PostgresFault> {
    columns::each(rows, |row| Ok((row.try_get(0)?, row.try_get(1)?)))
}

/// No caller waits for an hour.
pub(super) async fn forget_old<D: DatabaseSession>(db: &D) -> Result<(), PostgresFault> {
    let sql = "DELETE FROM forwarded_calls WHERE num IN
               (SELECT num FROM forwarded_calls WHERE made_at < now() - interval '1 hour' ORDER BY made_at LIMIT 10000)";
    db.execute(sql, &[]).await?;
    Ok(())
}
