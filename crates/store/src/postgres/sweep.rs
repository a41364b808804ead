//! Forgets finished tasks, oldest first.

use chancery_core::{PastSpend, SweepPlan};
use chancery_protocol::{TaskId, Timestamp};

use super::columns::{self, Columns as _, DatabaseSession};
use super::fault::PostgresFault;
use super::writer_state::WriterState;
use super::{cluster, decisions, ended_counts, outbox, spent};
use crate::past;
use crate::rows::stages::TaskStage;

/// Where a sweep stopped behind tasks that must stay: the last task it looked at, and how many of those before it are of trees
/// that go on. The next one goes on there.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepPosition(Option<(i64, String, u64)>);

/// For each task that may go, so many that must stay are passed.
const PASSED: u64 = 8;

/// So many tasks are looked at in one query.
const PAGE: i64 = 512;

/// Where the columns of `due` begin in a row of the query.
const AFTER_COSTS: usize = spent::COLUMN_COUNT;

/// The columns of `spent` first. A task of a tree that goes on must stay, and one with something to deliver.
fn finished_query() -> String {
    let costs = spent::COLUMNS;
    format!(
        "SELECT {costs}, num, status_at, id, trace IS NOT NULL, tenant, owner, agent, state, message_only, lanes > 0,
                trace IS NOT NULL AND (
                    EXISTS (SELECT 1 FROM tasks open WHERE open.root = coalesce(tasks.root, tasks.id) AND open.stage < 3)
                    OR (tasks.root IS NOT NULL AND EXISTS (
                        SELECT 1 FROM tasks top WHERE top.id = tasks.root AND top.root IS NULL AND top.trace IS NOT NULL AND top.stage < 3))),
                lanes > 0 AND EXISTS (SELECT 1 FROM lanes WHERE lanes.task = num AND due_at IS NOT NULL)
         FROM tasks WHERE stage = 3 AND (status_at, id) > ($1, $2) ORDER BY status_at, id LIMIT $3"
    )
}

/// A task that goes.
struct DueTask {
    num: i64,
    /// Whether there are webhooks for it.
    told: bool,
    /// What its last turn cost, if that is kept.
    cost: Option<PastSpend>,
}

/// Part of a batch's transaction. Answers how many tasks are gone.
pub(super) async fn sweep(state: &mut WriterState, plan: SweepPlan) -> Result<u64, PostgresFault> {
    let session = state.session()?;
    let db = &*session;
    // Of several nodes one sweeps: another would count the same tasks as gone.
    if !columns::holds(db, "SELECT pg_try_advisory_xact_lock(hashtext('chancery sweep'))").await? {
        return Ok(0);
    }
    let too_many = match plan.keep_at_most {
        Some(keep) => ended_counts::finished(db).await?.saturating_sub(keep),
        None => 0,
    };
    let since = plan.spent_since.unwrap_or(Timestamp::from_micros(i64::MAX));
    let tasks = due(state, plan, too_many, since).await?;
    remove(db, &tasks).await?;
    let gone = tasks.len() as u64;
    spent::keep(db, &past::add_up(tasks.into_iter().filter_map(|task| task.cost))).await?;
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    spent::forget_before(db, since, at_most).await?;
    if let Some(keep) = plan.keep_decisions {
        decisions::keep_newest(db, keep, at_most).await?;
    }
    ended_counts::forget_empty(db, state.identity.node).await?;
    Ok(gone)
}

