//! The cheapest of the peers that are fast enough.

use std::cmp::Reverse;
use std::time::Duration;

use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};
use crate::MicroUsd;

/// Fast enough is less than the budget, and less than the task's deadline if that is tighter. A peer that never said what
/// it costs comes after all that did.
#[derive(Clone, Copy, Debug)]
pub struct CheapestUnderLatency {
    /// The latency that a replica may have.
    pub latency_budget: Duration,
}

impl PeerSelector for CheapestUnderLatency {
    fn select(&self, task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        let budget = task.deadline.map_or(self.latency_budget, |deadline| deadline.min(self.latency_budget));
        let fast_enough =
            |peer: &&PeerSnapshot| peer.wants_a_trial() || peer.ewma_latency.is_some_and(|latency| latency < budget);
        peers.iter().filter(fast_enough).min_by_key(|peer| order(peer)).map(|peer| peer.id.clone())
    }

    fn name(&self) -> &str {
        "cheapest_under_latency"
    }
}

fn order(peer: &PeerSnapshot) -> impl Ord + '_ {
    let cost = (peer.ewma_cost.is_none(), peer.ewma_cost.unwrap_or(MicroUsd(0)));
    (Reverse(peer.wants_a_trial()), cost, peer.standing(), peer.burden())
}
