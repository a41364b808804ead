//! Ids that were seen before, so that a copy of a message is known for one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chancery_protocol::Timestamp;

/// How many ids are remembered. The oldest goes when there are more.
pub const MOST_REMEMBERED: usize = 100_000;
/// As long as a signature can pass for fresh: a message that is ahead of our clock by the tolerance and comes back behind it by the same.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// Whether a message was received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayCheck {
    /// The message is new. Report the result, or the message is never remembered.
    Fresh,
    /// It was taken before.
    Seen,
    /// Another task works on it now, and may yet fail.
    UnderWay,
}

/// The remembered ids of messages: those that were accepted, and those in work. A message whose work failed
/// is forgotten, because its sender retries with the same id.
pub struct ReplayMemory {
    most: usize,
    kept: Mutex<SeenIds>,
}

#[derive(Default)]
struct SeenIds {
    ids: HashMap<Arc<str>, Option<Timestamp>>,
    /// Those taken, oldest first.
    order: VecDeque<(Arc<str>, Timestamp)>,
}

impl ReplayMemory {
    /// Makes a memory of at most `most` ids.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), kept: Mutex::default() }
    }

    /// Notes that a message is being worked on, and returns whether it is new.
    pub fn begin(&self, id: &str, now: Timestamp) -> ReplayCheck {
        let mut kept = self.kept();
        kept.forget(now, self.most);
        match kept.ids.get(id) {
            Some(Some(_)) => ReplayCheck::Seen,
            Some(None) => ReplayCheck::UnderWay,
            None => {
                kept.ids.insert(id.into(), None);
                ReplayCheck::Fresh
            }
        }
    }

    /// It was taken: from now on it is a copy.
    pub fn taken(&self, id: &str, now: Timestamp) {
        let mut kept = self.kept();
        let id: Arc<str> = id.into();
        if kept.ids.insert(id.clone(), Some(now)).flatten().is_none() {
            kept.order.push_back((id, now));
        }
        kept.forget(now, self.most);
    }

    /// The work failed: the next attempt of the sender is accepted.
    pub fn dropped(&self, id: &str) {
        let mut kept = self.kept();
        if kept.ids.get(id) == Some(&None) {
            kept.ids.remove(id);
        }
    }

    fn kept(&self) -> MutexGuard<'_, SeenIds> {
        // Nothing that panics runs under the lock, and what is kept is right entry by entry.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenIds {
    fn forget(&mut self, now: Timestamp, most: usize) {
        while let Some((id, at)) = self.order.front() {
            if *at + REMEMBERED_FOR >= now && self.order.len() <= most {
                break;
            }
            self.ids.remove(id);
            self.order.pop_front();
        }
    }
}

impl Default for ReplayMemory {
    fn default() -> Self {
        Self::new(MOST_REMEMBERED)
    }
}

impl fmt::Debug for ReplayMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMemory").field("ids", &self.kept().ids.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_message_is_new_until_it_was_taken_and_again_after_it_failed() {
        let memory = ReplayMemory::default();
        assert_eq!(memory.begin("a", at(0)), ReplayCheck::Fresh);
        assert_eq!(memory.begin("a", at(0)), ReplayCheck::UnderWay);
        memory.dropped("a");
        assert_eq!(memory.begin("a", at(1)), ReplayCheck::Fresh);
        memory.taken("a", at(1));
        memory.taken("a", at(1));
        memory.dropped("a");
        assert_eq!(memory.begin("a", at(601)), ReplayCheck::Seen, "it could pass for fresh until then");
        assert_eq!(memory.begin("a", at(602)), ReplayCheck::Fresh);
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let memory = ReplayMemory::new(2);
        for id in ["a", "b", "c"] {
            assert_eq!(memory.begin(id, at(0)), ReplayCheck::Fresh);
            memory.taken(id, at(0));
        }
        assert_eq!([memory.begin("b", at(1)), memory.begin("c", at(1))], [ReplayCheck::Seen; 2]);
        assert_eq!(memory.begin("a", at(1)), ReplayCheck::Fresh);
        assert_eq!(format!("{memory:?}"), "ReplayMemory { ids: 3 }");
    }
}
