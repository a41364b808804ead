//! The fields that the adapter reads from a packet. A field with another JSON type counts as absent.

use serde_json::{Map, Value};

use super::attributes;

const RECOGNISED: [&str; 9] =
    ["protocol", "version", "event_type", "timestamp", "agent", "task", "artifact", "message", "attributes"];

/// Empty strings count as present.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    pub(super) event_type: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) agent_id: Option<&'a str>,
    pub(super) agent_name: Option<&'a str>,
    pub(super) agent_role: Option<&'a str>,
    /// Only the strings of the array, sorted.
    pub(super) agent_capabilities: Option<Vec<String>>,
    pub(super) task_id: Option<&'a str>,
    pub(super) task_status: Option<&'a str>,
    pub(super) task_kind: Option<&'a str>,
    pub(super) artifact_id: Option<&'a str>,
    pub(super) artifact_name: Option<&'a str>,
    pub(super) artifact_media_type: Option<&'a str>,
    pub(super) message_id: Option<&'a str>,
    pub(super) message_role: Option<&'a str>,
    /// Any JSON, `null` too.
    pub(super) attributes: Option<&'a Value>,
    /// Members of the packet itself that have no place in evidence. Their content is not read.
    pub(super) unmapped_members: usize,
}

impl<'a> Packet<'a> {
    pub(super) fn read(packet: &'a Map<String, Value>) -> Self {
        let top = |key| packet.get(key).and_then(Value::as_str);
        let part = |object, key| packet.get(object).and_then(|part| part.as_object()?.get(key)?.as_str());
        let capabilities = packet.get("agent").and_then(|agent| agent.as_object()?.get("capabilities")?.as_array());
        Self {
            event_type: top("event_type"),
            timestamp: top("timestamp"),
            agent_id: part("agent", "id"),
            agent_name: part("agent", "name"),
            agent_role: part("agent", "role"),
            agent_capabilities: capabilities.map(|all| attributes::sorted_strings(all)),
            task_id: part("task", "id"),
            task_status: part("task", "status"),
            task_kind: part("task", "kind"),
            artifact_id: part("artifact", "id"),
            artifact_name: part("artifact", "name"),
            artifact_media_type: part("artifact", "media_type"),
            message_id: part("message", "id"),
            message_role: part("message", "role"),
            attributes: packet.get("attributes"),
            unmapped_members: packet.keys().filter(|key| !RECOGNISED.contains(&key.as_str())).count(),
        }
    }
}
