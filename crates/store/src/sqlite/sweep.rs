//! Forgets finished tasks, oldest first. The space they took is used again, so the file does not grow.

use std::collections::HashMap;

use chancery_core::{PastSpend, SweepPlan};
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::ended_counts::CountChanges;
use super::entries::places;
use super::fault::SqliteFault;
use super::keys;
use super::row_reader::RowReader;
use super::{decisions, outbox, spent};
use crate::past;
use crate::rows::stages::TaskStage;

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
/// Where the columns of `due` begin in a row of `finished_query`.
const AFTER_COSTS: usize = spent::COLUMN_COUNT;
/// The number of trees that a sweep remembers before it forgets them all and begins again.
const MOST_KNOWN: usize = 10_000;

/// Part of a batch's transaction. `finished` is the number of tasks that could go.
pub(super) fn sweep(
    connection: &Connection,
    plan: SweepPlan,
    finished: u64,
    place: &mut SweepCursor,
    ended: &mut CountChanges,
) -> Result<u64, SqliteFault> {
    let too_many = plan.keep_at_most.map_or(0, |keep| finished.saturating_sub(keep));
    let tasks = due(connection, plan, too_many, place, ended)?;
    let since = since(plan);
    remove(connection, &tasks)?;
    let gone = tasks.len() as u64;
    for past in past::add_up(tasks.into_iter().filter_map(|task| task.cost)) {
        spent::keep(connection, &past)?;
    }
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    spent::forget_before(connection, since, at_most)?;
    if let Some(keep) = plan.keep_decisions {
        decisions::keep_newest(connection, keep, at_most)?;
    }
    Ok(gone)
}

/// From when on costs of tasks that go are kept.
fn since(plan: SweepPlan) -> Timestamp {
    plan.spent_since.unwrap_or(Timestamp::from_micros(i64::MAX))
}

/// A task that goes.
struct Due {
    num: i64,
    /// Whether there are webhooks for it.
    told: bool,
    /// What its last turn cost, if that is kept.
    cost: Option<PastSpend>,
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
    ended: &mut CountChanges,
) -> Result<Option<Withdrawn>, SqliteFault> {
    let sql = "SELECT num, stage, lanes > 0, key, tenant, owner, agent, state, message_only FROM tasks WHERE id = ?1 AND seq = 1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([task.as_str()], |row| {
        let key = row.get::<_, Option<String>>(3)?;
        let names = key.map(|key| Ok::<_, rusqlite::Error>((key, row.get::<_, String>(4)?, row.get::<_, String>(5)?)));
        let stage: i64 = row.get(1)?;
        if stage == TaskStage::Finished as i64 {
            ended.remove_row(row, 4, 7, &mut RowReader::default())?;
        }
        Ok((row.get(0)?, stage, row.get(2)?, names.transpose()?))
    });
    let Some((num, stage, told, names)) = found.optional()? else { return Ok(None) };
    if let Some((key, tenant, owner)) = names {
        keys::release(connection, (&tenant, &owner), &key, task)?;
    }
    remove(connection, &[Due { num, told, cost: None }])?;
    Ok(Some(if stage == 3 { Withdrawn::Finished } else { Withdrawn::Unfinished }))
}

/// Tasks mostly go in the order they were made, so that their rows are neighbours: one statement removes a whole run of them.
fn remove(connection: &Connection, tasks: &[Due]) -> Result<(), SqliteFault> {
    for task in tasks.iter().filter(|task| task.told) {
        outbox::remove_all(connection, task.num)?;
    }
    let mut remove_log = connection.prepare_cached("DELETE FROM log WHERE place BETWEEN ?1 AND ?2")?;
    let mut remove_links = connection.prepare_cached("DELETE FROM links WHERE task BETWEEN ?1 AND ?2")?;
    let mut remove_snapshots = connection.prepare_cached("DELETE FROM snapshots WHERE task BETWEEN ?1 AND ?2")?;
    let mut remove_tasks = connection.prepare_cached("DELETE FROM tasks WHERE num BETWEEN ?1 AND ?2")?;
    for (first, last) in runs(tasks.iter().map(|task| task.num).collect()) {
        remove_log.execute((places(first).0, places(last).1))?;
        remove_links.execute((first, last))?;
        remove_snapshots.execute((first, last))?;
        remove_tasks.execute((first, last))?;
    }
    Ok(())
}

