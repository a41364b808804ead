//! Event types: what a packet calls an event, and what it is called in evidence.

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    AgentCapabilities,
    TaskRequested,
    TaskUpdated,
    ArtifactShared,
    /// Every event without a type of its own. Nothing maps to it without loss, not even `message`.
    Message,
}

impl EventType {
    pub const ALL: [Self; 5] =
        [Self::AgentCapabilities, Self::TaskRequested, Self::TaskUpdated, Self::ArtifactShared, Self::Message];

    /// Exactly as written, or not at all.
    pub(super) fn of(upstream: &str) -> Option<Self> {
        match upstream {
            "agent.capabilities" => Some(Self::AgentCapabilities),
            "task.requested" => Some(Self::TaskRequested),
            "task.updated" => Some(Self::TaskUpdated),
            "artifact.shared" => Some(Self::ArtifactShared),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentCapabilities => "assay.adapter.a2a.agent.capabilities",
            Self::TaskRequested => "assay.adapter.a2a.task.requested",
            Self::TaskUpdated => "assay.adapter.a2a.task.updated",
            Self::ArtifactShared => "assay.adapter.a2a.artifact.shared",
            Self::Message => "assay.adapter.a2a.message",
        }
    }

    pub(super) fn is_about_a_task(self) -> bool {
        matches!(self, Self::TaskRequested | Self::TaskUpdated)
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
