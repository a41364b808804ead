//! The `[routing]` section, and the selectors it stands for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CapabilityMatch, ChainedSelector, CheapestUnderLatency, LowestLatency, PeerSelector, PowerOfTwoChoices, RoundRobin};
use crate::setting::more_than_zero;

/// The `[routing]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingConfig {
    /// The selector that chooses a replica.
    pub default_selector: SelectorName,
    /// What `cheapest_under_latency` calls fast enough: less than this.
    #[serde(deserialize_with = "more_than_zero")]
    pub latency_budget_ms: u64,
    /// The selector that chooses when the default selector picks no peer.
    pub fallback: Fallback,
    /// Whether a call at the root address that names a skill is routed to an agent that lists it.
    pub by_skill: bool,
    /// For the selectors that draw lots; a number of the node's own, if nothing is said.
    pub seed: Option<u64>,
    /// What was measured of a peer is forgotten when it was not called for this long, so that it is tried again.
    #[serde(deserialize_with = "more_than_zero")]
    pub forget_after_ms: u64,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self {
            default_selector: SelectorName::PowerOfTwoChoices,
            latency_budget_ms: 2_000,
            fallback: Fallback::LowestLatency,
            by_skill: true,
            seed: None,
            forget_after_ms: 300_000,
        }
    }
}

/// The stock selectors by the names they have in a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectorName {
    /// The cheapest replica within a latency.
    CheapestUnderLatency,
    /// The replica with the lowest latency.
    LowestLatency,
    /// Each replica in turn.
    RoundRobin,
    /// A replica whose card has what the task needs.
    CapabilityMatch,
    /// The better one of two random replicas.
    PowerOfTwoChoices,
}

/// A second selector, the node's own agent, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// The cheapest replica within a latency.
    CheapestUnderLatency,
    /// The replica with the lowest latency.
    LowestLatency,
    /// Each replica in turn.
    RoundRobin,
    /// A replica whose card has what the task needs.
    CapabilityMatch,
    /// The better one of two random replicas.
    PowerOfTwoChoices,
    /// The task runs in this node, if it has an agent that can.
    Local,
    /// The task is refused.
    None,
}

impl Fallback {
    /// Returns the selector, if the fallback is one.
    pub fn selector(self) -> Option<SelectorName> {
        match self {
            Self::CheapestUnderLatency => Some(SelectorName::CheapestUnderLatency),
            Self::LowestLatency => Some(SelectorName::LowestLatency),
            Self::RoundRobin => Some(SelectorName::RoundRobin),
            Self::CapabilityMatch => Some(SelectorName::CapabilityMatch),
            Self::PowerOfTwoChoices => Some(SelectorName::PowerOfTwoChoices),
            Self::Local | Self::None => None,
        }
    }
}

/// What a config comes to.
#[derive(Debug)]
pub struct RoutingPlan {
    /// The selectors in their order.
    pub selector: ChainedSelector,
    /// Whether a task without a peer runs in this node.
    pub fall_back_to_local: bool,
    /// As `RoutingConfig::forget_after_ms`.
    pub forget_after: Duration,
}

impl RoutingConfig {
    /// `own_seed` is for a config that names none.
    pub fn plan(&self, own_seed: u64) -> RoutingPlan {
        let names = [Some(self.default_selector), self.fallback.selector()];
        let selectors = names.into_iter().flatten().map(|name| self.selector(name, self.seed.unwrap_or(own_seed)));
        RoutingPlan {
            selector: ChainedSelector(selectors.collect()),
            fall_back_to_local: self.fallback == Fallback::Local,
            forget_after: Duration::from_millis(self.forget_after_ms),
        }
    }

    fn selector(&self, name: SelectorName, seed: u64) -> Box<dyn PeerSelector> {
        match name {
            SelectorName::CheapestUnderLatency => {
                Box::new(CheapestUnderLatency { latency_budget: Duration::from_millis(self.latency_budget_ms) })
            }
            SelectorName::LowestLatency => Box::new(LowestLatency),
            SelectorName::RoundRobin => Box::new(RoundRobin::new(seed)),
            SelectorName::CapabilityMatch => Box::new(CapabilityMatch),
            SelectorName::PowerOfTwoChoices => Box::new(PowerOfTwoChoices::new(seed)),
        }
    }
}
