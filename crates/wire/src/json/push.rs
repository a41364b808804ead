//! What a webhook is sent: an event or a whole task, in the shape that its registration asked for.

use chancery_protocol::{NamedTask, Reply, TaskEvent};

use super::original::Original;
use super::v0_3::V0_3;
use super::{v0_3, v1_0};
use crate::codec::{Codec, TaskNames};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The `StreamResponse` of 1.0.
    V1,
    /// The whole task of 0.3, bare.
    V0_3Task,
    /// What a stream of 0.3 shows, bare.
    V0_3Event,
    /// The whole task of the original protocol, bare.
    Original,
    /// An event of a 0.3 stream, as the result of a JSON-RPC response without a request.
    Envelope,
}

#[derive(Clone, Copy, Debug)]
pub enum NotificationBody<'a> {
    Event(&'a TaskNames, &'a TaskEvent),
    Task(&'a NamedTask),
}

/// The bytes of a notification and what kind of object they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Message => "message",
            Self::StatusUpdate => "status-update",
            Self::ArtifactUpdate => "artifact-update",
        }
    }
}

/// Nothing for what the shape does not tell. `id` is the id of the envelope where what is in it has none of its own.
pub fn body(shape: Shape, told: NotificationBody<'_>, id: &str) -> Option<Body> {
    let kind = kind(told)?;
    let mut bytes = Vec::new();
    let written = match shape {
        Shape::Envelope => {
            let id = serde_json::to_string(own_id(told).unwrap_or(id)).ok()?;
            bytes.extend_from_slice(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).as_bytes());
            let written = write(&mut bytes, Shape::V0_3Event, told);
            bytes.push(b'}');
            written
        }
        bare => write(&mut bytes, bare, told),
    };
    written.then_some(Body { bytes, kind })
}

fn write(out: &mut Vec<u8>, shape: Shape, told: NotificationBody<'_>) -> bool {
    match (shape, told) {
        (Shape::V1, NotificationBody::Event(face, event)) => v1_0::write_event(out, face, event),
        (Shape::V1, NotificationBody::Task(shown)) => {
            v1_0::write_event(out, &TaskNames::of_task(&shown.task), &TaskEvent::Created(shown.task.clone()))
        }
        (Shape::V0_3Task | Shape::V0_3Event | Shape::Envelope, NotificationBody::Task(shown)) => {
            V0_3.encode_reply(out, &Reply::Task(shown.clone()));
            true
        }
        // The only thing a task cannot hold.
        (Shape::V0_3Task, NotificationBody::Event(face, event @ TaskEvent::Replied(_))) => v0_3::write_event(out, face, event),
        (Shape::V0_3Event | Shape::Envelope, NotificationBody::Event(face, event)) => v0_3::write_event(out, face, event),
        (Shape::Original, NotificationBody::Task(shown)) => {
            Original.encode_reply(out, &Reply::Task(shown.clone()));
            true
        }
        (Shape::Original, NotificationBody::Event(_, TaskEvent::Replied(message))) => {
            Original.encode_reply(out, &Reply::Sent(chancery_protocol::Sent::Message(message.clone())));
            true
        }
        (Shape::V0_3Task | Shape::Original, NotificationBody::Event(..)) => false,
    }
}

fn kind(told: NotificationBody<'_>) -> Option<Kind> {
    Some(match told {
        NotificationBody::Task(_) | NotificationBody::Event(_, TaskEvent::Created(_)) => Kind::Task,
        NotificationBody::Event(_, TaskEvent::Status(_)) => Kind::StatusUpdate,
        NotificationBody::Event(_, TaskEvent::Artifact(_)) => Kind::ArtifactUpdate,
        NotificationBody::Event(_, TaskEvent::Replied(_)) => Kind::Message,
        NotificationBody::Event(_, TaskEvent::Said(_)) => return None,
    })
}

/// Tasks and messages have their own ids, updates have none.
fn own_id(told: NotificationBody<'_>) -> Option<&str> {
    match told {
        NotificationBody::Task(shown) => Some(shown.task.id.as_str()),
        NotificationBody::Event(_, TaskEvent::Created(task)) => Some(task.id.as_str()),
        NotificationBody::Event(_, TaskEvent::Replied(message) | TaskEvent::Said(message)) => Some(message.message_id.as_str()),
        NotificationBody::Event(..) => None,
    }
}
