//! The links of tasks to the remote agents that work on them.

use std::sync::Arc;

use chancery_core::{Link, TaskRecord};
use chancery_protocol::{Caller, ContextId, TaskId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::SqliteFault;

/// Part of an append's transaction.
pub(super) fn keep(connection: &Connection, num: i64, task: &TaskRecord, link: &Link) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO links (task, tenant, owner, agent, context_id, peer, peer_task, peer_context)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (task) DO UPDATE SET peer = ?6, peer_task = ?7, peer_context = ?8",
        )?
        .execute((
            num,
            &*task.owner.tenant,
            &*task.owner.name,
            &*task.agent,
            task.context_id.as_str(),
            &*link.peer,
            link.task.as_ref().map(TaskId::as_str),
            link.context.as_ref().map(ContextId::as_str),
        ))?;
    Ok(())
}

pub(super) fn of_task(connection: &Connection, task: &TaskId) -> Result<Option<Link>, SqliteFault> {
    let sql = "SELECT peer, peer_task, peer_context FROM links WHERE task = (SELECT num FROM tasks WHERE id = ?1)";
    Ok(connection.prepare_cached(sql)?.query_row([task.as_str()], link).optional()?)
}

/// The one of the task that was made last.
pub(super) fn of_context(
    connection: &Connection,
    owner: &Caller,
    agent: &str,
    context: &ContextId,
) -> Result<Option<Link>, SqliteFault> {
    let sql = "SELECT peer, peer_task, peer_context FROM links
               WHERE tenant = ?1 AND owner = ?2 AND agent = ?3 AND context_id = ?4 ORDER BY task DESC LIMIT 1";
    let parameters = (&*owner.tenant, &*owner.name, agent, context.as_str());
    Ok(connection.prepare_cached(sql)?.query_row(parameters, link).optional()?)
}

fn link(row: &Row<'_>) -> rusqlite::Result<Link> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    Ok(Link {
        peer: Arc::from(row.get::<_, String>(0)?),
        task: text(1)?.map(TaskId::from),
        context: text(2)?.map(ContextId::from),
    })
}
