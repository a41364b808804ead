//! The A2A adapter as two freezes fix it: one packet becomes one batch with one event, or one typed error.
//!
//! A packet is a flat export of what was seen, not a message of the A2A wire. The adapter opens no file and no socket; where raw packets
//! are kept is behind [`RawPayloads`]. Names (`assay-adapter-a2a`, `assay.adapter.a2a.*`, `assay*` attributes) are the frozen ones.
//!
//! [`DiscoveryFacts`] and [`Handoff`] stand on every event. Of their frozen enum members, these rules (v1) never produce
//! [`AgentCardSource::TypedPayload`] and [`AgentCardSource::Unmapped`].
//!
//! The parser is the adapter's own and laxer than the one at the doors: the last of two equal keys wins.

mod attributes;
mod canonical;
mod caps;
mod convert;
mod descriptors;
mod discovery;
mod error;
mod event;
mod event_type;
mod handoff;
mod lossiness;
mod packet;
mod parse;
mod payload;
mod raw_folder;
mod raw_payloads;
mod timestamp;
mod version;

pub use canonical::{canonical_json_bytes, digest_canonical_json};
pub use caps::AdapterCaps;
pub use convert::{Adapter, ConversionMode, Input, Options, convert};
pub use descriptors::{AdapterDescriptor, Capabilities, ProtocolDescriptor, adapter, capabilities, protocol};
pub use discovery::{AgentCardSource, DiscoveryFacts};
pub use error::{AdapterError, AdapterErrorKind};
pub use event::{Batch, EvidenceEvent, Stamps};
pub use event_type::EventType;
pub use handoff::{Handoff, HandoffSource};
pub use lossiness::{Lossiness, LossinessLevel};
pub use payload::{EventPayload, PayloadAgent, PayloadArtifact, PayloadMessage, PayloadTask};
pub use raw_folder::FolderRawPayloads;
pub use raw_payloads::{AttachmentPolicy, MemoryRawPayloads, RawPayloadRef, RawPayloads};
