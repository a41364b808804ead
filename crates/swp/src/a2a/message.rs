//! The four messages of the A2A profile, read with their required fields checked.

use bytes::{Buf, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::TaskResult;
use crate::envelope::within;
use crate::p1;
use crate::{FrameReason, Reject, SwpLimits};

/// Who is speaking and what it can do. A claim: it changes no state and proves nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SwpHandshake {
    #[prost(string, tag = "1")]
    pub agent_id: String,
    #[prost(string, repeated, tag = "2")]
    pub capabilities: Vec<String>,
}

/// Work to be done.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SwpTaskMessage {
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub input: Bytes,
}

/// News of a task.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SwpEventMessage {
    #[prost(bytes = "bytes", tag = "1")]
    pub task_id: Bytes,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub event_payload: Bytes,
}

/// What the profile can say.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum A2aMessage {
    #[prost(message, tag = "1")]
    Handshake(SwpHandshake),
    #[prost(message, tag = "2")]
    Task(SwpTaskMessage),
    #[prost(message, tag = "3")]
    Event(SwpEventMessage),
    #[prost(message, tag = "4")]
    Result(TaskResult),
}

p1::wrapped!(A2aMessage "A2aMessage": Handshake = 1, Task = 2, Event = 3, Result = 4);

impl A2aMessage {
    pub fn read(msg_type: u64, payload: Bytes, limits: &SwpLimits) -> Result<Self, Reject> {
        p1::supports::<Self>(msg_type)?;
        let handshakes = handshake_octets(&payload).map_err(Reject::malformed)?;
        within(FrameReason::HandshakeTooLarge, handshakes, limits.max_handshake_bytes)?;
        let message: Self = p1::read(msg_type, payload)?;
        message.check(limits)?;
        Ok(message)
    }

    /// Whether all required fields are set. Messages from the reader have passed; a writer may check too.
    pub fn check(&self, limits: &SwpLimits) -> Result<(), Reject> {
        let blank = |text: &str| text.trim().is_empty();
        if let Some(task_id) = self.task_id() {
            if task_id.is_empty() {
                return Err(FrameReason::MissingTaskId.into());
            }
            within(FrameReason::TaskIdTooLong, task_id.len(), limits.max_task_id_bytes)?;
        }
        match self {
            Self::Handshake(handshake) if blank(&handshake.agent_id) => Err(FrameReason::MissingAgentId.into()),
            Self::Task(task) if blank(&task.kind) => Err(FrameReason::MissingKind.into()),
            Self::Event(event) if blank(&event.message) && event.event_payload.is_empty() => Err(FrameReason::EmptyEvent.into()),
            // Success may have nothing to show, and on the wire nothing is the same as an empty output; a failure has a reason.
            Self::Result(result) if !result.ok && blank(&result.error_message) => Err(FrameReason::MissingFailureReason.into()),
            _ => Ok(()),
        }
    }

    /// The task this is about; none for a handshake.
    pub fn task_id(&self) -> Option<&Bytes> {
        match self {
            Self::Handshake(_) => None,
            Self::Task(task) => Some(&task.task_id),
            Self::Event(event) => Some(&event.task_id),
            Self::Result(result) => Some(&result.task_id),
        }
    }
}

/// How much of a payload is handshakes, before any is read: each two octets of one can become a string of its own. Also under another
/// message type, because protobuf reads all members of a choice and keeps the last.
fn handshake_octets(mut payload: &[u8]) -> Result<usize, DecodeError> {
    let mut octets = 0;
    while payload.has_remaining() {
        let (tag, wire_type) = decode_key(&mut payload)?;
        if (tag, wire_type) != (1, WireType::LengthDelimited) {
            skip_field(wire_type, tag, &mut payload, DecodeContext::default())?;
            continue;
        }
        let claimed = decode_varint(&mut payload)?;
        // A length that is too long is for the reader of the message to complain of.
        let length = usize::try_from(claimed).unwrap_or(usize::MAX).min(payload.len());
        octets += length;
        payload.advance(length);
    }
    Ok(octets)
}
