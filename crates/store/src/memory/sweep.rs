//! Forgets finished tasks, oldest first, at a cost that depends on how many go, and on how many of the oldest must stay.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::MutexGuard;

use chancery_core::SweepPlan;
use chancery_protocol::{TaskId, Timestamp};
use foldhash::fast::RandomState;

use super::shard::{Shard, StoredTask};
use super::{MemoryStore, SHARDS, locked, shard_of, spent};
use crate::{numbering, past};

pub(super) fn sweep(store: &MemoryStore, plan: SweepPlan) -> u64 {
    // Declared first, so that the logs are freed last, when nobody waits for the locks.
    let mut gone = Vec::new();
    let mut names = locked(&store.names);
    let mut shards: Vec<_> = store.shards.iter().map(locked).collect();
    let finished: u64 = shards.iter().map(|shard| shard.finished().len() as u64).sum();
    let too_many = plan.keep_at_most.map_or(0, |keep| finished.saturating_sub(keep));
    let finished_bytes: u64 = shards.iter().map(|shard| shard.finished_bytes()).sum();
    let bytes_over = plan.keep_bytes.map_or(0, |keep| finished_bytes.saturating_sub(keep));

    let mut next: BinaryHeap<_> =
        shards.iter().enumerate().filter_map(|(at, shard)| Some(Reverse((shard.finished().front()?.clone(), at)))).collect();
    // Tasks that webhooks are yet to be told of stay, and so do those of trees that go on, in whose place nobody else has to go.
    let mut held = [0; SHARDS];
    let (mut of_trees, mut trees) = (0, HashMap::with_hasher(RandomState::default()));
    // The bytes of the tasks that go, and of those of trees that go on.
    let mut counted_bytes = 0;
    while let Some(Reverse(((status_at, id), at))) = next.pop() {
        let count = gone.len() as u64;
        let too_old = plan.older_than.is_some_and(|bound| status_at < bound);
        if count >= plan.at_most || !(too_old || count + of_trees < too_many || counted_bytes < bytes_over) {
            break;
        }
        let kept = shards[at].get(id.as_str());
        let bytes = kept.map_or(0, StoredTask::held_bytes);
        let told = kept.is_some_and(|kept| kept.lanes > 0);
        let root = kept.and_then(|kept| kept.governed.as_ref()).map(|governed| &governed.kinship.root);
        // Most trees are one task, which has ended.
        let root = root.filter(|root| **root != id || store.indexes.has_below(root));
        if root.is_some_and(|root| *trees.entry(root.clone()).or_insert_with(|| goes_on(store, &shards, root))) {
            held[at] += 1;
            of_trees += 1;
            counted_bytes += bytes;
        } else if told && locked(&store.outbox).lanes.holds(&id) {
            held[at] += 1;
        } else if let Some(kept) = shards[at].forget(held[at]) {
            if told {
                locked(&store.outbox).remove_task(&id);
            }
            names.release_name(&kept.task);
            store.indexes.remove(&kept);
            counted_bytes += bytes;
            gone.push(kept);
        }
        next.extend(shards[at].finished().get(held[at]).map(|departure| Reverse((departure.clone(), at))));
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
    if kept.lanes > 0 {
        locked(&store.outbox).remove_task(task);
    }
    store.indexes.remove(&kept);
    names.release_name(&kept.task);
    kept.key.iter().for_each(|key| names.release_key(&kept.task, key));
    true
}

/// Whether a tree has tasks that have not ended: as long as it has, what all others of it cost counts in its budget.
fn goes_on(store: &MemoryStore, shards: &[MutexGuard<'_, Shard>], root: &TaskId) -> bool {
    let open = |kept: &StoredTask| {
        !numbering::is_finished(&kept.progress) && kept.governed.as_ref().is_some_and(|governed| governed.kinship.root == *root)
    };
    let is_open = |task: &TaskId| shards[shard_of(task.as_str())].get(task.as_str()).is_some_and(open);
    is_open(root) || store.indexes.below(root).iter().rev().any(is_open)
}
