//! Events and replies to messages, named by their only member.

use std::sync::Arc;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    ArtifactChunk, ContextId, Error, Message, Metadata, Sent, StatusChange, Task, TaskEvent, TaskId, Unknown,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::shown;
use super::task::{ArtifactMembers, ArtifactView, MessageMembers, MessageView, StatusMembers, StatusView, TaskMembers, TaskView};
use crate::codec::Face;
use crate::json::peer::not_understood;
use crate::json::v0_3::state::is_final;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum EventView<'a> {
    Task(TaskView<'a>),
    Message(MessageView<'a>),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a> {
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<StatusChange>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a> {
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    artifact: ArtifactView<'a>,
    append: bool,
    last_chunk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<ArtifactChunk>,
}

impl<'a> EventView<'a> {
    pub(super) fn of(face: &'a Face, event: &'a TaskEvent) -> Option<Self> {
        let Face { task_id, context_id, .. } = face;
        Some(match event {
            TaskEvent::Created(task) => Self::Task((&**task).into()),
            TaskEvent::Said(_) => return None,
            TaskEvent::Status(StatusChange { status, metadata, unknown }) => Self::StatusUpdate(StatusUpdate {
                task_id,
                context_id,
                status: status.into(),
                r#final: is_final(status.state),
                metadata: metadata.as_ref(),
                unknown,
            }),
            TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata, unknown }) => {
                Self::ArtifactUpdate(ArtifactUpdate {
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

    pub(super) fn of_reply(sent: &'a Sent) -> Self {
        match sent {
            Sent::Task(shown) => Self::Task((&*shown.task).into()),
            Sent::Message(message) => Self::Message((&**message).into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventMembers {
    task: Option<TaskMembers>,
    #[serde(alias = "msg")]
    message: Option<MessageMembers>,
    #[serde(alias = "status_update")]
    status_update: Option<StatusUpdateMembers>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<ArtifactUpdateMembers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdateMembers {
    #[serde(rename = "final")]
    _final: Option<IgnoredAny>,
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    status: StatusMembers,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<StatusChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdateMembers {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    artifact: ArtifactMembers,
    #[serde(default, deserialize_with = "null_default")]
    append: bool,
    #[serde(default, alias = "last_chunk", deserialize_with = "null_default")]
    last_chunk: bool,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<ArtifactChunk>,
}

impl EventMembers {
    pub(super) fn into_event(self) -> Result<(Option<Face>, TaskEvent), Error> {
        Ok(match (self.task, self.message, self.status_update, self.artifact_update) {
            (Some(task), None, None, None) => {
                let task: Task = task.into();
                (Some(Face::of_task(&task)), TaskEvent::Created(Arc::new(task)))
            }
            (None, Some(message), None, None) => {
                let message: Message = message.into();
                (Face::of_message(&message), TaskEvent::Replied(Arc::new(message)))
            }
            (None, None, Some(update), None) => {
                let change = StatusChange { status: update.status.into(), metadata: update.metadata, unknown: update.unknown };
                (Some(Face::named(update.task_id, update.context_id)), TaskEvent::Status(change))
            }
            (None, None, None, Some(update)) => {
                let chunk = ArtifactChunk {
                    artifact: Arc::new(update.artifact.into()),
                    append: update.append,
                    last_chunk: update.last_chunk,
                    metadata: update.metadata,
                    unknown: update.unknown,
                };
                (Some(Face::named(update.task_id, update.context_id)), TaskEvent::Artifact(chunk))
            }
            _ => return Err(not_understood("an event has exactly one of task, message, statusUpdate and artifactUpdate")),
        })
    }

    pub(super) fn into_reply(self) -> Result<Sent, Error> {
        match (self.task, self.message) {
            (Some(task), None) => Ok(Sent::Task(shown(task))),
            (None, Some(message)) => Ok(Sent::Message(Arc::new(message.into()))),
            _ => Err(not_understood("a reply to a message has exactly one of task and message")),
        }
    }
}
