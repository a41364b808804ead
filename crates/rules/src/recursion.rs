//! Stops chains that run too deep and calls that come back to where they have been.

use std::fmt;

use chancery_protocol::ErrorKind;
use serde::{Deserialize, Deserializer, Serialize};

use crate::lineage::{AgentPath, AgentRef, TaskContext};

/// The deepest chain a config may allow: every call carries its whole path.
pub const MOST_CALL_DEPTH: u32 = 64;

/// The `[recursion]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecursionPolicy {
    /// Calls of this depth are allowed, deeper ones are not. A call without a parent has depth 0.
    #[serde(deserialize_with = "call_depth")]
    pub max_call_depth: u32,
    /// Whether an agent that is waiting for an answer may not be called again for it.
    pub deny_revisit: bool,
    /// Agents that may be called again all the same.
    pub revisit_allowlist: Vec<AgentRef>,
}

impl Default for RecursionPolicy {
    fn default() -> Self {
        Self { max_call_depth: 8, deny_revisit: true, revisit_allowlist: Vec::new() }
    }
}

fn call_depth<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let depth = u32::deserialize(from)?;
    if depth > MOST_CALL_DEPTH {
        return Err(serde::de::Error::custom(format_args!("must be from 0 to {MOST_CALL_DEPTH}")));
    }
    Ok(depth)
}

/// Why a call is too deep or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecursionError {
    /// The chain of calls is too long.
    Depth {
        /// The depth of the call.
        depth: u32,
        /// The largest depth.
        limit: u32,
        /// The agents on the way from the root.
        path: AgentPath,
    },
    /// The path ends with the agent that is in it already.
    Revisit {
        /// The agent that is called again.
        agent: AgentRef,
        /// The agents on the way from the root.
        path: AgentPath,
    },
}

impl RecursionError {
    /// Returns the kind of the caller's error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Depth { .. } => ErrorKind::RecursionDepth,
            Self::Revisit { .. } => ErrorKind::RecursionRevisit,
        }
    }

    /// All agents that the call came through, and last its target.
    pub fn path(&self) -> &AgentPath {
        match self {
            Self::Depth { path, .. } | Self::Revisit { path, .. } => path,
        }
    }
}

impl fmt::Display for RecursionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth { depth, limit, path } => write!(f, "the call has depth {depth}, and max_call_depth is {limit}: {path}"),
            Self::Revisit { agent, path } => write!(f, "{agent} already waits for the answer to this chain of calls: {path}"),
        }
    }
}

impl std::error::Error for RecursionError {}

impl RecursionPolicy {
    /// Whether a call with this context may go to that agent.
    pub fn check(&self, context: &TaskContext, target: &AgentRef) -> Result<(), RecursionError> {
        self.check_names(context, target, &[])
    }

    /// The same for an agent that has more names here than the one it is called by: under any of them it is the same agent.
    pub fn check_names(&self, context: &TaskContext, target: &AgentRef, others: &[AgentRef]) -> Result<(), RecursionError> {
        self.check_depth(context, target)?;
        let names = || std::iter::once(target).chain(others);
        let visited = self.deny_revisit && names().any(|name| context.visited_agents.contains(name));
        if visited && !names().any(|name| self.revisit_allowlist.contains(name)) {
            return Err(RecursionError::Revisit { agent: target.clone(), path: context.visited_agents.then(target.clone()) });
        }
        Ok(())
    }

    /// Whether a call with this context may go to that agent, regardless of the waiting caller.
    pub fn check_depth(&self, context: &TaskContext, target: &AgentRef) -> Result<(), RecursionError> {
        if context.depth > self.max_call_depth {
            let path = context.visited_agents.then(target.clone());
            return Err(RecursionError::Depth { depth: context.depth, limit: self.max_call_depth, path });
        }
        Ok(())
    }
}
