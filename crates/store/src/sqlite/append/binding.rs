//! Binds the columns of a task's row, in the order of the statements.

use chancery_core::{Append, Idempotency, Progress};

use crate::rows::stages::TaskStage;
use crate::sqlite::ledger::BoundRow;

pub(super) fn bind_task(row: &mut BoundRow<'_, '_>, append: &Append, idempotency: Option<&Idempotency>) -> rusqlite::Result<()> {
    let Append { task, progress, register, .. } = append;
    row.put(task.id.as_str())?;
    row.put(task.context_id.as_str())?;
    row.put(&*task.agent)?;
    row.put(&*task.owner.tenant)?;
    row.put(&*task.owner.name)?;
    row.put(task.dialect.as_str())?;
    row.put(task.created_at.micros())?;
    bind_progress(row, progress)?;
    row.put(task.client_task_id.as_deref())?;
    row.put(idempotency.map(|idempotency| &*idempotency.key))?;
    row.put(register.is_some())
}

pub(super) fn bind_progress(row: &mut BoundRow<'_, '_>, progress: &Progress) -> rusqlite::Result<()> {
    row.put(progress.state.number())?;
    row.put(progress.status_at.micros())?;
    row.put(progress.seq)?;
    row.put(progress.bytes)?;
    row.put(progress.message_only)?;
    row.put(TaskStage::of(progress) as i64)
}
