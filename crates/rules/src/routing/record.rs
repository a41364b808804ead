//! What was seen of one peer: how long it takes, what it costs, what is open, how often it fails.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{AgentCard, Timestamp};

use super::peer::{PeerId, PeerSnapshot};
use super::share::Share;
use super::window::HealthWindow;
use crate::MicroUsd;
use crate::average::Average;

/// How a call to a peer ended, as far as it says something about the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    Succeeded,
    /// Could not be reached, did not answer in time, or answered that it cannot.
    Failed,
    /// Says nothing about the peer: the caller went away, or what it asked for was wrong.
    Unjudged,
}

#[derive(Clone, Debug)]
pub struct PeerRecord {
    latency_micros: Average,
    cost_micros: Average,
    open_tasks: u32,
    results: HealthWindow,
    has_result: bool,
    last_active: Option<Timestamp>,
    /// What is known is forgotten when nothing was asked of the peer for this long.
    forget_after: Duration,
}

impl PeerRecord {
    /// `window` is how far back failures count.
    pub fn new(window: Duration, forget_after: Duration) -> Self {
        Self {
            latency_micros: Average::default(),
            cost_micros: Average::default(),
            open_tasks: 0,
            results: HealthWindow::new(window),
            has_result: false,
            last_active: None,
            forget_after,
        }
    }

    pub fn started(&mut self, now: Timestamp) {
        self.forget_if_old(now);
        self.open_tasks = self.open_tasks.saturating_add(1);
        self.last_active = Some(now);
    }

    /// One for every `started`. A failure's latency counts only where it makes the peer look slower: a peer that fails at
    /// once is not a fast one.
    pub fn finished(&mut self, outcome: CallOutcome, latency: Duration, cost: Option<MicroUsd>, now: Timestamp) {
        self.open_tasks = self.open_tasks.saturating_sub(1);
        self.last_active = Some(now);
        if let Some(MicroUsd(cost)) = cost {
            self.cost_micros.add(u64::try_from(cost).unwrap_or(0));
        }
        if outcome == CallOutcome::Unjudged {
            return;
        }
        self.has_result = true;
        self.results.add(outcome == CallOutcome::Succeeded, now);
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        if outcome == CallOutcome::Succeeded || self.latency_micros.get().is_some_and(|average| micros > average) {
            self.latency_micros.add(micros);
        }
    }

    /// Makes the peer cold; what is open stays open.
    pub fn forget(&mut self) {
        self.latency_micros = Average::default();
        self.cost_micros = Average::default();
        self.results.clear();
        self.has_result = false;
    }

    pub fn open_tasks(&self) -> u32 {
        self.open_tasks
    }

    pub fn snapshot(&self, id: &PeerId, card: &Arc<AgentCard>, now: Timestamp) -> PeerSnapshot {
        let open_tasks = self.open_tasks;
        if !self.has_result || self.is_old(now) {
            return PeerSnapshot { open_tasks, ..PeerSnapshot::cold(id.clone(), Arc::clone(card)) };
        }
        let (recent_results, failure_rate): (u32, Share) = self.results.results(now);
        PeerSnapshot {
            id: id.clone(),
            card: Arc::clone(card),
            ewma_latency: self.latency_micros.get().map(Duration::from_micros),
            ewma_cost: self.cost_micros.get().map(|micros| MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX))),
            open_tasks,
            failure_rate,
            recent_results,
            cold: false,
        }
    }

    fn is_old(&self, now: Timestamp) -> bool {
        self.open_tasks == 0 && self.last_active.is_some_and(|last| now >= last + self.forget_after)
    }

    fn forget_if_old(&mut self, now: Timestamp) {
        if self.is_old(now) {
            self.forget();
        }
    }
}
