//! The newest entries of an open task, held in memory for readers that keep up. Those that do not are served from the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chancery_rules::task_state;

use super::LiveTask;
use crate::LogEntry;
use crate::limits::TaskLimits;

/// One task may have this part of the node's bytes.
const SHARES: u64 = 16;

/// Entries with their weight, which counts for the whole node.
#[derive(Debug, Default)]
pub(super) struct Tail {
    entries: VecDeque<(Arc<LogEntry>, u64)>,
    bytes: u64,
    /// The bytes of all tails together. The tail of a task that is not listed does not count.
    node: Option<Arc<AtomicU64>>,
}

impl Tail {
    pub(super) fn of(entry: Arc<LogEntry>) -> Self {
        let mut tail = Self::default();
        tail.push(entry);
        tail
    }

    /// Counts for the node from now on.
    pub(super) fn count_in(&mut self, node: Arc<AtomicU64>) {
        node.fetch_add(self.bytes, Ordering::Relaxed);
        self.node = Some(node);
    }

    /// Adds entries, and lets go of older ones that are more than `limits.stream_buffer_events`, that weigh more than a share of
    /// `limits.stream_buffer_bytes`, or for which all tails together have no room.
    pub(super) fn extend(&mut self, entries: &[Arc<LogEntry>], limits: &TaskLimits) {
        let before = self.bytes;
        entries.iter().for_each(|entry| self.push(Arc::clone(entry)));
        let added = self.bytes - before;
        let node = self.node.as_ref().map_or(0, |node| node.fetch_add(added, Ordering::Relaxed) + added);
        let over_node = node.saturating_sub(limits.stream_buffer_bytes);
        let mut over = over_node.max(self.bytes.saturating_sub(limits.stream_buffer_bytes / SHARES));
        let mut dropped = 0;
        while self.entries.len() > limits.stream_buffer_events || over > 0 {
            let Some((_, weight)) = self.entries.pop_front() else { break };
            dropped += weight;
            over = over.saturating_sub(weight);
        }
        self.bytes -= dropped;
        if dropped > 0
            && let Some(node) = &self.node
        {
            node.fetch_sub(dropped, Ordering::Relaxed);
        }
    }

    fn push(&mut self, entry: Arc<LogEntry>) {
        let weight = task_state::weight(&entry.event);
        self.bytes += weight;
        self.entries.push_back((entry, weight));
    }

    pub(super) fn first_seq(&self) -> Option<u64> {
        self.entries.front().map(|(entry, _)| entry.seq)
    }

    /// Entries after the first `skip`, at most `limit` and no more than weigh `bytes` together, but at least one. `None` when the
    /// first of them is not here.
    pub(super) fn after(&self, skip: usize, limit: usize, bytes: u64) -> Option<Vec<Arc<LogEntry>>> {
        let mut sum = 0_u64;
        let mut taken = Vec::new();
        for (entry, weight) in self.entries.iter().skip(skip).take(limit) {
            sum = sum.saturating_add(*weight);
            if sum > bytes && !taken.is_empty() {
                break;
            }
            taken.push(Arc::clone(entry));
        }
        (!taken.is_empty()).then_some(taken)
    }
}

impl LiveTask {
    /// Entries after `after` that are still in memory. `None` when some of them are only in the store.
    pub(crate) fn tail_after(&self, after: u64, limit: usize, bytes: u64) -> Option<Vec<Arc<LogEntry>>> {
        let state = self.lock();
        if after >= state.visible.seq {
            return Some(Vec::new());
        }
        let first = state.tail.first_seq()?;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        state.tail.after(skip, limit, bytes)
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(node) = &self.node {
            node.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Message, Role, TaskEvent, Timestamp};

    /// An entry that weighs 100.
    fn entry(seq: u64) -> Arc<LogEntry> {
        let event = TaskEvent::Said(Arc::new(Message::text(Role::User, "m", "x".repeat(36))));
        assert_eq!(task_state::weight(&event), 100);
        Arc::new(LogEntry { seq, at: Timestamp::from_micros(0), event })
    }

    fn numbers(tail: &Tail, bytes: u64) -> Option<Vec<u64>> {
        Some(tail.after(0, 9, bytes)?.iter().map(|entry| entry.seq).collect())
    }

    #[test]
    fn all_tails_together_weigh_what_they_may_and_the_oldest_entries_go_first() {
        let node = Arc::new(AtomicU64::new(0));
        // A share is 300 bytes. What the rest of the node holds leaves 400.
        let limits = TaskLimits { stream_buffer_bytes: 300 * SHARES, stream_buffer_events: 3, ..TaskLimits::default() };
        node.store(300 * SHARES - 400, Ordering::Relaxed);
        let held = || node.load(Ordering::Relaxed) - (300 * SHARES - 400);
        let tail = |first: u64| {
            let mut tail = Tail::of(entry(first));
            tail.count_in(Arc::clone(&node));
            tail
        };
        let (mut one, mut other) = (tail(1), tail(1));
        one.extend(&[entry(2), entry(3)], &limits);
        assert_eq!((numbers(&one, 999), held()), (Some(vec![1, 2, 3]), 400), "at the edge all stay");
        one.extend(&[entry(4)], &limits);
        assert_eq!((numbers(&one, 999), held()), (Some(vec![2, 3, 4]), 400), "three entries at most");
        other.extend(&[entry(2)], &limits);
        assert_eq!((numbers(&other, 999), held()), (Some(vec![2]), 400), "400 bytes at most");
        assert_eq!(numbers(&one, 250), Some(vec![2, 3]), "a batch has its own bound");
        assert_eq!(numbers(&one, 1), Some(vec![2]), "and at least one entry");
        drop(one);
        assert_eq!(held(), 100);
        other.extend(&[entry(3), entry(4)], &TaskLimits { stream_buffer_events: 9, ..limits.clone() });
        other.extend(&[entry(5)], &TaskLimits { stream_buffer_events: 9, ..limits.clone() });
        assert_eq!((numbers(&other, 999), held()), (Some(vec![3, 4, 5]), 300), "one task has its share");
        other.extend(&[entry(6)], &TaskLimits { stream_buffer_bytes: 50, ..limits });
        assert_eq!((numbers(&other, 999), held()), (None, 0), "then the log serves all of it");
    }
}
