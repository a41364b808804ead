//! Adds to a task's log, or makes the task.

use chancery_core::{Append, Appended, Idempotency, StoreError};

use super::{MemoryStore, locked};
use crate::numbering;

pub(super) fn append(store: &MemoryStore, append: Append) -> Result<Appended, StoreError> {
    let follows = numbering::follows(&append)?;
    let Some(creation) = &append.creation else {
        store.shard(append.task.id.as_str()).extend(append, follows)?;
        return Ok(Appended::Recorded);
    };
    if creation.idempotency.is_none() && append.task.client_task_id.is_none() {
        store.shard(append.task.id.as_str()).make(append)?;
        return Ok(Appended::Recorded);
    }
    let idempotency = creation.idempotency.clone();
    make_named(store, append, idempotency.as_ref())
}

/// The lock on the names is held throughout, so of two with the same name one is second.
fn make_named(store: &MemoryStore, append: Append, idempotency: Option<&Idempotency>) -> Result<Appended, StoreError> {
    let mut names = locked(&store.names);
    let task = append.task.clone();
    if let Some(known) = names.taken(&task, idempotency) {
        return Ok(known);
    }
    store.shard(task.id.as_str()).make(append)?;
    names.take(&task, idempotency);
    Ok(Appended::Recorded)
}
