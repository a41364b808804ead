//! Tasks, statuses and artifacts of 0.3.

use std::sync::Arc;

use chancery_protocol::lenient::{non_empty, null_default};
use chancery_protocol::{
    Artifact, ArtifactId, ContextId, Message, Metadata, Part, Shown, Task, TaskId, TaskStatus, Timestamp, Unknown,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::message::{MessageMembers, MessageView};
use super::state::State;
use crate::json::part::{Read, Tagged, by_kind, parts, untagged};
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskView<'a, const WRAPPED: bool = false> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a, WRAPPED>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Each<'a, Arc<Artifact>, ArtifactView<'a, WRAPPED>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Each<'a, Arc<Message>, MessageView<'a, WRAPPED>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<Task>,
}

impl<'a, const WRAPPED: bool> From<&'a Task> for TaskView<'a, WRAPPED> {
    fn from(task: &'a Task) -> Self {
        Self {
            kind: Kind::Task.unless(WRAPPED),
            id: &task.id,
            context_id: &task.context_id,
            status: (&task.status).into(),
            artifacts: Each::some(&task.artifacts, |artifact| (&**artifact).into()),
            history: Each::some(&task.history, |message| (&**message).into()),
            metadata: task.metadata.as_ref(),
            unknown: &task.unknown,
        }
    }
}

impl<'a, const WRAPPED: bool> TaskView<'a, WRAPPED> {
    pub(super) fn without_artifacts(shown: &'a Shown) -> Self {
        Self { artifacts: None, ..Self::from(&*shown.task) }
    }

    pub(super) fn with_artifacts(shown: &'a Shown) -> Self {
        let artifacts = Each(&shown.task.artifacts, |artifact| (&**artifact).into());
        Self { artifacts: Some(artifacts), ..Self::from(&*shown.task) }
    }
}

#[derive(Serialize)]
pub(super) struct StatusView<'a, const WRAPPED: bool = false> {
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a, WRAPPED>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(flatten)]
    unknown: &'a Unknown<TaskStatus>,
}

impl<'a, const WRAPPED: bool> From<&'a TaskStatus> for StatusView<'a, WRAPPED> {
    fn from(status: &'a TaskStatus) -> Self {
        let message = status.message.as_deref().map(Into::into);
        Self { state: State(status.state), message, timestamp: status.timestamp, unknown: &status.unknown }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactView<'a, const WRAPPED: bool = false> {
    artifact_id: &'a ArtifactId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parts: Each<'a, Part, Tagged<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(flatten)]
    unknown: &'a Unknown<Artifact>,
}

impl<'a, const WRAPPED: bool> From<&'a Artifact> for ArtifactView<'a, WRAPPED> {
    fn from(artifact: &'a Artifact) -> Self {
        Self {
            artifact_id: &artifact.artifact_id,
            name: artifact.name.as_deref(),
            description: artifact.description.as_deref(),
            parts: Each(&artifact.parts, if WRAPPED { untagged } else { by_kind }),
            metadata: artifact.metadata.as_ref(),
            extensions: &artifact.extensions,
            unknown: &artifact.unknown,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskMembers {
    #[serde(rename = "kind")]
    _kind: Option<IgnoredAny>,
    id: TaskId,
    context_id: ContextId,
    status: StatusMembers,
    #[serde(default, deserialize_with = "null_default")]
    artifacts: Vec<ArtifactMembers>,
    #[serde(default, deserialize_with = "null_default")]
    history: Vec<MessageMembers>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Task>,
}

#[derive(Deserialize)]
pub(super) struct StatusMembers {
    state: State,
    message: Option<MessageMembers>,
    timestamp: Option<Timestamp>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<TaskStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactMembers {
    artifact_id: ArtifactId,
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    description: Option<String>,
    #[serde(default, deserialize_with = "null_default")]
    parts: Vec<Read<false>>,
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "null_default")]
    extensions: Vec<String>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Artifact>,
}

impl From<TaskMembers> for Task {
    fn from(task: TaskMembers) -> Self {
        Self {
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: task.artifacts.into_iter().map(|artifact| Arc::new(artifact.into())).collect(),
            history: task.history.into_iter().map(|message| Arc::new(message.into())).collect(),
            metadata: task.metadata,
            unknown: task.unknown,
        }
    }
}

impl From<StatusMembers> for TaskStatus {
    fn from(status: StatusMembers) -> Self {
        let message = status.message.map(|message| Arc::new(message.into()));
        Self { state: status.state.0, message, timestamp: status.timestamp, unknown: status.unknown }
    }
}

impl From<ArtifactMembers> for Artifact {
    fn from(artifact: ArtifactMembers) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: parts(artifact.parts),
            metadata: artifact.metadata,
            extensions: artifact.extensions,
            unknown: artifact.unknown,
        }
    }
}