/// Returns the tasks to delete: the oldest, as long as they are too old or there are too many. No other task is deleted in place
/// of one that stays for its tree.
async fn due(state: &mut WriterState, plan: SweepPlan, too_many: u64, since: Timestamp) -> Result<Vec<DueTask>, PostgresFault> {
    let session = state.session()?;
    let stopped = state.sweep.0.take();
    let went_on = stopped.is_some();
    let (mut status_at, mut id, mut of_trees) = stopped.unwrap_or((i64::MIN, String::new(), 0));
    let sql = finished_query();
    let (mut tasks, mut passed) = (Vec::new(), 0);
    if plan.at_most == 0 {
        return Ok(tasks);
    }
    loop {
        let page = session.rows(&sql, &[&status_at, &id, &PAGE]).await?;
        let is_last = (page.len() as i64) < PAGE;
        for row in page {
            let time = row.time(AFTER_COSTS + 1)?;
            let too_old = plan.older_than.is_some_and(|bound| time < bound);
            if !too_old && tasks.len() as u64 + of_trees >= too_many {
                return Ok(tasks);
            }
            (status_at, id) = (time.micros(), row.try_get(AFTER_COSTS + 2)?);
            if row.try_get(AFTER_COSTS + 10)? {
                of_trees += 1;
                passed += 1;
            } else if row.try_get(AFTER_COSTS + 11)? {
                passed += 1;
            } else {
                let governed: bool = row.try_get(AFTER_COSTS + 3)?;
                let cost = if governed { spent::last_turn_since(&row, since)? } else { None };
                state.ended.remove_row(&row, AFTER_COSTS + 4)?;
                tasks.push(DueTask { num: row.try_get(AFTER_COSTS)?, told: row.try_get(AFTER_COSTS + 9)?, cost });
            }
            // Where many must stay, those that were passed are not passed again before the end was reached. A few are: what has
            // ended behind them meanwhile goes first.
            let is_full = tasks.len() as u64 == plan.at_most;
            if is_full && went_on || passed >= plan.at_most.saturating_mul(PASSED) {
                state.sweep.0 = Some((status_at, id, of_trees));
                return Ok(tasks);
            }
            if is_full {
                return Ok(tasks);
            }
        }
        if is_last {
            return Ok(tasks);
        }
    }
}

const WITHDRAW: &str = "SELECT num, stage, lanes > 0, key, tenant, owner, agent, state, message_only, watched, node FROM tasks
     WHERE id = $1 AND seq = 1 FOR UPDATE";

/// Part of a batch's transaction: takes a task back that was made and nothing more. Answers whether there was one.
pub(super) async fn withdraw(state: &mut WriterState, task: &TaskId) -> Result<bool, PostgresFault> {
    let session = state.session()?;
    let db = &*session;
    let Some(row) = columns::row(db, WITHDRAW, &[&columns::sought(task.as_str())]).await? else { return Ok(false) };
    let (is_watched, holder): (bool, Option<i64>) = (row.try_get(9)?, row.try_get(10)?);
    if holder.is_some() && holder != state.identity.holder() {
        return Ok(false);
    }
    if row.try_get::<_, i64>(1)? == TaskStage::Finished as i64 {
        state.ended.remove_row(&row, 4)?;
    }
    if let Some(key) = row.text_or_none(3)? {
        // Another task may have the key by now.
        let sql = "DELETE FROM keys WHERE tenant = $1 AND owner = $2 AND key = $3 AND task = $4";
        db.execute(sql, &[&&*row.text(4)?, &&*row.text(5)?, &&*key, &task.as_str()]).await?;
    }
    if is_watched {
        cluster::tell_watchers(state, task, 0).await?;
    }
    state.set_open(task, None);
    remove(db, &[DueTask { num: row.try_get(0)?, told: row.try_get(2)?, cost: None }]).await?;
    Ok(true)
}

async fn remove<D: DatabaseSession>(db: &D, tasks: &[DueTask]) -> Result<(), PostgresFault> {
    if tasks.is_empty() {
        return Ok(());
    }
    for task in tasks.iter().filter(|task| task.told) {
        outbox::remove_all(db, task.num).await?;
    }
    let numbers: Vec<i64> = tasks.iter().map(|task| task.num).collect();
    for sql in [
        "DELETE FROM log WHERE task = ANY($1)",
        "DELETE FROM links WHERE task = ANY($1)",
        "DELETE FROM snapshots WHERE task = ANY($1)",
        "DELETE FROM tasks WHERE num = ANY($1)",
    ] {
        db.execute(sql, &[&numbers]).await?;
    }
    Ok(())
}
