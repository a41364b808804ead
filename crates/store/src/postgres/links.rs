//! The links of tasks to the remote agents that work on them.

use chancery_core::Link;
use chancery_protocol::{Caller, ContextId, TaskId};
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, sought};
use super::fault::PostgresFault;

pub(super) async fn of_task<D: DatabaseSession>(db: &D, task: &TaskId) -> Result<Option<Link>, PostgresFault> {
    let sql = "SELECT peer, peer_task, peer_context FROM links WHERE task = (SELECT num FROM tasks WHERE id = $1)";
    columns::row(db, sql, &[&sought(task.as_str())]).await?.as_ref().map(link).transpose()
}

/// The one of the task that was made last.
pub(super) async fn of_context<D: DatabaseSession>(
    db: &D,
    owner: &Caller,
    agent: &str,
    context: &ContextId,
) -> Result<Option<Link>, PostgresFault> {
    let sql = "SELECT peer, peer_task, peer_context FROM links
               WHERE tenant = $1 AND owner = $2 AND agent = $3 AND context_id = $4 ORDER BY task DESC LIMIT 1";
    let (tenant, name, context) = (sought(&owner.tenant), sought(&owner.name), sought(context.as_str()));
    columns::row(db, sql, &[&tenant, &name, &sought(agent), &context]).await?.as_ref().map(link).transpose()
}

fn link(row: &Row) -> Result<Link, PostgresFault> {
    Ok(Link {
        peer: row.text(0)?,
        task: row.text_or_none(1)?.map(TaskId::new),
        context: row.text_or_none(2)?.map(ContextId::new),
    })
}
