//! Selects the better of two random peers: near the best balance, without a rush to one peer.

use std::fmt;

use super::draw::Draw;
use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};

/// Better is the smaller of latency × (open tasks + 1).
pub struct PowerOfTwoChoices {
    seed: u64,
    draw: Draw,
}

impl PowerOfTwoChoices {
    /// The same seed and the same pools give the same picks.
    pub fn new(seed: u64) -> Self {
        Self { seed, draw: Draw::new(seed) }
    }
}

impl PeerSelector for PowerOfTwoChoices {
    fn select(&self, _task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        let (first, second) = match peers {
            [] => return None,
            [only] => return Some(only.id.clone()),
            _ => {
                let first = self.draw.below(peers.len());
                let second = self.draw.below(peers.len() - 1);
                (&peers[first], &peers[if second < first { second } else { second + 1 }])
            }
        };
        let worst = peers.iter().filter_map(|peer| peer.ewma_latency).max().unwrap_or_default().as_micros();
        let load = |peer: &PeerSnapshot| (load(peer, worst), peer.failure_rate);
        Some(if load(second) < load(first) { second.id.clone() } else { first.id.clone() })
    }

    fn name(&self) -> &str {
        "power_of_two_choices"
    }
}

impl fmt::Debug for PowerOfTwoChoices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PowerOfTwoChoices").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// A peer that never showed its speed counts as the slowest of the others, unless it is to be tried.
fn load(peer: &PeerSnapshot, worst: u128) -> u128 {
    if peer.wants_a_trial() {
        return 0;
    }
    let latency = peer.ewma_latency.map_or(worst, |latency| latency.as_micros()).max(1);
    latency.saturating_mul(u128::from(peer.open_tasks) + 1)
}
