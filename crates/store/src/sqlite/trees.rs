//! Reads back how tasks were governed: one, a tree of them, or all that still counts.

use std::sync::Arc;

use chancery_core::{Governed, LedgerRow, LedgerSnapshot, TreeCost};
use chancery_protocol::{Caller, ContextId, TaskId, TaskState, Timestamp, TraceId};
use rusqlite::{Connection, OptionalExtension, Row, Rows};

use super::fault::SqliteFault;
use super::ledger::{self, COLUMN_COUNT, COLUMNS};
use super::links;
use super::spent;
use crate::rows::dialects::dialect;

/// Of the table `tasks`, after those of the ledger.
const TASK_COLUMNS: &str = "id, agent, tenant, owner, created_at, state, status_at, context_id, dialect";

/// Looks at each shelf of the index that has something on it.
pub(super) const ROOTS: &str = "WITH RECURSIVE shelves (shelf) AS (
         SELECT * FROM (SELECT num >> 7 FROM tasks WHERE root IS NULL AND trace IS NOT NULL ORDER BY num >> 7 LIMIT 1)
         UNION ALL
         SELECT (SELECT num >> 7 FROM tasks WHERE root IS NULL AND trace IS NOT NULL AND num >> 7 > shelf
                 ORDER BY num >> 7 LIMIT 1)
         FROM shelves WHERE shelf IS NOT NULL)
     SELECT id FROM shelves CROSS JOIN tasks ON num >> 7 = shelf AND trace = ?1 AND root IS NULL AND trace IS NOT NULL
     ORDER BY num";

/// The numbers of a tree's tasks. Those that came later name their root; the root itself names none.
const NUMBERS_OF_TREE: &str = "SELECT num FROM tasks WHERE root = ?1
         UNION ALL SELECT num FROM tasks WHERE id = ?1 AND root IS NULL AND trace IS NOT NULL";

pub(super) fn tree_query() -> String {
    rows_of(NUMBERS_OF_TREE, "")
}

/// The same from a number on, and no more than so many.
pub(super) fn tree_page_query() -> String {
    format!("{} LIMIT ?3", rows_of(NUMBERS_OF_TREE, "AND num > ?2"))
}

/// Of each task of a tree what it cost, with the columns in the order `tree_costs` reads them.
pub(super) fn tree_costs_query() -> String {
    format!(
        "SELECT id, parent, settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks
         FROM tasks WHERE num IN ({NUMBERS_OF_TREE}) ORDER BY num"
    )
}

/// The tasks that have not ended, all of their trees, and those that ended since then.
pub(super) fn ledger_query() -> String {
    let rows = rows_of(
        "SELECT num FROM tasks WHERE stage = 3 AND status_at >= ?1 AND trace IS NOT NULL
         UNION ALL SELECT num FROM tasks WHERE root IN (SELECT id FROM open)
         UNION ALL SELECT num FROM tasks WHERE id IN (SELECT id FROM open) AND root IS NULL AND trace IS NOT NULL",
        "",
    );
    format!(
        "WITH open (id) AS MATERIALIZED (
             SELECT ifnull(root, id) FROM tasks INDEXED BY tasks_open WHERE stage < 3 AND trace IS NOT NULL)
         {rows}"
    )
}

/// The rows of the tasks whose numbers a query answers, each once, in the order they were made.
fn rows_of(numbers: &str, also: &str) -> String {
    format!("SELECT {COLUMNS}, {TASK_COLUMNS} FROM tasks WHERE num IN ({numbers}) {also} ORDER BY num")
}

pub(super) fn governed(connection: &Connection, task: &TaskId) -> Result<Option<Governed>, SqliteFault> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1 AND trace IS NOT NULL");
    let found = connection.prepare_cached(&sql)?.query_row([task.as_str()], |row| Ok(ledger::governed(row, task)));
    found.optional()?.transpose()
}

pub(super) fn tree(connection: &Connection, root: &TaskId) -> Result<Vec<LedgerRow>, SqliteFault> {
    let mut statement = connection.prepare_cached(&tree_query())?;
    linked_rows(connection, statement.query([root.as_str()])?)
}

pub(super) fn tree_page(
    connection: &Connection,
    root: &TaskId,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<LedgerRow>, SqliteFault> {
    let number = |id: &TaskId| {
        connection.prepare_cached("SELECT num FROM tasks WHERE id = ?1")?.query_row([id.as_str()], |row| row.get(0)).optional()
    };
    let Some(after) = after.map_or(Ok(Some(i64::MIN)), number)? else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&tree_page_query())?;
    linked_rows(connection, statement.query((root.as_str(), after, limit))?)
}

fn linked_rows(connection: &Connection, mut rows: Rows<'_>) -> Result<Vec<LedgerRow>, SqliteFault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut row = ledger_row(row)?;
        row.link = links::of_task(connection, &row.task)?;
        found.push(row);
    }
    Ok(found)
}

pub(super) fn tree_costs(connection: &Connection, root: &TaskId) -> Result<Vec<TreeCost>, SqliteFault> {
    let mut statement = connection.prepare_cached(&tree_costs_query())?;
    let costs = statement.query_map([root.as_str()], |row| {
        Ok(TreeCost {
            task: TaskId::from(row.get::<_, String>(0)?),
            parent: row.get::<_, Option<String>>(1)?.map(TaskId::from),
            cost: ledger::amount(row, 2)?.saturating_add(ledger::amount(row, 5)?),
        })
    })?;
    Ok(costs.collect::<Result<_, _>>()?)
}

pub(super) fn roots(connection: &Connection, trace: TraceId) -> Result<Vec<TaskId>, SqliteFault> {
    let mut statement = connection.prepare_cached(ROOTS)?;
    let ids = statement.query_map([trace.0.to_be_bytes()], |row| row.get::<_, String>(0).map(TaskId::from))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

pub(super) fn ledger(connection: &mut Connection, settled_since: Timestamp) -> Result<LedgerSnapshot, SqliteFault> {
    let mut ledger = LedgerSnapshot::default();
    // One view for both: a task that goes meanwhile would be counted twice, or not at all.
    let view = connection.transaction()?;
    let mut statement = view.prepare(&ledger_query())?;
    let mut rows = statement.query([settled_since.micros()])?;
    while let Some(row) = rows.next()? {
        let mut row = ledger_row(row)?;
        if !row.state.is_terminal() {
            row.link = links::of_task(&view, &row.task)?;
        }
        ledger.tasks.push(row);
    }
    ledger.past = spent::since(&view, settled_since)?;
    Ok(ledger)
}

fn ledger_row(row: &Row<'_>) -> Result<LedgerRow, SqliteFault> {
    let text = |at: usize| -> Result<Arc<str>, SqliteFault> {
        Ok(row.get_ref(COLUMN_COUNT + at)?.as_str().map_err(rusqlite::Error::from)?.into())
    };
    let time = |at: usize| row.get(COLUMN_COUNT + at).map(Timestamp::from_micros);
    let state: i64 = row.get(COLUMN_COUNT + 5)?;
    let task = TaskId::new(text(0)?);
    Ok(LedgerRow {
        governed: ledger::governed(row, &task)?,
        task,
        agent: text(1)?,
        owner: Caller { tenant: text(2)?, name: text(3)? },
        created_at: time(4)?,
        state: TaskState::from_number(state).ok_or_else(|| SqliteFault::unreadable(format!("task state {state}")))?,
        status_at: time(6)?,
        context_id: ContextId::new(text(7)?),
        dialect: dialect(&text(8)?)?,
        link: None,
    })
}
