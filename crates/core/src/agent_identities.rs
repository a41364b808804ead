//! The port that knows by which AgentIDs the agents of this node go.

use std::fmt::Debug;
use std::sync::Arc;

use chancery_rules::lineage::AgentIdIndex;

use crate::service::{Chancery, ChanceryInner};

/// Knows by which AgentIDs the agents of this node go.
pub trait AgentIdentities: Send + Sync + Debug {
    /// Queried with each call that claims a path, receives one, or returns to an agent that waits.
    fn index(&self) -> Arc<AgentIdIndex>;
}

impl Chancery {
    /// From now on paths name the agents of this node by their AgentIDs too. The first one that is set stays.
    pub fn set_agent_identities(&self, identities: Arc<dyn AgentIdentities>) {
        if self.0.identities.set(identities).is_err() {
            tracing::warn!("the AgentIDs of this node's agents are set already; the node ignores the second set");
        }
    }
}

impl ChanceryInner {
    /// Without the port agents are identified by their names alone.
    pub(crate) fn agent_ids(&self) -> Arc<AgentIdIndex> {
        self.identities.get().map(|identities| identities.index()).unwrap_or_default()
    }
}
