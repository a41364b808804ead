//! What the adapter says of itself: its name, the protocol it reads, and what it can do.

use serde::Serialize;

use super::event_type::EventType;
use super::version;

pub(super) const ADAPTER_ID: &str = "assay-adapter-a2a";
pub(super) const PROTOCOL: &str = "a2a";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdapterDescriptor {
    pub adapter_id: &'static str,
    pub adapter_version: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProtocolDescriptor {
    pub name: &'static str,
    pub spec_version: &'static str,
    pub schema_id: Option<&'static str>,
    pub spec_url: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    pub supported_event_types: [EventType; 5],
    pub supported_spec_versions: [&'static str; 1],
    pub supports_strict: bool,
    pub supports_lenient: bool,
}

pub fn adapter() -> AdapterDescriptor {
    AdapterDescriptor { adapter_id: ADAPTER_ID, adapter_version: env!("CARGO_PKG_VERSION") }
}

pub fn protocol() -> ProtocolDescriptor {
    ProtocolDescriptor {
        name: PROTOCOL,
        spec_version: "0.2.0",
        schema_id: Some("a2a.message.v0_2"),
        spec_url: Some("https://google.github.io/A2A/"),
    }
}

pub fn capabilities() -> Capabilities {
    Capabilities {
        supported_event_types: EventType::ALL,
        supported_spec_versions: [version::SUPPORTED],
        supports_strict: true,
        supports_lenient: true,
    }
}
