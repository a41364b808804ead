//! Forgets finished tasks, oldest first, at a cost that depends on how many go and not on how many stay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chancery_core::SweepPlan;
use chancery_protocol::{TaskId, Timestamp};

use super::{MemoryStore, locked, spent};
use crate::past;

pub(super) fn sweep(store: &MemoryStore, plan: SweepPlan, now: Timestamp) -> u64 {
    // Declared first, so that the logs are freed last, when nobody waits for the locks.
    let mut gone = Vec::new();
    let mut names = locked(&store.names);
    names.expire(now);

    let mut shards: Vec<_> = store.shards.iter().map(locked).collect();
    let finished: u64 = shards.iter().map(|shard| shard.finished().len() as u64).sum();
    let too_many = plan.keep_at_most.map_or(0, |keep| finished.saturating_sub(keep));

    let mut next: BinaryHeap<_> =
        shards.iter().enumerate().filter_map(|(at, shard)| Some(Reverse((shard.finished().front()?.clone(), at)))).collect();
    while let Some(Reverse(((status_at, _), at))) = next.pop() {
        let count = gone.len() as u64;
        let too_old = plan.older_than.is_some_and(|bound| status_at < bound);
        if count >= plan.at_most || !(too_old || count < too_many) {
            break;
        }
        if let Some(kept) = shards[at].forget_first() {
            names.release(&kept.task, kept.key.as_ref());
            store.indexes.remove(&kept);
            gone.push(kept);
        }
        next.extend(shards[at].finished().front().map(|departure| Reverse((departure.clone(), at))));
    }

    let since = plan.spent_since.unwrap_or(Timestamp::from_micros(i64::MAX));
    let still_counted = past::add_up(gone.iter().filter_map(|kept| spent::of_task(kept, since)));
    locked(&store.past).turn_over(still_counted, since, plan.at_most);
    if let Some(keep) = plan.keep_decisions {
        locked(&store.decisions).keep_newest(keep, plan.at_most);
    }
    gone.len() as u64
}

/// Takes out a task that was made and nothing more.
pub(super) fn withdraw(store: &MemoryStore, task: &TaskId) -> bool {
    let mut names = locked(&store.names);
    let mut shard = store.shard(task.as_str());
    let Some(kept) = shard.withdraw(task) else { return false };
    store.indexes.remove(&kept);
    names.release(&kept.task, kept.key.as_ref());
    true
}
