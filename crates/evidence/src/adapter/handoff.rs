//! `handoff`: whether a packet shows a delegation being asked for, and which references it shows with it (freeze K1-A, v1).
//!
//! Each boolean is an observed visibility flag and no more: it says that something stood in a typed field of the packet, not what came of it,
//! where it went or who was allowed to ask.
//!
//! v1 looks at typed fields of task requests only. Updates of tasks, shared artifacts, capabilities, generic messages, roles, attributes,
//! `discovery` and counts never play a part. Both members of the source enum are produced by v1.

use serde::Serialize;

use super::event_type::EventType;
use super::packet::Packet;

/// On every event, with all four members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Handoff {
    /// A task request whose `task.kind` is the string `delegation` was observed.
    pub visible: bool,
    pub source_kind: HandoffSource,
    /// With `visible`: the packet itself had a `task.id`. A substituted one does not count.
    pub task_ref_visible: bool,
    /// With `visible`: the packet itself had a `message.id`.
    pub message_ref_visible: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffSource {
    TypedPayload,
    #[default]
    Unknown,
}

impl Handoff {
    /// From the packet before any substitution, so that an id made up by the adapter is never taken for one that was seen.
    pub(super) fn observe(event_type: EventType, packet: &Packet<'_>) -> Self {
        if event_type != EventType::TaskRequested || packet.task_kind != Some("delegation") {
            return Self::default();
        }
        Self {
            visible: true,
            source_kind: HandoffSource::TypedPayload,
            task_ref_visible: packet.task_id.is_some(),
            message_ref_visible: packet.message_id.is_some(),
        }
    }
}
