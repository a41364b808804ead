//! Forgets finished tasks, oldest first. The space they took is used again, so the file does not grow.

use std::collections::HashMap;

use chancery_core::SweepPlan;
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::entries::places;
use super::fault::SqliteFault;
use super::keys::KeyTable;
use super::{decisions, outbox, spent};
use crate::past;

/// What one sweep leaves to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct SweepCursor {
    /// Where it stopped behind tasks that must stay, and how many of those, from the first on, are of trees that go on. The next goes
    /// on there.
    stopped: Option<(i64, String, u64)>,
    /// Whether trees go on, by their roots, as this sweep has found.
    trees: HashMap<String, bool>,
}

/// For each task that may go, so many that must stay are passed.
const PASSED: u64 = 8;
/// So many trees are remembered; then it begins anew.
const MOST_KNOWN: usize = 10_000;

/// Part of a batch's transaction. `finished` is the number of tasks that could go.
pub(super) fn sweep(
    connection: &Connection,
    plan: SweepPlan,
    finished: u64,
    place: &mut SweepCursor,
) -> Result<u64, SqliteFault> {
    let too_many = plan.keep_at_most.map_or(0, |keep| finished.saturating_sub(keep));
    let tasks = due(connection, plan, too_many, place)?;
    let since = plan.spent_since.unwrap_or(Timestamp::from_micros(i64::MAX));
    let mut still_counted = Vec::new();
    for task in &tasks {
        still_counted.extend(spent::of_task(connection, task.num, since)?);
    }
    remove(connection, &tasks)?;
    for past in past::add_up(still_counted) {
        spent::keep(connection, &past)?;
    }
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    spent::forget_before(connection, since, at_most)?;
    if let Some(keep) = plan.keep_decisions {
        decisions::keep_newest(connection, keep, at_most)?;
    }
    Ok(tasks.len() as u64)
}

/// A task that goes.
struct Due {
    num: i64,
    /// Whether there are webhooks for it.
    told: bool,
}

/// What a task was that is taken back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawn {
    Finished,
    Unfinished,
}

/// Part of a batch's transaction: takes a task back that was made and nothing more.
pub(super) fn withdraw(
    connection: &Connection,
    task: &TaskId,
    keys: &mut KeyTable<'_>,
) -> Result<Option<Withdrawn>, SqliteFault> {
    let sql = "SELECT num, stage, lanes > 0, key, tenant, owner FROM tasks WHERE id = ?1 AND seq = 1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([task.as_str()], |row| {
        let key = row.get::<_, Option<String>>(3)?;
        let names = key.map(|key| Ok::<_, rusqlite::Error>((key, row.get::<_, String>(4)?, row.get::<_, String>(5)?)));
        Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?, names.transpose()?))
    });
    let Some((num, stage, told, names)) = found.optional()? else { return Ok(None) };
    if let Some((key, tenant, owner)) = names {
        keys.release(connection, (&tenant, &owner), &key, task)?;
    }
    remove(connection, &[Due { num, told }])?;
    Ok(Some(if stage == 3 { Withdrawn::Finished } else { Withdrawn::Unfinished }))
}

fn remove(connection: &Connection, tasks: &[Due]) -> Result<(), SqliteFault> {
    let mut remove_log = connection.prepare_cached("DELETE FROM log WHERE place BETWEEN ?1 AND ?2")?;
    let mut remove_link = connection.prepare_cached("DELETE FROM links WHERE task = ?1")?;
    let mut remove_counts = connection.prepare_cached("DELETE FROM ledger WHERE task = ?1")?;
    let mut remove_task = connection.prepare_cached("DELETE FROM tasks WHERE num = ?1")?;
    for Due { num: task, told } in tasks {
        if *told {
            outbox::remove_all(connection, *task)?;
        }
        remove_log.execute(places(*task))?;
        remove_link.execute([task])?;
        remove_counts.execute([task])?;
        remove_task.execute([task])?;
    }
    Ok(())
}

