//! Reads back how tasks were governed: one, a tree of them, or all that still counts.

use chancery_core::{Governed, LedgerRow, LedgerSnapshot, Link, TreeCost};
use chancery_protocol::{Caller, ContextId, TaskId, Timestamp, TraceId};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, limit, sought};
use super::fault::PostgresFault;
use super::find::state;
use super::ledger::{self, COLUMN_COUNT, COLUMNS};
use super::{readers, spent};
use crate::rows::dialects::dialect;

/// Of the table `tasks`, after those of the ledger.
const TASK_COLUMNS: &str = "id, tasks.agent, tasks.tenant, tasks.owner, created_at, state, status_at, tasks.context_id, dialect";

/// With whom a task goes on, after those of the task.
const LINK_COLUMNS: &str = "peer, peer_task, peer_context";
const LINK_AT: usize = COLUMN_COUNT + 9;

/// The numbers of a tree's tasks. Those that came later name their root; the root itself names none.
const NUMBERS_OF_TREE: &str = "SELECT num FROM tasks WHERE root = $1
         UNION ALL SELECT num FROM tasks WHERE id = $1 AND root IS NULL AND trace IS NOT NULL";

/// The tasks that have not ended, all of their trees, and those that ended since then.
const NUMBERS_OF_LEDGER: &str = "SELECT num FROM tasks WHERE stage = 3 AND status_at >= $1 AND trace IS NOT NULL
         UNION SELECT num FROM tasks WHERE root IN (SELECT id FROM open)
         UNION SELECT num FROM tasks WHERE id IN (SELECT id FROM open) AND root IS NULL AND trace IS NOT NULL";

/// The rows of the tasks whose numbers a query answers, each once, in the order they were made.
fn rows_of(numbers: &str, also: &str) -> String {
    format!(
        "SELECT {COLUMNS}, {TASK_COLUMNS}, {LINK_COLUMNS} FROM tasks LEFT JOIN links ON links.task = num
         WHERE num IN ({numbers}) {also} ORDER BY num"
    )
}

pub(super) async fn governed<D: DatabaseSession>(db: &D, task: &TaskId) -> Result<Option<Governed>, PostgresFault> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1 AND trace IS NOT NULL");
    let found = columns::row(db, &sql, &[&sought(task.as_str())]).await?;
    found.map(|row| ledger::governed(&row, task)).transpose()
}

pub(super) async fn tree<D: DatabaseSession>(db: &D, root: &TaskId) -> Result<Vec<LedgerRow>, PostgresFault> {
    columns::each(db.rows(&rows_of(NUMBERS_OF_TREE, ""), &[&sought(root.as_str())]).await?, linked_row)
}

pub(super) async fn tree_page<D: DatabaseSession>(
    db: &D,
    root: &TaskId,
    after: Option<&TaskId>,
    most: usize,
) -> Result<Vec<LedgerRow>, PostgresFault> {
    let root = sought(root.as_str());
    let found = match after {
        None => db.rows(&format!("{} LIMIT $2", rows_of(NUMBERS_OF_TREE, "")), &[&root, &limit(most)]).await?,
        Some(after) => {
            let later = "AND num > (SELECT num FROM tasks WHERE id = $2)";
            let sql = format!("{} LIMIT $3", rows_of(NUMBERS_OF_TREE, later));
            db.rows(&sql, &[&root, &sought(after.as_str()), &limit(most)]).await?
        }
    };
    columns::each(found, linked_row)
}

pub(super) async fn tree_costs<D: DatabaseSession>(db: &D, root: &TaskId) -> Result<Vec<TreeCost>, PostgresFault> {
    let sql = format!(
        "SELECT id, parent, settled_usd, settled_tokens, settled_tasks, overrun_usd, overrun_tokens, overrun_tasks
         FROM tasks WHERE num IN ({NUMBERS_OF_TREE}) ORDER BY num"
    );
    columns::each(db.rows(&sql, &[&sought(root.as_str())]).await?, |row| {
        Ok(TreeCost {
            task: row.task(0)?,
            parent: row.text_or_none(1)?.map(TaskId::new),
            cost: ledger::amount(row, 2)?.saturating_add(ledger::amount(row, 5)?),
        })
    })
}

pub(super) async fn roots<D: DatabaseSession>(db: &D, trace: TraceId) -> Result<Vec<TaskId>, PostgresFault> {
    let sql = "SELECT id FROM tasks WHERE trace = $1 AND root IS NULL AND trace IS NOT NULL ORDER BY num";
    columns::each(db.rows(sql, &[&trace.0.to_be_bytes().as_slice()]).await?, |row| row.task(0))
}

pub(super) async fn ledger(session: &mut ClientWrapper, settled_since: Timestamp) -> Result<LedgerSnapshot, PostgresFault> {
    // One view for both: a task that goes meanwhile would be counted twice, or not at all.
    let view = readers::view(session).await?;
    let sql = format!(
        "WITH open (id) AS MATERIALIZED (SELECT coalesce(root, id) FROM tasks WHERE stage < 3 AND trace IS NOT NULL) {}",
        rows_of(NUMBERS_OF_LEDGER, "")
    );
    let tasks = columns::each(view.rows(&sql, &[&settled_since.micros()]).await?, |row| {
        let row = linked_row(row)?;
        let link = row.link.filter(|_| !row.state.is_terminal());
        Ok(LedgerRow { link, ..row })
    })?;
    let past = spent::since(&view, settled_since).await?;
    view.commit().await?;
    Ok(LedgerSnapshot { tasks, past })
}

fn linked_row(row: &Row) -> Result<LedgerRow, PostgresFault> {
    let task = row.task(COLUMN_COUNT)?;
    let link = row.text_or_none(LINK_AT)?.map(|peer| {
        Ok::<_, PostgresFault>(Link {
            peer,
            task: row.text_or_none(LINK_AT + 1)?.map(TaskId::new),
            context: row.text_or_none(LINK_AT + 2)?.map(ContextId::new),
        })
    });
    Ok(LedgerRow {
        governed: ledger::governed(row, &task)?,
        task,
        agent: row.text(COLUMN_COUNT + 1)?,
        owner: Caller { tenant: row.text(COLUMN_COUNT + 2)?, name: row.text(COLUMN_COUNT + 3)? },
        created_at: row.time(COLUMN_COUNT + 4)?,
        state: state(row, COLUMN_COUNT + 5)?,
        status_at: row.time(COLUMN_COUNT + 6)?,
        context_id: ContextId::new(row.text(COLUMN_COUNT + 7)?),
        dialect: dialect(&row.text(COLUMN_COUNT + 8)?)?,
        link: link.transpose()?,
    })
}
