//! The open tasks by id: those that a turn works on or a stream reads.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chancery_protocol::TaskId;
use foldhash::fast::RandomState;

use crate::live::LiveTask;

const SHARDS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct OpenTasks {
    hasher: RandomState,
    /// What the tails of all open tasks weigh.
    tail_bytes: Arc<AtomicU64>,
    shards: [Mutex<HashMap<TaskId, Weak<LiveTask>, RandomState>>; SHARDS],
}

impl OpenTasks {
    fn shard(&self, id: &TaskId) -> std::sync::MutexGuard<'_, HashMap<TaskId, Weak<LiveTask>, RandomState>> {
        let shard = self.hasher.hash_one(id) as usize % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tail_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.tail_bytes)
    }

    pub(crate) fn get(&self, id: &TaskId) -> Option<Arc<LiveTask>> {
        self.shard(id).get(id).and_then(Weak::upgrade)
    }

    /// Adds a task, unless another flow has added it meanwhile: then that one counts.
    pub(crate) fn add(self: &Arc<Self>, live: LiveTask) -> Arc<LiveTask> {
        let mut shard = self.shard(&live.record.id);
        if let Some(known) = shard.get(&live.record.id).and_then(Weak::upgrade) {
            return known;
        }
        let live = Arc::new(live.listed_in(self));
        shard.insert(live.record.id.clone(), Arc::downgrade(&live));
        live
    }

    /// Called when the last holder of a task lets go.
    pub(crate) fn forget(&self, id: &TaskId) {
        let mut shard = self.shard(id);
        // Between the last drop and this call the task may have been loaded anew.
        if shard.get(id).is_some_and(|weak| weak.strong_count() == 0) {
            shard.remove(id);
        }
    }

    /// Takes a task off the list while it is still held, because it fell behind the store.
    pub(crate) fn drop_stale(&self, live: &Arc<LiveTask>) {
        let mut shard = self.shard(&live.record.id);
        if shard.get(&live.record.id).is_some_and(|weak| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(live))) {
            shard.remove(&live.record.id);
        }
    }

    /// Every open task.
    pub(crate) fn all(&self) -> Vec<Arc<LiveTask>> {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.values().filter_map(Weak::upgrade).collect::<Vec<_>>()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}
