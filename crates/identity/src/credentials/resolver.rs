//! Which agents, proven by their key, may call at all.

use std::collections::HashSet;
use std::fmt;
use std::sync::Once;

use chancery_protocol::AgentId;

/// Asked for every agent id that a signature has proven.
pub trait IdentityResolver: fmt::Debug + Send + Sync {
    /// Returns whether the agent may call.
    fn allows(&self, agent_id: &AgentId) -> bool;

    /// Whether this agent is named one by one. Such an agent is a caller of its own even if no caller record lists it;
    /// an agent that is only not forbidden is not.
    fn names(&self, _agent_id: &AgentId) -> bool {
        false
    }
}

/// Forbids no agent: the caller records alone decide who calls. Logs that once it matters.
#[derive(Debug)]
pub struct AllowAll {
    told: Once,
}

impl Default for AllowAll {
    fn default() -> Self {
        Self { told: Once::new() }
    }
}

impl IdentityResolver for AllowAll {
    fn allows(&self, _: &AgentId) -> bool {
        self.told.call_once(|| tracing::info!("identity.allow is not set: the node accepts every agent that is a caller"));
        true
    }
}

/// Lets in only the agents it names.
#[derive(Clone, Debug, Default)]
pub struct Allowlist(HashSet<AgentId>);

impl FromIterator<AgentId> for Allowlist {
    fn from_iter<I: IntoIterator<Item = AgentId>>(agent_ids: I) -> Self {
        Self(agent_ids.into_iter().collect())
    }
}

impl IdentityResolver for Allowlist {
    fn allows(&self, agent_id: &AgentId) -> bool {
        self.0.contains(agent_id)
    }

    fn names(&self, agent_id: &AgentId) -> bool {
        self.0.contains(agent_id)
    }
}
