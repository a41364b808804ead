//! The `data` of an event: the canonical payload, members in the order in which they are printed.

use serde::Serialize;
use serde_json::Value;

use super::discovery::DiscoveryFacts;
use super::handoff::Handoff;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventPayload {
    pub adapter_id: &'static str,
    pub adapter_version: String,
    pub protocol: &'static str,
    pub protocol_name: &'static str,
    /// As the packet or the hint said it.
    pub protocol_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_event_type: Option<String>,
    pub agent: PayloadAgent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<PayloadTask>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<PayloadArtifact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<PayloadMessage>,
    /// There if the packet has the key at all, even with `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Value>,
    pub discovery: DiscoveryFacts,
    pub handoff: Handoff,
    /// The same number as in the lossiness report.
    pub unmapped_fields_count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadAgent {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadTask {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadArtifact {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PayloadMessage {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}