pub(super) const FINISHED: &str = "SELECT num, status_at, lanes > 0, id, root, task FROM tasks LEFT JOIN ledger ON task = num
     WHERE stage = 3 AND (status_at, id) > (?1, ?2) ORDER BY status_at, id";

/// Whether a root goes on, or something that was done for it; that is mostly the newest.
pub(super) const GOES_ON: &str = "SELECT CASE
         WHEN EXISTS (SELECT 1 FROM tasks JOIN ledger ON task = num WHERE id = ?1 AND root IS NULL AND stage <> 3) THEN 1
         ELSE ifnull((SELECT 1 FROM ledger JOIN tasks ON num = task WHERE root = ?1 AND stage <> 3 ORDER BY task DESC LIMIT 1), 0)
     END";

/// Whether a tree has tasks that have not ended: as long as it has, what all others of it cost counts in its budget.
fn goes_on(connection: &Connection, root: &str) -> Result<bool, SqliteFault> {
    Ok(connection.prepare_cached(GOES_ON)?.query_row([root], |row| row.get(0))?)
}

impl SweepCursor {
    /// The same for a task that is not the root, of which there may be many.
    fn above_goes_on(&mut self, connection: &Connection, root: &str) -> Result<bool, SqliteFault> {
        if let Some(goes_on) = self.trees.get(root) {
            return Ok(*goes_on);
        }
        let goes_on = goes_on(connection, root)?;
        if self.trees.len() >= MOST_KNOWN {
            self.trees.clear();
        }
        self.trees.insert(root.to_owned(), goes_on);
        Ok(goes_on)
    }
}

/// The tasks that go: the oldest, as long as they are too old or there are too many. Those that webhooks are yet to be told
/// of stay, and so do those of trees that go on, in whose place nobody else has to go.
fn due(connection: &Connection, plan: SweepPlan, too_many: u64, place: &mut SweepCursor) -> Result<Vec<Due>, SqliteFault> {
    let stopped = place.stopped.take();
    let went_on = stopped.is_some();
    let (status_at, id, mut of_trees) = stopped.unwrap_or((i64::MIN, String::new(), 0));
    place.trees.clear();
    let mut statement = connection.prepare_cached(FINISHED)?;
    let mut rows = statement.query((status_at, id))?;
    let mut tasks = Vec::new();
    let mut passed = 0;
    while (tasks.len() as u64) < plan.at_most
        && let Some(row) = rows.next()?
    {
        let status_at = Timestamp::from_micros(row.get(1)?);
        let too_old = plan.older_than.is_some_and(|bound| status_at < bound);
        if !too_old && tasks.len() as u64 + of_trees >= too_many {
            break;
        }
        let task = Due { num: row.get(0)?, told: row.get(2)? };
        if in_open_tree(connection, row, place)? {
            of_trees += 1;
            passed += 1;
        } else if task.told && outbox::holds(connection, task.num)? {
            passed += 1;
        } else {
            tasks.push(task);
        }
        // Where many must stay, those that were passed are not passed again before the end was reached. A few are: what has ended
        // behind them meanwhile goes first.
        let is_full = tasks.len() as u64 == plan.at_most && went_on;
        if is_full || passed >= plan.at_most.saturating_mul(PASSED) {
            place.stopped = Some((status_at.micros(), row.get(3)?, of_trees));
            break;
        }
    }
    Ok(tasks)
}

/// Of a row of [`FINISHED`].
fn in_open_tree(connection: &Connection, row: &Row<'_>, place: &mut SweepCursor) -> Result<bool, SqliteFault> {
    let text = |at: usize| row.get_ref(at).and_then(|value| value.as_str_or_null().map_err(Into::into));
    if row.get::<_, Option<i64>>(5)?.is_none() {
        return Ok(false);
    }
    match (text(4)?, text(3)?) {
        (Some(root), _) => place.above_goes_on(connection, root),
        // Most tasks are roots, and nothing was done for them elsewhere.
        (None, Some(own)) => goes_on(connection, own),
        (None, None) => Ok(false),
    }
}
