//! The rules of an append that hold in every store.

use chancery_core::{Append, Progress, StoreError, TaskRecord};
use chancery_protocol::TaskId;

/// What the log must end with for this append to follow it. Fails if the append does not count by itself.
pub(crate) fn follows(append: &Append) -> Result<u64, StoreError> {
    let first = append.entries.first().map_or(append.progress.seq.saturating_add(1), |entry| entry.seq);
    let counts = first > 0
        && append.entries.iter().zip(first..).all(|(entry, seq)| entry.seq == seq)
        && append.progress.seq.saturating_add(1) == first.saturating_add(append.entries.len() as u64);
    if !counts {
        return Err(StoreError::new(format!(
            "the entries of an append to task {} are not numbered one after the other up to {}",
            append.task.id, append.progress.seq
        )));
    }
    if append.creation.is_some() && first != 1 {
        return Err(StoreError::new(format!("the log of new task {} starts with entry {first} instead of 1", append.task.id)));
    }
    if append.creation.is_none() && append.governed.is_some() {
        return Err(StoreError::new(format!("task {} exists; how it is governed was settled when it was made", append.task.id)));
    }
    if append.creation.is_none() && append.register.is_some() {
        return Err(StoreError::new(format!("task {} exists; a webhook for it is registered by itself", append.task.id)));
    }
    Ok(first - 1)
}

/// The refusal of an append that was made from an outdated view of its task.
pub(crate) fn out_of_turn(task: &TaskRecord, stored: u64, follows: u64) -> StoreError {
    StoreError::new(format!(
        "an append to task {} starts with entry {}, but its log ends with entry {stored}",
        task.id,
        follows + 1
    ))
}

pub(crate) fn made_twice(task: &TaskRecord) -> StoreError {
    StoreError::new(format!("task {} exists already", task.id))
}

pub(crate) fn unknown(task: &TaskRecord) -> StoreError {
    StoreError::new(format!("there is no task {} to append to", task.id))
}

pub(crate) fn not_counted(task: &TaskId) -> StoreError {
    StoreError::new(format!("there is no task {task} whose cost is kept"))
}

/// Nothing can happen any more, so the log may be forgotten when its time comes.
pub(crate) fn is_finished(progress: &Progress) -> bool {
    progress.message_only || progress.state.is_terminal()
}
