//! A peer as selectors see it: its card and what was measured of it.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::AgentCard;

use super::share::Share;
use crate::MicroUsd;

/// A peer, by the name it has here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(Arc<str>);

impl PeerId {
    /// Makes an id of a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without a copy.
    pub fn into_name(self) -> Arc<str> {
        self.0
    }
}

impl From<&str> for PeerId {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl Borrow<str> for PeerId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The state of a replica when a call is routed.
#[derive(Clone, Debug)]
pub struct PeerSnapshot {
    /// The id of the replica.
    pub id: PeerId,
    /// The card of the replica.
    pub card: Arc<AgentCard>,
    /// A moving average of calls that went well; none before the first one.
    pub ewma_latency: Option<Duration>,
    /// The same of what a task cost; none if the peer never said.
    pub ewma_cost: Option<MicroUsd>,
    /// The number of tasks that the replica works on.
    pub open_tasks: u32,
    /// Of the recent results.
    pub failure_rate: Share,
    /// How many results `failure_rate` is taken from.
    pub recent_results: u32,
    /// Nothing is known of it: it had no result yet, or none for too long.
    pub cold: bool,
}

impl PeerSnapshot {
    /// A peer nothing is known of.
    pub fn cold(id: PeerId, card: Arc<AgentCard>) -> Self {
        Self {
            id,
            card,
            ewma_latency: None,
            ewma_cost: None,
            open_tasks: 0,
            failure_rate: Share::NONE,
            recent_results: 0,
            cold: true,
        }
    }

    /// Whether it should get a task so that something is known of it.
    pub fn wants_a_trial(&self) -> bool {
        self.cold && self.open_tasks == 0
    }

    /// What decides between peers that are alike in all that a selector looks at.
    pub(super) fn burden(&self) -> (u32, Share, &PeerId) {
        (self.open_tasks, self.failure_rate, &self.id)
    }

    /// Trials first, then the measured, then those that were called and never showed how fast they are.
    pub(super) fn standing(&self) -> (Reverse<bool>, bool, Duration) {
        (Reverse(self.wants_a_trial()), self.ewma_latency.is_none(), self.ewma_latency.unwrap_or_default())
    }
}