/// Numbers as runs without gaps, each with its first and its last.
fn runs(mut numbers: Vec<i64>) -> Vec<(i64, i64)> {
    numbers.sort_unstable();
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

/// The columns of `spent` first, then those of `due`.
pub(super) fn finished_query() -> String {
    let costs = spent::COLUMNS;
    format!(
        "SELECT {costs}, num, status_at, lanes > 0, root, trace IS NOT NULL,
                root IS NULL AND trace IS NOT NULL AND {SOMETHING_BELOW_GOES_ON}, state, message_only, id FROM tasks
         WHERE stage = 3 AND (status_at, id) > (?1, ?2) ORDER BY status_at, id"
    )
}

/// Whether a task that was made for a root goes on. Most roots have no other tasks.
const SOMETHING_BELOW_GOES_ON: &str = "ifnull((SELECT 1 FROM tasks AS below WHERE below.root = tasks.id AND below.stage <> 3
                ORDER BY below.num DESC LIMIT 1), 0)";

/// Whether a root goes on, or something that was done for it; that is mostly the newest.
pub(super) const GOES_ON: &str = "SELECT CASE
         WHEN EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND root IS NULL AND trace IS NOT NULL AND stage <> 3) THEN 1
         ELSE ifnull((SELECT 1 FROM tasks WHERE root = ?1 AND stage <> 3 ORDER BY num DESC LIMIT 1), 0)
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

/// Returns the tasks to delete: the oldest, as long as they are too old or there are too many. A task stays
/// while its webhooks have something to deliver, or its tree has open tasks. No other task is deleted in
/// place of one that stays for its tree.
fn due(
    connection: &Connection,
    plan: SweepPlan,
    too_many: u64,
    place: &mut SweepCursor,
    ended: &mut CountChanges,
) -> Result<Vec<Due>, SqliteFault> {
    let stopped = place.stopped.take();
    let went_on = stopped.is_some();
    let (status_at, id, mut of_trees) = stopped.unwrap_or((i64::MIN, String::new(), 0));
    place.trees.clear();
    let since = since(plan);
    let mut statement = connection.prepare_cached(&finished_query())?;
    let mut rows = statement.query((status_at, id))?;
    let (mut tasks, mut reader) = (Vec::new(), RowReader::default());
    let mut passed = 0;
    while (tasks.len() as u64) < plan.at_most
        && let Some(row) = rows.next()?
    {
        let status_at = Timestamp::from_micros(row.get(AFTER_COSTS + 1)?);
        let too_old = plan.older_than.is_some_and(|bound| status_at < bound);
        if !too_old && tasks.len() as u64 + of_trees >= too_many {
            break;
        }
        let (num, told) = (row.get(AFTER_COSTS)?, row.get(AFTER_COSTS + 2)?);
        if in_open_tree(connection, row, place)? {
            of_trees += 1;
            passed += 1;
        } else if told && outbox::holds(connection, num)? {
            passed += 1;
        } else {
            let governed: bool = row.get(AFTER_COSTS + 4)?;
            let cost = if governed { spent::last_turn_since(row, since, &mut reader)? } else { None };
            ended.remove_row(row, spent::OWNER, AFTER_COSTS + 6, &mut reader)?;
            tasks.push(Due { num, told, cost });
        }
        // Where many must stay, those that were passed are not passed again before the end was reached. A few are: what has ended
        // behind them meanwhile goes first.
        let is_full = tasks.len() as u64 == plan.at_most && went_on;
        if is_full || passed >= plan.at_most.saturating_mul(PASSED) {
            place.stopped = Some((status_at.micros(), row.get(AFTER_COSTS + 8)?, of_trees));
            break;
        }
    }
    Ok(tasks)
}

/// Of a row of `finished_query`.
fn in_open_tree(connection: &Connection, row: &Row<'_>, place: &mut SweepCursor) -> Result<bool, SqliteFault> {
    if !row.get::<_, bool>(AFTER_COSTS + 4)? {
        return Ok(false);
    }
    match row.get_ref(AFTER_COSTS + 3)?.as_str_or_null().map_err(rusqlite::Error::from)? {
        Some(root) => place.above_goes_on(connection, root),
        None => Ok(row.get(AFTER_COSTS + 5)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_go_in_one_run_whatever_order_they_come_in() {
        assert_eq!(runs(vec![5, 3, 4, 9, 7, 8, 1]), [(1, 1), (3, 5), (7, 9)]);
        assert_eq!(runs(vec![i64::MAX]), [(i64::MAX, i64::MAX)]);
        assert_eq!(runs(Vec::new()), []);
    }
}
