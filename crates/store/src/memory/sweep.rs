//! Forgets finished tasks, oldest first, at a cost that depends on how many go and not on how many stay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chancery_core::SweepPlan;
use chancery_protocol::{TaskId, Timestamp};

use super::{MemoryStore, locked};

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
            gone.push(kept);
        }
        next.extend(shards[at].finished().front().map(|departure| Reverse((departure.clone(), at))));
    }
    gone.len() as u64
}

/// Takes out a task that was made and nothing more.
pub(super) fn withdraw(store: &MemoryStore, task: &TaskId) -> bool {
    let mut names = locked(&store.names);
    let Some(kept) = store.shard(task.as_str()).withdraw(task) else { return false };
    names.release(&kept.task, kept.key.as_ref());
    true
}
