//! Selects the fastest peer, regardless of cost.

use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};

/// Ties go to fewer open tasks, then fewer failures, then the name.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowestLatency;

impl PeerSelector for LowestLatency {
    fn select(&self, _task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        peers.iter().min_by_key(|peer| (peer.standing(), peer.burden())).map(|peer| peer.id.clone())
    }

    fn name(&self) -> &str {
        "lowest_latency"
    }
}
