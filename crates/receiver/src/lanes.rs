//! How far each lane has got, so that what comes late is known for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many lanes are remembered. The one that was begun first goes when there are more.
const MOST_LANES: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct ReceivedLanes(Mutex<LaneProgress>);

#[derive(Debug, Default)]
struct LaneProgress {
    /// By task and number: two senders may count alike.
    last: HashMap<Key, u64>,
    order: VecDeque<Key>,
}

type Key = (String, u64);

impl ReceivedLanes {
    /// Whether something later has been taken already.
    pub(crate) fn is_stale(&self, task: &str, lane: u64, seq: u64) -> bool {
        self.kept().last.get(&(task.to_owned(), lane)).is_some_and(|last| seq < *last)
    }

    pub(crate) fn taken(&self, task: &str, lane: u64, seq: u64) {
        let (mut kept, key) = (self.kept(), (task.to_owned(), lane));
        if let Some(last) = kept.last.get_mut(&key) {
            *last = seq.max(*last);
            return;
        }
        kept.order.push_back(key.clone());
        kept.last.insert(key, seq);
        if kept.order.len() > MOST_LANES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.last.remove(&oldest);
        }
    }

    fn kept(&self) -> MutexGuard<'_, LaneProgress> {
        // Nothing that panics runs under the lock, and what is kept is right entry by entry.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_before_the_last_one_taken_is_stale_and_lanes_are_their_own() {
        let lanes = ReceivedLanes::default();
        assert!(!lanes.is_stale("t", 1, 0));
        lanes.taken("t", 1, 5);
        lanes.taken("t", 1, 3);
        assert!(lanes.is_stale("t", 1, 4) && !lanes.is_stale("t", 1, 5) && !lanes.is_stale("t", 1, 6));
        assert!(!lanes.is_stale("t", 2, 4) && !lanes.is_stale("u", 1, 4));
        (0..MOST_LANES as u64).for_each(|lane| lanes.taken("many", lane, 1));
        assert!(!lanes.is_stale("t", 1, 4), "the oldest is forgotten");
        assert_eq!(lanes.kept().last.len(), MOST_LANES);
    }
}
