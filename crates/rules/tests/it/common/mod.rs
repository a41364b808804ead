//! Peers to choose from, and times to do it at.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{AgentCapabilities, AgentCard, AgentSkill, Timestamp};
use chancery_rules::MicroUsd;
use chancery_rules::routing::{PeerId, PeerSnapshot, Share};

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(i64::try_from(millis).unwrap() * 1_000)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A peer with a past.
pub(crate) fn peer(id: &str, latency_ms: u64, cost: i64, open_tasks: u32) -> PeerSnapshot {
    PeerSnapshot {
        ewma_latency: Some(millis(latency_ms)),
        ewma_cost: Some(MicroUsd(cost)),
        open_tasks,
        recent_results: 100,
        cold: false,
        ..cold(id)
    }
}

pub(crate) fn cold(id: &str) -> PeerSnapshot {
    PeerSnapshot::cold(PeerId::new(id), Arc::default())
}

pub(crate) fn failing(percent: u32, peer: PeerSnapshot) -> PeerSnapshot {
    PeerSnapshot { failure_rate: Share::percent(percent), ..peer }
}

pub(crate) fn with_card(card: AgentCard, peer: PeerSnapshot) -> PeerSnapshot {
    PeerSnapshot { card: Arc::new(card), ..peer }
}

pub(crate) fn streaming() -> AgentCard {
    AgentCard { capabilities: AgentCapabilities { streaming: Some(true), ..Default::default() }, ..AgentCard::default() }
}

pub(crate) fn skill(id: &str, tags: &[&str]) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: id.to_owned(),
        description: String::new(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    }
}
