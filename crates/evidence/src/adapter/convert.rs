//! One conversion, step by step in the frozen order.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::attributes::normalized;
use super::caps::AdapterCaps;
use super::descriptors::{ADAPTER_ID, PROTOCOL};
use super::discovery::DiscoveryFacts;
use super::error::{AdapterError, AdapterErrorKind};
use super::event::{Batch, EvidenceEvent, Stamps};
use super::event_type::EventType;
use super::handoff::Handoff;
use super::lossiness::{self, Losses};
use super::packet::Packet;
use super::parse::parse;
use super::payload::{EventPayload, PayloadAgent, PayloadArtifact, PayloadMessage, PayloadTask};
use super::raw_payloads::RawPayloads;
use super::timestamp::event_time;
use super::version::gate;

/// Strict refuses packets without the ids and the event type it needs; lenient puts stand-ins there, counts them and notes them.
/// Everything before that ends in the same errors in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversionMode {
    #[default]
    Strict,
    Lenient,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub mode: ConversionMode,
    pub caps: AdapterCaps,
}

impl From<ConversionMode> for Options {
    fn from(mode: ConversionMode) -> Self {
        Self { mode, caps: AdapterCaps::default() }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub payload: &'a [u8],
    pub media_type: &'a str,
    /// A version from another source, for packets whose own version is not a string.
    pub protocol_version: Option<&'a str>,
}

impl<'a> Input<'a> {
    pub fn json(payload: &'a [u8]) -> Self {
        Self { payload, media_type: "application/json", protocol_version: None }
    }
}

/// Converts one JSON packet with this build's stamps and no caps.
pub fn convert(payload: &[u8], mode: ConversionMode, raw_payloads: &dyn RawPayloads) -> Result<Batch, AdapterError> {
    Adapter::default().convert(&Input::json(payload), &Options::from(mode), raw_payloads)
}

/// Converts packets. The same bytes always become the same batch.
#[derive(Debug, Clone, Default)]
pub struct Adapter {
    stamps: Stamps,
}

impl Adapter {
    pub fn new(stamps: Stamps) -> Self {
        Self { stamps }
    }

    pub fn convert(&self, input: &Input<'_>, options: &Options, raw_payloads: &dyn RawPayloads) -> Result<Batch, AdapterError> {
        options.caps.size(input.payload)?;
        // Before parsing: a packet that is refused can still be looked at.
        let raw_payload = raw_payloads.keep(input.payload, input.media_type)?;
        let value = parse(input.payload)?;
        options.caps.shape(&value)?;
        let members = members_of_a2a(&value)?;
        let version = members.get("version").and_then(Value::as_str).or(input.protocol_version);
        let version = version.ok_or_else(|| AdapterError::missing("version"))?;
        gate(version)?;
        let packet = Packet::read(members);
        if options.mode == ConversionMode::Strict {
            strict(&packet)?;
        }
        let (event, losses) = self.event(&packet, version);
        Ok(Batch { events: vec![event], lossiness: losses.report(raw_payload) })
    }

    fn event(&self, packet: &Packet<'_>, version: &str) -> (EvidenceEvent, Losses) {
        let mut losses = Losses::starting_with(packet.unmapped_members);
        let owned = |text: Option<&str>| text.map(str::to_owned);

        // The order of these is the order of the notes.
        let agent_id = losses.id_or(packet.agent_id, &lossiness::AGENT);
        let event_type = packet.event_type.and_then(EventType::of).unwrap_or_else(|| {
            losses.note(lossiness::GENERIC_MESSAGE);
            EventType::Message
        });
        let mut id = |id: Option<&str>, needed: bool, substitute| (needed || id.is_some()).then(|| losses.id_or(id, substitute));
        let task_id = id(packet.task_id, event_type.is_about_a_task(), &lossiness::TASK);
        let artifact_id = id(packet.artifact_id, event_type == EventType::ArtifactShared, &lossiness::ARTIFACT);
        let message_id = id(packet.message_id, event_type == EventType::Message, &lossiness::MESSAGE);

        let subject = match event_type {
            EventType::AgentCapabilities => Some(&agent_id),
            EventType::TaskRequested | EventType::TaskUpdated => task_id.as_ref(),
            EventType::ArtifactShared => artifact_id.as_ref(),
            EventType::Message => message_id.as_ref(),
        };
        // The lines above gave an id to whatever the event is about.
        let subject = subject.cloned().unwrap_or_default();

        let data = EventPayload {
            adapter_id: ADAPTER_ID,
            adapter_version: self.stamps.adapter_version.clone(),
            protocol: PROTOCOL,
            protocol_name: PROTOCOL,
            protocol_version: version.to_owned(),
            upstream_event_type: owned(packet.event_type),
            agent: PayloadAgent {
                id: agent_id,
                name: owned(packet.agent_name),
                role: owned(packet.agent_role),
                capabilities: packet.agent_capabilities.clone(),
            },
            task: task_id.map(|id| PayloadTask { id, status: owned(packet.task_status), kind: owned(packet.task_kind) }),
            artifact: artifact_id.map(|id| PayloadArtifact {
                id,
                name: owned(packet.artifact_name),
                media_type: owned(packet.artifact_media_type),
            }),
            message: message_id.map(|id| PayloadMessage { id, role: owned(packet.message_role) }),
            attributes: packet.attributes.map(normalized),
            discovery: DiscoveryFacts::observe(packet.attributes),
            handoff: Handoff::observe(event_type, packet),
            unmapped_fields_count: losses.count(),
        };
        (EvidenceEvent::about(subject, event_type, event_time(packet.timestamp), &self.stamps, data), losses)
    }
}

fn members_of_a2a(value: &Value) -> Result<&Map<String, Value>, AdapterError> {
    let members = value.as_object().filter(|members| members.get("protocol").and_then(Value::as_str) == Some(PROTOCOL));
    members.ok_or_else(|| AdapterError::measurement("protocol must be 'a2a'"))
}

/// What strict conversion asks for. Members without a place are no reason to refuse a packet.
fn strict(packet: &Packet<'_>) -> Result<(), AdapterError> {
    let needed = |id: Option<&str>, field| id.map(|_| ()).ok_or_else(|| AdapterError::missing(field));
    needed(packet.agent_id, "agent.id")?;
    let Some(event_type) = packet.event_type.and_then(EventType::of) else {
        return Err(AdapterError::new(AdapterErrorKind::StrictLossinessViolation, "unsupported event_type in strict mode"));
    };
    if event_type.is_about_a_task() {
        needed(packet.task_id, "task.id")?;
    }
    if event_type == EventType::ArtifactShared {
        needed(packet.artifact_id, "artifact.id")?;
    }
    Ok(())
}
