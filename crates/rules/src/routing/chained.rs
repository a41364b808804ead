//! A chain of selectors: the first that picks a peer wins.

use std::fmt;

use super::{PeerId, PeerSelector, PeerSnapshot, TaskSpec};

/// Selectors in their order. The first one that chooses decides.
pub struct ChainedSelector(pub Vec<Box<dyn PeerSelector>>);

impl PeerSelector for ChainedSelector {
    fn select(&self, task: &TaskSpec<'_>, peers: &[PeerSnapshot]) -> Option<PeerId> {
        // A selector somebody else wrote may name a peer that was not offered; that is as good as none.
        let offered = |id: &PeerId| peers.iter().any(|peer| peer.id == *id);
        self.0.iter().find_map(|selector| selector.select(task, peers).filter(offered))
    }

    fn name(&self) -> &str {
        "chained"
    }
}

impl fmt::Debug for ChainedSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|selector| selector.name())).finish()
    }
}
