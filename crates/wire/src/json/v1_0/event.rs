//! Events as version 1.0 shows them.

use std::sync::Arc;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    Artifact, ArtifactChunk, ContextId, Error, Message, Metadata, StatusChange, Task, TaskEvent, TaskId, TaskStatus, Unknown,
};
use serde::{Deserialize, Serialize};

use crate::codec::TaskNames;
use crate::json::peer::not_understood;

/// What a stream shows, and what a sent message is answered with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Event<'a> {
    Task(&'a Task),
    Message(&'a Message),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a> {
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    #[serde(flatten)]
    change: &'a StatusChange,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a> {
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    #[serde(flatten)]
    chunk: &'a ArtifactChunk,
}

impl<'a> Event<'a> {
    pub(super) fn of(face: &'a TaskNames, event: &'a TaskEvent) -> Option<Self> {
        let TaskNames { task_id, context_id, .. } = face;
        Some(match event {
            TaskEvent::Created(task) => Self::Task(task),
            TaskEvent::Said(_) => return None,
            TaskEvent::Status(change) => Self::StatusUpdate(StatusUpdate { task_id, context_id, change }),
            TaskEvent::Artifact(chunk) => Self::ArtifactUpdate(ArtifactUpdate { task_id, context_id, chunk }),
            TaskEvent::Replied(message) => Self::Message(message),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventMembers {
    pub(super) task: Option<Arc<Task>>,
    pub(super) message: Option<Arc<Message>>,
    #[serde(alias = "status_update")]
    status_update: Option<StatusMembers>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<ArtifactMembers>,
}

// Members are spelled out rather than flattened: flattening would buffer them, and raw JSON cannot be read from a buffer.

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusMembers {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    status: TaskStatus,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<StatusChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactMembers {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(alias = "context_id")]
    context_id: ContextId,
    artifact: Arc<Artifact>,
    #[serde(default, deserialize_with = "null_default")]
    append: bool,
    #[serde(default, alias = "last_chunk", deserialize_with = "null_default")]
    last_chunk: bool,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<ArtifactChunk>,
}

impl EventMembers {
    pub(super) fn into_event(self) -> Result<(Option<TaskNames>, TaskEvent), Error> {
        Ok(match (self.task, self.message, self.status_update, self.artifact_update) {
            (Some(task), None, None, None) => (Some(TaskNames::of_task(&task)), TaskEvent::Created(task)),
            (None, Some(message), None, None) => (TaskNames::of_message(&message), TaskEvent::Replied(message)),
            (None, None, Some(update), None) => {
                let change = StatusChange { status: update.status, metadata: update.metadata, unknown: update.unknown };
                (Some(TaskNames::named(update.task_id, update.context_id)), TaskEvent::Status(change))
            }
            (None, None, None, Some(update)) => {
                let ArtifactMembers { task_id, context_id, artifact, append, last_chunk, metadata, unknown } = update;
                let chunk = ArtifactChunk { artifact, append, last_chunk, metadata, unknown };
                (Some(TaskNames::named(task_id, context_id)), TaskEvent::Artifact(chunk))
            }
            _ => return Err(not_understood("an event has exactly one of task, message, statusUpdate and artifactUpdate")),
        })
    }
}
