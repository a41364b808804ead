//! How many tasks of a caller run with a skill at this moment.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::Caller;
use foldhash::fast::RandomState;

use super::PolicyError;

const SHARDS: usize = 16;

/// As many at a time as there are.
pub const UNLIMITED: u32 = u32::MAX;

type Key = (Caller, Option<Arc<str>>);
type Running = HashMap<Key, u32, RandomState>;

/// Counts per caller and skill. A caller without a running task is not in it.
#[derive(Debug, Default)]
pub struct Slots {
    hasher: RandomState,
    shards: [Mutex<Running>; SHARDS],
}

impl Slots {
    /// One more task, if fewer than `limit` run. It counts until the slot is dropped. Under [`UNLIMITED`]
    /// nothing is counted.
    pub fn take(self: &Arc<Self>, caller: &Caller, skill: Option<&Arc<str>>, limit: u32) -> Result<Slot, PolicyError> {
        if limit == UNLIMITED {
            return Ok(Slot(None));
        }
        let key = (caller.clone(), skill.cloned());
        let mut shard = self.shard(&key);
        match shard.get_mut(&key) {
            Some(running) if *running < limit => *running += 1,
            None if limit > 0 => {
                shard.insert(key.clone(), 1);
            }
            _ => return Err(PolicyError::ConcurrencyFull { caller: caller.name.clone(), skill: skill.cloned(), limit }),
        }
        drop(shard);
        Ok(Slot(Some((self.clone(), key))))
    }

    pub fn running(&self, caller: &Caller, skill: Option<&Arc<str>>) -> u32 {
        let key = (caller.clone(), skill.cloned());
        self.shard(&key).get(&key).copied().unwrap_or(0)
    }

    /// How many pairs of caller and skill have tasks running.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Running> {
        let shard = self.hasher.hash_one(key) as usize % SHARDS;
        // Nothing that panics runs under the lock.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run one task. There is no way to give it back but to drop it, so it is given back once.
#[derive(Debug)]
#[must_use = "the slot is free again as soon as this is dropped"]
pub struct Slot(Option<(Arc<Slots>, Key)>);

impl Drop for Slot {
    fn drop(&mut self) {
        let Some((slots, key)) = &self.0 else { return };
        let mut shard = slots.shard(key);
        match shard.get_mut(key) {
            Some(running) if *running > 1 => *running -= 1,
            _ => {
                shard.remove(key);
                // A map that was large once stays large; give back what a storm of callers took.
                if shard.is_empty() {
                    shard.shrink_to(8);
                }
            }
        }
    }
}
