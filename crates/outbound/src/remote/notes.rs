//! What a node has learnt about one agent: its deviations, how it is best called, and why the last call failed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{Timestamp, Version};
use chancery_wire::tolerant::{Leniencies, Leniency};
use serde::{Deserialize, Serialize};

/// The facts about one agent that survive a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFacts {
    /// How often each deviation was seen.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub leniencies: BTreeMap<Leniency, u64>,
    /// The digest of what the card promised when the rest was learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// Set once one way of calling turned out worse than the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefers: Option<CallPreference>,
    /// The version that the agent answered, where its card left that open or was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaks: Option<Version>,
    /// Why the last call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fault: Option<CallFault>,
}

/// The way an agent is called from now on, and what was seen that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPreference {
    /// Whether calls are streams.
    pub streams: bool,
    /// Why.
    pub reason: String,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFault {
    /// The time of the fault.
    pub at: Timestamp,
    /// The fault.
    pub reason: String,
}

/// Keeps facts over a restart. Saving must not block: it happens on the path of calls.
pub trait FactsKeeper: Send + Sync + std::fmt::Debug {
    /// Returns the stored facts.
    fn facts(&self, replica: &str) -> Option<AgentFacts>;
    /// Stores the facts.
    fn save(&self, replica: &str, facts: &AgentFacts);
}

/// The facts about one replica, shared by its client, its card and its turns.
#[derive(Debug, Default)]
pub struct AgentNotes {
    replica: Arc<str>,
    /// The address of the agent, for the log.
    url: Arc<str>,
    facts: Mutex<AgentFacts>,
    keeper: Option<Arc<dyn FactsKeeper>>,
}

impl AgentNotes {
    /// `url` is the address that the log names beside the replica.
    pub fn new(replica: Arc<str>, url: Arc<str>, keeper: Option<Arc<dyn FactsKeeper>>) -> Self {
        let facts = keeper.as_ref().and_then(|keeper| keeper.facts(&replica)).unwrap_or_default();
        Self { replica, url, facts: Mutex::new(facts), keeper }
    }

    /// The name of the replica.
    pub(crate) fn replica(&self) -> &str {
        &self.replica
    }

    /// Returns all learnt facts.
    pub fn facts(&self) -> AgentFacts {
        self.lock().clone()
    }

    /// Whether the agent is better at streams than at one answer, once that was learnt.
    pub fn prefers_streams(&self) -> Option<bool> {
        self.lock().prefers.as_ref().map(|prefers| prefers.streams)
    }

    /// The version that the agent answered, where its card left that open.
    pub fn version(&self) -> Option<Version> {
        self.lock().speaks
    }

    /// Counts deviations. The first of each kind is logged and saved.
    pub fn count(&self, leniencies: &Leniencies) {
        if leniencies.is_empty() {
            return;
        }
        let mut facts = self.lock();
        let mut is_new = false;
        for leniency in leniencies {
            let times = facts.leniencies.entry(*leniency).or_insert(0);
            is_new |= *times == 0;
            *times = times.saturating_add(1);
        }
        if is_new {
            tracing::info!(
                peer = &*self.replica,
                url = &*self.url,
                ?leniencies,
                "the agent deviates from its A2A version; the node reads its answers anyway"
            );
            self.save(&facts);
        }
    }

    /// Notes that the agent is worse at the other way of answering. The first finding counts: an agent that cannot be read
    /// either way is not called one way and the other in turns.
    pub(super) fn prefer(&self, streams: bool, reason: impl Into<String>) {
        let mut facts = self.lock();
        if facts.prefers.is_some() {
            return;
        }
        let (way, reason) = (if streams { "stream" } else { "unary" }, reason.into());
        tracing::warn!(
            peer = &*self.replica,
            url = &*self.url,
            way,
            reason,
            "the node calls the agent in another way from now on"
        );
        facts.prefers = Some(CallPreference { streams, reason });
        self.save(&facts);
    }

    /// Forgets what was learnt about how to call the agent if its card promises something else than when it was learnt.
    pub(super) fn of_card(&self, structure: &str) {
        let mut facts = self.lock();
        if facts.card.as_deref() == Some(structure) {
            return;
        }
        if facts.card.is_some() {
            (facts.prefers, facts.speaks) = (None, None);
        }
        facts.card = Some(structure.to_owned());
        self.save(&facts);
    }

    pub(super) fn speaks(&self, version: Version) {
        let mut facts = self.lock();
        if facts.speaks != Some(version) {
            facts.speaks = Some(version);
            self.save(&facts);
        }
    }

    /// Notes a failed call.
    pub fn failed(&self, at: Timestamp, reason: impl Into<String>) {
        self.lock().last_fault = Some(CallFault { at, reason: reason.into() });
    }

    /// Notes that a call succeeded.
    pub fn succeeded(&self) {
        self.lock().last_fault = None;
    }

    fn save(&self, facts: &AgentFacts) {
        if let Some(keeper) = &self.keeper {
            keeper.save(&self.replica, facts);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AgentFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
