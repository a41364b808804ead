//! Adds to a task's log, or makes the task.

use std::sync::atomic::Ordering;

use chancery_core::{Append, Appended, Idempotency, StoreError};

use super::{MemoryStore, locked};
use crate::numbering;

pub(super) fn append(store: &MemoryStore, append: Append) -> Result<Appended, StoreError> {
    let follows = numbering::follows(&append)?;
    let Some(creation) = &append.creation else {
        extend(store, append, follows)?;
        return Ok(Appended::Recorded);
    };
    if creation.idempotency.is_none() && append.task.client_task_id.is_none() {
        make(store, append)?;
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
    make(store, append)?;
    names.take(&task, idempotency);
    Ok(Appended::Recorded)
}

/// The lock on the task is held throughout: whoever finds it finds all that came with it.
fn make(store: &MemoryStore, mut append: Append) -> Result<(), StoreError> {
    let decision = append.decision.take();
    let mut shard = store.shard(append.task.id.as_str());
    let made = store.made_ever.fetch_add(1, Ordering::Relaxed);
    store.indexes.add(shard.make(append, made)?);
    if let Some(decision) = decision {
        locked(&store.decisions).keep(decision);
    }
    Ok(())
}

fn extend(store: &MemoryStore, mut append: Append, follows: u64) -> Result<(), StoreError> {
    let decision = append.decision.take();
    let mut shard = store.shard(append.task.id.as_str());
    let was_linked = shard.get(append.task.id.as_str()).is_some_and(|kept| kept.link.is_some());
    let kept = shard.extend(append, follows)?;
    if kept.link.is_some() && !was_linked {
        store.indexes.add_link(kept);
    }
    if let Some(decision) = decision {
        locked(&store.decisions).keep(decision);
    }
    Ok(())
}
