//! Packets for the frozen adapter from entries of traffic below 1.0.
//!
//! The rules: a packet is made from what the entry says and from nothing else. `agent.id` is the agent's name here, `task.id`,
//! `message.id` and `artifact.id` are the ids of the wire, `task.status` is the state in the words of 0.3. No packet has a `task.kind`:
//! nothing on the wire of 0.3 says `delegation`; what the node knows of delegations is in entries of its own, which make no packet.
//! A card that was fetched sets `attributes.assay_g4.agent_card.visible`, an extended card
//! `attributes.assay_g4.extended_card_access.visible`, and nothing else sets `attributes`. Messages have no type of their own in the adapter and are
//! converted leniently, as its generic message; everything else is converted strictly.
//!
//! The adapter takes versions from 0.2 to below 1.0. Entries of 1.0 make no packet, and neither do those of the original
//! protocol (0.1).

use chancery_protocol::Timestamp;
use serde_json::{Map, Value, json};

use crate::adapter::{Adapter, AdapterError, ConversionMode, EvidenceEvent, Input, Options, RawPayloadRef, RawPayloads};
use crate::bundle::rfc3339;
use crate::record::types;

/// The packet that an entry makes, and how it is read. None for what is not below 1.0, and for what the adapter has no type for.
pub fn packet_of(kind: &str, at: Timestamp, data: &Value) -> Option<(Value, ConversionMode)> {
    let version = data["protocol_version"].as_str().filter(|version| *version == "0.3" || version.starts_with("0.3."))?;
    let task = |status: Option<&str>| {
        let mut task = Map::from_iter([("id".to_owned(), data["task"].clone())]);
        task.extend(status.map(|status| ("status".to_owned(), json!(status))));
        Value::Object(task)
    };
    let said = || {
        let message = data["message"].as_object()?;
        Some(json!({ "id": message.get("id")?, "role": message.get("role")? }))
    };
    let (event_type, mode, more) = match kind {
        types::REQUESTED => {
            ("task.requested", ConversionMode::Strict, json!({ "task": task(Some("submitted")), "message": said() }))
        }
        types::UPDATED => {
            let status = status_word(data["state"].as_str()?);
            ("task.updated", ConversionMode::Strict, json!({ "task": task(Some(&status)), "message": said() }))
        }
        types::ARTIFACT => {
            ("artifact.shared", ConversionMode::Strict, json!({ "task": task(None), "artifact": { "id": data["artifact"] } }))
        }
        types::MESSAGE => ("message", ConversionMode::Lenient, json!({ "task": task(None), "message": said() })),
        types::CARD => {
            let surface = if data["extended"] == true { "extended_card_access" } else { "agent_card" };
            let seen = json!({ "assay_g4": { surface: { "visible": true } } });
            ("agent.capabilities", ConversionMode::Strict, json!({ "attributes": seen }))
        }
        _ => return None,
    };
    let mut packet = json!({
        "protocol": "a2a",
        "version": version,
        "event_type": event_type,
        "timestamp": rfc3339(at),
        "agent": { "id": data["agent"] },
    });
    if let (Some(packet), Value::Object(more)) = (packet.as_object_mut(), more) {
        packet.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Some((packet, mode))
}

/// `TASK_STATE_INPUT_REQUIRED` is `input-required` in 0.3.
fn status_word(state: &str) -> String {
    state.strip_prefix("TASK_STATE_").unwrap_or(state).to_lowercase().replace('_', "-")
}

/// What the adapter makes of an entry.
pub fn event_of(adapter: &Adapter, kind: &str, at: Timestamp, data: &Value) -> Result<Option<EvidenceEvent>, AdapterError> {
    let Some((packet, mode)) = packet_of(kind, at, data) else { return Ok(None) };
    let batch = adapter.convert(&Input::json(packet.to_string().as_bytes()), &Options::from(mode), &Derived)?;
    Ok(batch.events.into_iter().next())
}

/// The packet can be made again from its entry at any time, so only the reference to it is made.
struct Derived;

impl RawPayloads for Derived {
    fn keep(&self, bytes: &[u8], media_type: &str) -> Result<RawPayloadRef, AdapterError> {
        Ok(RawPayloadRef::of(bytes, media_type))
    }
}
