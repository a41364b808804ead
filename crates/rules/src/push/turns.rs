//! Whose turn it is: origins take turns, and within one the lane that waited longest goes first (deficit round robin).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::origin::WebhookOrigin;

/// Deliveries an origin may make a round. What a run took beyond that is paid off in the rounds after.
const QUANTUM: i64 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingLane {
    pub(super) lane: u64,
    pub(super) host: Arc<str>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<WaitingLane>,
    balance: i64,
    in_ring: bool,
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    ring: VecDeque<WebhookOrigin>,
    lines: HashMap<WebhookOrigin, Line>,
    waiting: usize,
}

impl Turns {
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// How many origins could have their turn.
    pub(super) fn ring(&self) -> usize {
        self.ring.len()
    }

    pub(super) fn waiting(&self, origin: &WebhookOrigin) -> usize {
        self.lines.get(origin).map_or(0, |line| line.waiting.len())
    }

    pub(super) fn push(&mut self, origin: &WebhookOrigin, waiting: WaitingLane) {
        self.lines.entry(origin.clone()).or_default().waiting.push_back(waiting);
        self.waiting += 1;
        self.wake(origin);
    }

    /// Back into the ring, if it waits for something.
    pub(super) fn wake(&mut self, origin: &WebhookOrigin) {
        if let Some(line) = self.lines.get_mut(origin)
            && !line.in_ring
            && !line.waiting.is_empty()
        {
            line.in_ring = true;
            self.ring.push_back(origin.clone());
        }
    }

    /// The origin whose turn it is now.
    pub(super) fn front(&self) -> Option<(&WebhookOrigin, &WaitingLane)> {
        let origin = self.ring.front()?;
        Some((origin, self.lines.get(origin)?.waiting.front()?))
    }

    /// Whether the front has deliveries left this round.
    pub(super) fn front_can_pay(&self) -> bool {
        self.ring.front().and_then(|origin| self.lines.get(origin)).is_some_and(|line| line.balance > 0)
    }

    /// No participant that could go has deliveries left: the next round begins.
    pub(super) fn begin_round(&mut self) {
        for origin in &self.ring {
            if let Some(line) = self.lines.get_mut(origin) {
                line.balance = (line.balance + QUANTUM).min(QUANTUM);
            }
        }
    }

    /// Takes the front's lane at the price of one delivery and puts the origin at the end.
    pub(super) fn take(&mut self) -> Option<(WebhookOrigin, WaitingLane)> {
        self.pop(1)
    }

    /// Takes the front's lane for nothing.
    pub(super) fn drop_front(&mut self) -> Option<(WebhookOrigin, WaitingLane)> {
        self.pop(0)
    }

    pub(super) fn rotate(&mut self) {
        self.ring.rotate_left(1.min(self.ring.len()));
    }

    /// The front cannot go until it is woken.
    pub(super) fn stall(&mut self) {
        if let Some(origin) = self.ring.pop_front()
            && let Some(line) = self.lines.get_mut(&origin)
        {
            line.in_ring = false;
        }
    }

    /// A run went on.
    pub(super) fn charge(&mut self, origin: &WebhookOrigin) {
        self.lines.entry(origin.clone()).or_default().balance -= 1;
    }

    /// Every lane that waits.
    pub(super) fn drain(&mut self) -> Vec<u64> {
        self.ring.clear();
        self.waiting = 0;
        let lanes = self.lines.drain().flat_map(|(_, line)| line.waiting).map(|waiting| waiting.lane);
        lanes.collect()
    }

    /// Forgets an origin that waits for nothing. What it owed goes with it: by then it has been quiet for long.
    pub(super) fn forget(&mut self, origin: &WebhookOrigin) {
        if self.waiting(origin) == 0 {
            self.lines.remove(origin);
            self.ring.retain(|held| held != origin);
        }
    }

    fn pop(&mut self, price: i64) -> Option<(WebhookOrigin, WaitingLane)> {
        let origin = self.ring.pop_front()?;
        let line = self.lines.get_mut(&origin)?;
        let taken = line.waiting.pop_front()?;
        self.waiting -= 1;
        line.balance -= price;
        if line.waiting.is_empty() {
            line.in_ring = false;
            // Nothing is saved up while there is nothing to do.
            line.balance = line.balance.min(0);
        } else {
            self.ring.push_back(origin.clone());
        }
        Some((origin, taken))
    }
}
