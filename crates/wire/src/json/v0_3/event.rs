//! Events of 0.3: bare objects known by their `kind`, with `final` where a caller's stream ends.

use std::sync::Arc;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{ArtifactChunk, ContextId, Error, Message, Metadata, StatusChange, Task, TaskEvent, TaskId, Unknown};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::message::{MessageMembers, MessageView};
use super::state::is_final;
use super::task::{ArtifactMembers, ArtifactView, StatusMembers, StatusView, TaskMembers, TaskView};
use crate::codec::Face;
use crate::json::peer::from_peer;

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum EventView<'a, const WRAPPED: bool = false> {
    Task(TaskView<'a, WRAPPED>),
    Message(MessageView<'a, WRAPPED>),
    Status(StatusUpdate<'a, WRAPPED>),
    Artifact(ArtifactUpdate<'a, WRAPPED>),
}

/// The same in the wrapper of 1.0, whose only member says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum WrappedView<'a> {
    Task(TaskView<'a, true>),
    Message(MessageView<'a, true>),
    StatusUpdate(StatusUpdate<'a, true>),
    ArtifactUpdate(ArtifactUpdate<'a, true>),
}

impl<'a> From<EventView<'a, true>> for WrappedView<'a> {
    fn from(event: EventView<'a, true>) -> Self {
        match event {
            EventView::Task(task) => Self::Task(task),
            EventView::Message(message) => Self::Message(message),
            EventView::Status(update) => Self::StatusUpdate(update),
            EventView::Artifact(update) => Self::ArtifactUpdate(update),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a, const WRAPPED: bool = false> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a, WRAPPED>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<StatusChange>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a, const WRAPPED: bool = false> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    artifact: ArtifactView<'a, WRAPPED>,
    append: bool,
    last_chunk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<ArtifactChunk>,
}

impl<'a, const WRAPPED: bool> EventView<'a, WRAPPED> {
    pub(super) fn of(face: &'a Face, event: &'a TaskEvent) -> Option<Self> {
        let Face { task_id, context_id, .. } = face;
        Some(match event {
            TaskEvent::Created(task) => Self::Task((&**task).into()),
            TaskEvent::Said(_) => return None,
            TaskEvent::Status(StatusChange { status, metadata, unknown }) => Self::Status(StatusUpdate {
                kind: Kind::StatusUpdate.unless(WRAPPED),
                task_id,
                context_id,
                status: status.into(),
                r#final: is_final(status.state),
                metadata: metadata.as_ref(),
                unknown,
            }),
            TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata, unknown }) => {
                Self::Artifact(ArtifactUpdate {
                    kind: Kind::ArtifactUpdate.unless(WRAPPED),
                    task_id,
                    context_id,
                    artifact: (&**artifact).into(),
                    append: *append,
                    last_chunk: *last_chunk,
                    metadata: metadata.as_ref(),
                    unknown,
                })
            }
            TaskEvent::Replied(message) => Self::Message((&**message).into()),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdateMembers {
    #[serde(rename = "kind")]
    _kind: Option<IgnoredAny>,
    #[serde(rename = "final")]
    _final: Option<IgnoredAny>,
    task_id: TaskId,
    context_id: ContextId,
    status: StatusMembers,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<StatusChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdateMembers {
    #[serde(rename = "kind")]
    _kind: Option<IgnoredAny>,
    task_id: TaskId,
    context_id: ContextId,
    artifact: ArtifactMembers,
    #[serde(default, deserialize_with = "null_default")]
    append: bool,
    #[serde(default, deserialize_with = "null_default")]
    last_chunk: bool,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<ArtifactChunk>,
}

pub(super) fn read(payload: &str) -> Result<(Option<Face>, TaskEvent), Error> {
    Ok(match Kind::peek(payload)? {
        Kind::Task => {
            let task: Task = from_peer::<TaskMembers>(payload)?.into();
            (Some(Face::of_task(&task)), TaskEvent::Created(Arc::new(task)))
        }
        Kind::Message => {
            let message: Message = from_peer::<MessageMembers>(payload)?.into();
            (Face::of_message(&message), TaskEvent::Replied(Arc::new(message)))
        }
        Kind::StatusUpdate => {
            let update: StatusUpdateMembers = from_peer(payload)?;
            let change = StatusChange { status: update.status.into(), metadata: update.metadata, unknown: update.unknown };
            (Some(Face::named(update.task_id, update.context_id)), TaskEvent::Status(change))
        }
        Kind::ArtifactUpdate => {
            let update: ArtifactUpdateMembers = from_peer(payload)?;
            let chunk = ArtifactChunk {
                artifact: Arc::new(update.artifact.into()),
                append: update.append,
                last_chunk: update.last_chunk,
                metadata: update.metadata,
                unknown: update.unknown,
            };
            (Some(Face::named(update.task_id, update.context_id)), TaskEvent::Artifact(chunk))
        }
    })
}
