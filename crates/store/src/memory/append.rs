//! Adds to a task's log, or makes the task.

use std::sync::atomic::Ordering;

use chancery_core::push::{NewRegistration, Registered};
use chancery_core::{Append, Appended, Idempotency, Progress, RecordedWrite, StoreError};
use chancery_protocol::Timestamp;

use super::shard::StoredTask;
use super::{MemoryStore, locked, spent};
use crate::{numbering, plain_ids};

pub(super) fn append(store: &MemoryStore, append: Append) -> Result<Appended, StoreError> {
    let follows = numbering::follows(&append)?;
    plain_ids::check_append(&append)?;
    let Some(creation) = &append.creation else {
        return extend(store, append, follows);
    };
    if creation.idempotency.is_none() && append.task.client_task_id.is_none() {
        return make(store, append);
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
    let made = make(store, append)?;
    if matches!(made, Appended::Recorded | Appended::RecordedToTell | Appended::RecordedBehind) {
        names.take(&task, idempotency);
    }
    Ok(made)
}

/// The lock on the task is held throughout: a reader that finds the task finds all of the append.
fn make(store: &MemoryStore, mut append: Append) -> Result<Appended, StoreError> {
    let lines = store.lines(RecordedWrite::Append(&append));
    let (decision, register) = (append.decision.take(), append.register.take());
    let mut shard = store.shard(append.task.id.as_str());
    if let Some(new) = &register
        && let Some(refusal) = refused(locked(&store.outbox).lanes.too_many(new))
    {
        return Ok(refusal);
    }
    let made = store.made_ever.fetch_add(1, Ordering::Relaxed);
    let kept = shard.make(append, made)?;
    let appended = register.map_or(Appended::Recorded, |new| begin_lane(store, kept, &new));
    store.indexes.add(kept);
    if let Some((record, lines)) = lines {
        record.add(&lines);
    }
    if let Some(decision) = decision {
        locked(&store.decisions).keep(decision);
    }
    Ok(appended)
}

fn refused(refusal: Option<Registered>) -> Option<Appended> {
    refusal.map(|refusal| Appended::TooManyRegistrations { of_tenant: refusal == Registered::TooManyOfTenant })
}

/// From the first entry on, if webhooks may receive it yet.
fn begin_lane(store: &MemoryStore, kept: &mut StoredTask, new: &NewRegistration) -> Appended {
    let mut outbox = locked(&store.outbox);
    outbox.lanes.register(new, 0);
    kept.lanes = 1;
    if new.held {
        return Appended::Recorded;
    }
    outbox.lanes.extend(&kept.task.id, kept.progress.seq, new.registration.created_at)
}

fn extend(store: &MemoryStore, mut append: Append, follows: u64) -> Result<Appended, StoreError> {
    let lines = store.lines(RecordedWrite::Append(&append));
    let decision = append.decision.take();
    let (progress, at, spend) = (append.progress, append.entries.last().map(|entry| entry.at), append.spend);
    let mut shard = store.shard(append.task.id.as_str());
    let was_linked = shard.get(append.task.id.as_str()).is_some_and(|kept| kept.link.is_some());
    let kept = shard.extend(append, follows)?;
    if let Some(turn) = spend.and_then(|spend| spent::settle(kept, spend)) {
        locked(&store.past).keep(turn);
    }
    if kept.link.is_some() && !was_linked {
        store.indexes.add_link(kept);
    }
    let appended = if kept.lanes > 0 { tell(store, kept, progress, at) } else { Appended::Recorded };
    if let Some((record, lines)) = lines {
        record.add(&lines);
    }
    if let Some(decision) = decision {
        locked(&store.decisions).keep(decision);
    }
    Ok(appended)
}

/// A log that holds only a message is not a task for webhooks.
fn tell(store: &MemoryStore, kept: &mut StoredTask, progress: Progress, at: Option<Timestamp>) -> Appended {
    let mut outbox = locked(&store.outbox);
    if progress.message_only {
        outbox.remove_task(&kept.task.id);
        kept.lanes = 0;
        return Appended::Recorded;
    }
    outbox.lanes.extend(&kept.task.id, progress.seq, at.unwrap_or(progress.status_at))
}
