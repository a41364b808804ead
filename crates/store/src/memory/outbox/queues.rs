//! The lines that lanes wait in, one for each tenant and origin, and which line has waited longest.

use std::collections::{BTreeMap, BTreeSet};

use chancery_core::push::{ClockSet, Lane, WebhookOrigin};
use chancery_protocol::Timestamp;

use crate::lanes;

#[derive(Debug, Default)]
pub(super) struct DueQueues {
    all: BTreeMap<WebhookOrigin, Line>,
    /// By when the first lane of each is due.
    due: BTreeSet<(Timestamp, WebhookOrigin)>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: BTreeSet<(Timestamp, u64)>,
    parked_until: Option<Timestamp>,
    /// Whether they wait or not.
    lanes: usize,
}

impl Line {
    fn due_at(&self) -> Option<Timestamp> {
        let (first, _) = self.waiting.first()?;
        Some(self.parked_until.map_or(*first, |until| until.max(*first)))
    }
}

impl DueQueues {
    pub(super) fn add(&mut self, lane: &Lane) {
        self.with(lane.registration.destination(), |line| line.lanes += 1);
        self.put_back(lane);
    }

    /// The lane as it was added.
    pub(super) fn remove(&mut self, lane: &Lane) {
        self.take_out(lane);
        self.with(lane.registration.destination(), |line| line.lanes -= 1);
    }

    /// A lane may have to wait in another line from now on.
    pub(super) fn replace(&mut self, before: &Lane, after: &Lane) {
        self.take_out(before);
        // In this order, so that a line that stays is never empty.
        self.with(after.registration.destination(), |line| line.lanes += 1);
        self.with(before.registration.destination(), |line| line.lanes -= 1);
        self.put_back(after);
    }

    /// Before a lane changes.
    pub(super) fn take_out(&mut self, lane: &Lane) {
        if let Some(due_at) = lanes::due_at(&lane.cursor) {
            self.with(lane.registration.destination(), |line| {
                line.waiting.remove(&(due_at, lane.number()));
            });
        }
    }

    /// After it has.
    pub(super) fn put_back(&mut self, lane: &Lane) {
        if let Some(due_at) = lanes::due_at(&lane.cursor) {
            self.with(lane.registration.destination(), |line| {
                line.waiting.insert((due_at, lane.number()));
            });
        }
    }

    pub(super) fn park(&mut self, queue: &WebhookOrigin, until: Timestamp) {
        if self.all.contains_key(queue) {
            self.with(queue.clone(), |line| line.parked_until = Some(until));
        }
    }

    pub(super) fn clock_set(&mut self, set: ClockSet) {
        let parked: Vec<_> =
            self.all.iter().filter(|(_, line)| line.parked_until.is_some()).map(|(queue, _)| queue.clone()).collect();
        for queue in parked {
            self.with(queue, |line| line.parked_until = line.parked_until.map(|until| set.wait(until)));
        }
    }

    pub(super) fn due(&self, now: Timestamp, most: usize, per_origin: usize, except: &[WebhookOrigin]) -> Vec<u64> {
        let mut found = Vec::new();
        let due = self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, queue)| queue);
        for line in due.filter(|queue| !except.contains(queue)).filter_map(|queue| self.all.get(queue)) {
            let room = per_origin.min(most - found.len());
            found.extend(line.waiting.iter().take_while(|(at, _)| *at <= now).take(room).map(|(_, lane)| *lane));
            if found.len() >= most {
                break;
            }
        }
        found
    }

    /// When the first lane of an origin is due.
    pub(super) fn due_at(&self, origin: &WebhookOrigin) -> Option<Timestamp> {
        self.all.get(origin)?.due_at()
    }

    pub(super) fn next_due(&self, except: &[WebhookOrigin]) -> Option<Timestamp> {
        self.due.iter().find(|(_, queue)| !except.contains(queue)).map(|(at, _)| *at)
    }

    fn with(&mut self, queue: WebhookOrigin, change: impl FnOnce(&mut Line)) {
        let line = self.all.entry(queue.clone()).or_default();
        let before = line.due_at();
        change(line);
        let after = line.due_at();
        if line.lanes == 0 {
            self.all.remove(&queue);
        }
        if before != after {
            if let Some(before) = before {
                self.due.remove(&(before, queue.clone()));
            }
            if let Some(after) = after {
                self.due.insert((after, queue));
            }
        }
    }
}
