//! A peer whose card lists everything the task requires.

use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};

/// Of several the one that fails least, then the first in the order given.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapabilityMatch;

impl PeerSelector for CapabilityMatch {
    fn select(&self, task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        let able = peers.iter().filter(|peer| task.is_within_capabilities_of(&peer.card));
        able.min_by_key(|peer| peer.failure_rate).map(|peer| peer.id.clone())
    }

    fn name(&self) -> &str {
        "capability_match"
    }
}
