//! The batch and its one event, in the CloudEvents envelope, members in the order in which they are printed.

use serde::Serialize;

use super::event_type::EventType;
use super::lossiness::Lossiness;
use super::payload::EventPayload;

/// One packet's worth of evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Batch {
    /// This adapter always makes exactly one.
    pub events: Vec<EvidenceEvent>,
    pub lossiness: Lossiness,
}

/// What stands on every event without being in the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamps {
    pub adapter_version: String,
    pub producer_version: String,
    /// The commit the producer was built from, or `unknown`.
    pub git: String,
}

impl Default for Stamps {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { adapter_version: version.to_owned(), producer_version: version.to_owned(), git: "unknown".to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvidenceEvent {
    pub specversion: &'static str,
    #[serde(rename = "type")]
    pub event_type: EventType,
    pub source: &'static str,
    pub id: String,
    pub time: String,
    pub datacontenttype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
    /// Has a colon, which bundles do not allow: a program that bundles events gives them another run id
    /// first.
    pub assayrunid: String,
    pub assayseq: u64,
    pub assayproducer: &'static str,
    pub assayproducerversion: String,
    pub assaygit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assaypolicyid: Option<String>,
    pub assaypii: bool,
    pub assaysecrets: bool,
    /// `null`, and printed as such, until the event is bundled.
    pub assaycontenthash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assaysemanticdigest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assaydigestprofile: Option<String>,
    pub data: EventPayload,
}

impl EvidenceEvent {
    /// The first and only event of a run that is named after what the event is about.
    pub(super) fn about(subject: String, event_type: EventType, time: String, stamps: &Stamps, data: EventPayload) -> Self {
        let run = format!("a2a:{subject}");
        Self {
            specversion: "1.0",
            event_type,
            source: "urn:assay:adapter:a2a",
            id: format!("{run}:0"),
            time,
            datacontenttype: "application/json",
            subject: Some(subject),
            traceparent: None,
            tracestate: None,
            assayrunid: run,
            assayseq: 0,
            assayproducer: "assay",
            assayproducerversion: stamps.producer_version.clone(),
            assaygit: stamps.git.clone(),
            assaypolicyid: None,
            assaypii: false,
            assaysecrets: false,
            assaycontenthash: None,
            assaysemanticdigest: None,
            assaydigestprofile: None,
            data,
        }
    }
}
