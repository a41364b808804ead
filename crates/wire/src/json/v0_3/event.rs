//! Events of 0.3: bare objects known by their `kind`, with `final` where a caller's stream ends.

use chancery_protocol::{ArtifactChunk, ContextId, Error, Metadata, Sent, StatusChange, TaskEvent, TaskId, Unknown};
use serde::Serialize;

use super::form::Form;
use super::kind::Kind;
use super::members::{ArtifactUpdateMembers, MessageMembers, StatusUpdateMembers, TaskMembers};
use super::message::MessageView;
use super::state::is_final;
use super::task::{ArtifactView, StatusView, TaskView};
use crate::codec::TaskNames;
use crate::json::peer::from_peer;

#[derive(Serialize)]
#[serde(untagged, bound(serialize = "F: Form"))]
pub(super) enum EventView<'a, F: Form> {
    Task(TaskView<'a, F>),
    Message(MessageView<'a, F>),
    Status(StatusUpdate<'a, F>),
    Artifact(ArtifactUpdate<'a, F>),
}

/// The same in the wrapper of 1.0, whose only member says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) enum WrappedView<'a, F: Form> {
    Task(TaskView<'a, F>),
    Message(MessageView<'a, F>),
    StatusUpdate(StatusUpdate<'a, F>),
    ArtifactUpdate(ArtifactUpdate<'a, F>),
}

impl<'a, F: Form> From<EventView<'a, F>> for WrappedView<'a, F> {
    fn from(event: EventView<'a, F>) -> Self {
        match event {
            EventView::Task(task) => Self::Task(task),
            EventView::Message(message) => Self::Message(message),
            EventView::Status(update) => Self::StatusUpdate(update),
            EventView::Artifact(update) => Self::ArtifactUpdate(update),
        }
    }
}

impl<'a, F: Form> From<&'a Sent> for WrappedView<'a, F> {
    fn from(sent: &'a Sent) -> Self {
        match sent {
            Sent::Task(shown) => Self::Task((&*shown.task).into()),
            Sent::Message(message) => Self::Message((&**message).into()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct StatusUpdate<'a, F: Form> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a, F>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<StatusChange>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct ArtifactUpdate<'a, F: Form> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    artifact: ArtifactView<'a, F>,
    append: bool,
    last_chunk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<ArtifactChunk>,
}

impl<'a, F: Form> EventView<'a, F> {
    pub(super) fn of(face: &'a TaskNames, event: &'a TaskEvent) -> Option<Self> {
        let TaskNames { task_id, context_id, .. } = face;
        Some(match event {
            TaskEvent::Created(task) => Self::Task((&**task).into()),
            TaskEvent::Said(_) => return None,
            TaskEvent::Status(StatusChange { status, metadata, unknown }) => Self::Status(StatusUpdate {
                kind: Kind::StatusUpdate.in_form::<F>(),
                task_id,
                context_id,
                status: status.into(),
                r#final: is_final(status.state, face),
                metadata: metadata.as_ref(),
                unknown,
            }),
            TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata, unknown }) => {
                Self::Artifact(ArtifactUpdate {
                    kind: Kind::ArtifactUpdate.in_form::<F>(),
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

/// Reads an event of a JSON-RPC stream.
pub(super) fn read(payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
    Ok(match Kind::peek(payload)? {
        Kind::Task => from_peer::<TaskMembers>(payload)?.into_event(),
        Kind::Message => from_peer::<MessageMembers>(payload)?.into_event(),
        Kind::StatusUpdate => from_peer::<StatusUpdateMembers>(payload)?.into_event(),
        Kind::ArtifactUpdate => from_peer::<ArtifactUpdateMembers>(payload)?.into_event(),
    })
}
