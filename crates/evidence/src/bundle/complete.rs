//! Whether what was asked for is all there, as far as a bundle can show it; what it cannot show is named.

use std::collections::{BTreeMap, BTreeSet};

use chancery_protocol::TaskState;

use super::fault::{BundleFault, BundleFaultCode, fault};
use super::links::{Checkpoints, Placed, at_of, kind_of};
use super::ties::BundleScope;
use crate::record::types;

/// Of which tasks a bundle does not show the beginning, and of which it does not show the end.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) cut: BTreeSet<String>,
    pub(super) open: BTreeSet<String>,
}

pub(super) fn complete(entries: &[Placed<'_>], scope: &BundleScope, checkpoints: &Checkpoints) -> Result<Ends, BundleFault> {
    let Some(first) = entries.first() else { return Ok(Ends::default()) };
    if first.index < scope.kept_from {
        let message = format!("entry {} is from before entry {}, which is said to be the first", first.index, scope.kept_from);
        return Err(fault(BundleFaultCode::ChainOrder, message));
    }
    if scope.is_range() {
        stretch(entries, scope, checkpoints)?;
    }
    of_the_task(entries, scope)?;
    let ends = tasks(entries, scope)?;
    let rests_on_beginning = if scope.is_range() { first.index == scope.kept_from } else { !ends.cut.is_empty() };
    if rests_on_beginning && !may_begin(scope.kept_from, checkpoints) {
        return Err(missing(0, scope.kept_from - 1));
    }
    Ok(ends)
}

fn missing(from: u64, to: u64) -> BundleFault {
    fault(BundleFaultCode::ChainMissing, format!("entries {from} to {to} are missing"))
}

/// Entries are deleted by whole segments, so a record begins where a segment does.
fn may_begin(kept_from: u64, checkpoints: &Checkpoints) -> bool {
    let begins_or_ends = |first, sealed, end| first == kept_from || (sealed && end == kept_from);
    kept_from == 0 || checkpoints.values().any(|(signed, body)| begins_or_ends(body.first, signed.sealed, signed.end))
}

/// All entries from the first to the last. It begins where the record did and ends where that was signed, or else has one entry
/// too early and one too late. With more of these any entry could be called the first or the last.
fn stretch(entries: &[Placed<'_>], scope: &BundleScope, checkpoints: &Checkpoints) -> Result<(), BundleFault> {
    for pair in entries.windows(2) {
        if pair[1].index != pair[0].index + 1 {
            return Err(missing(pair[0].index + 1, pair[1].index - 1));
        }
    }
    let (Some((first, later)), Some((last, earlier))) = (entries.split_first(), entries.split_last()) else { return Ok(()) };
    let is_early = |entry: &Placed<'_>| scope.since.is_some_and(|since| at_of(entry.event) < since);
    let is_late = |entry: &Placed<'_>| scope.until.is_some_and(|until| at_of(entry.event) >= until);
    let not_asked_for = |entry: &Placed<'_>, side| {
        let message = format!("entry {} is too {side} for what was asked for, and so is the one beside it", entry.index);
        fault(BundleFaultCode::ChainUnlinked, message)
    };
    if let Some(second) = later.first().filter(|second| is_early(first) && is_early(second)) {
        return Err(not_asked_for(second, "early"));
    }
    if let Some(before) = earlier.last().filter(|before| is_late(last) && is_late(before)) {
        return Err(not_asked_for(before, "late"));
    }
    let (shows_begin, shows_end) = (is_early(first) && !later.is_empty(), is_late(last) && !earlier.is_empty());
    if first.index > scope.kept_from && !shows_begin {
        return Err(missing(scope.kept_from, first.index - 1));
    }
    let signed = checkpoints.values().map(|(checkpoint, _)| checkpoint.end).max();
    match signed.filter(|end| last.index + 1 < *end && !shows_end) {
        Some(end) => Err(missing(last.index + 1, end - 1)),
        None => Ok(()),
    }
}

/// Beside the task that was asked for there is only word of the clock.
fn of_the_task(entries: &[Placed<'_>], scope: &BundleScope) -> Result<(), BundleFault> {
    let Some(task) = &scope.task else { return Ok(()) };
    let is_other = |entry: &&Placed<'_>| kind_of(entry.event) != types::CLOCK && entry.event["data"]["task"] != **task;
    match entries.iter().find(is_other) {
        Some(entry) => Err(fault(BundleFaultCode::ChainUnlinked, format!("entry {} is not about task {task}", entry.index))),
        None => Ok(()),
    }
}

/// The state of a task from the entries read so far.
#[derive(Default)]
struct TaskCoverage {
    begun: bool,
    ended: bool,
    /// The number of its next update.
    next: Option<u64>,
}

/// The updates of a task are numbered, and its request is the first: none is missing between two of them.
fn tasks(entries: &[Placed<'_>], scope: &BundleScope) -> Result<Ends, BundleFault> {
    let mut tasks: BTreeMap<&str, TaskCoverage> = BTreeMap::new();
    let whole = !scope.is_range() && scope.kept_from == 0;
    for entry in entries {
        let Some(task) = entry.event["data"]["task"].as_str() else { continue };
        let told = tasks.entry(task).or_default();
        told.ended |= kind_of(entry.event) == types::WITHDRAWN;
        let Some(seq) = number_of(entry) else { continue };
        let due = told.next.unwrap_or(if whole { 1 } else { seq });
        if seq != due && !scope.is_range() {
            let message = format!("update {due} of task {task} is missing before entry {}", entry.index);
            return Err(fault(BundleFaultCode::ChainMissing, message));
        }
        told.begun |= seq == 1;
        told.ended = is_end(entry);
        told.next = Some(seq.saturating_add(1));
    }
    let named = |is_meant: fn(&TaskCoverage) -> bool| -> BTreeSet<String> {
        tasks.iter().filter(|(_, told)| is_meant(told)).map(|(task, _)| (*task).to_owned()).collect()
    };
    // A stretch of time shows its own beginning and end. What is forgotten is in none.
    let begins_with_record = if scope.is_range() { scope.since.is_none() && scope.kept_from > 0 } else { true };
    let cut = if begins_with_record { named(|told| !told.begun) } else { BTreeSet::new() };
    let open = if scope.is_range() { BTreeSet::new() } else { named(|told| !told.ended) };
    Ok(Ends { cut, open })
}

/// Its place in the log of its task.
fn number_of(entry: &Placed<'_>) -> Option<u64> {
    match kind_of(entry.event) {
        types::REQUESTED => Some(1),
        // That is the number of what it told of.
        types::DELIVERED => None,
        _ => entry.event["data"]["seq"].as_u64(),
    }
}

/// Whether nothing has to follow: the task is over, or was answered with a message.
fn is_end(entry: &Placed<'_>) -> bool {
    let data = &entry.event["data"];
    let is_over = |state: &str| TaskState::ALL.iter().any(|one| one.is_terminal() && one.name() == state);
    match kind_of(entry.event) {
        types::UPDATED => data["state"].as_str().is_some_and(is_over),
        types::MESSAGE => data["message"]["role"] == "agent",
        _ => false,
    }
}
