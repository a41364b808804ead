//! Tasks, statuses and artifacts of 0.3, to be written.
//!
//! Some readers of the proto's JSON refuse members that the proto does not have, so no form adds members of
//! the node. Members that a peer added are forwarded, as in every version.

use std::sync::Arc;

use chancery_protocol::{
    Artifact, ArtifactId, ContextId, Message, Metadata, NamedTask, Part, Task, TaskId, TaskStatus, Timestamp, Unknown,
};
use serde::Serialize;

use super::form::Form;
use super::kind::Kind;
use super::message::MessageView;
use crate::json::write::Each;

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct TaskView<'a, F: Form> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a, F>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Each<'a, Arc<Artifact>, ArtifactView<'a, F>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Each<'a, Arc<Message>, MessageView<'a, F>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<Task>,
}

impl<'a, F: Form> From<&'a Task> for TaskView<'a, F> {
    fn from(task: &'a Task) -> Self {
        Self {
            kind: Kind::Task.in_form::<F>(),
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

impl<'a, F: Form> TaskView<'a, F> {
    pub(super) fn without_artifacts(shown: &'a NamedTask) -> Self {
        Self { artifacts: None, ..Self::from(&*shown.task) }
    }

    pub(super) fn with_artifacts(shown: &'a NamedTask) -> Self {
        let artifacts = Each(&shown.task.artifacts, |artifact| (&**artifact).into());
        Self { artifacts: Some(artifacts), ..Self::from(&*shown.task) }
    }
}

#[derive(Serialize)]
#[serde(bound(serialize = "F: Form"))]
pub(super) struct StatusView<'a, F: Form> {
    state: F::State,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a, F>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(flatten)]
    unknown: &'a Unknown<TaskStatus>,
}

impl<'a, F: Form> From<&'a TaskStatus> for StatusView<'a, F> {
    fn from(status: &'a TaskStatus) -> Self {
        let message = status.message.as_deref().map(Into::into);
        Self { state: F::state(status.state), message, timestamp: status.timestamp, unknown: &status.unknown }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound(serialize = "F: Form"))]
pub(super) struct ArtifactView<'a, F: Form> {
    artifact_id: &'a ArtifactId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parts: Each<'a, Part, F::PartView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(flatten)]
    unknown: &'a Unknown<Artifact>,
}

impl<'a, F: Form> From<&'a Artifact> for ArtifactView<'a, F> {
    fn from(artifact: &'a Artifact) -> Self {
        Self {
            artifact_id: &artifact.artifact_id,
            name: artifact.name.as_deref(),
            description: artifact.description.as_deref(),
            parts: Each(&artifact.parts, F::part),
            metadata: artifact.metadata.as_ref(),
            extensions: &artifact.extensions,
            unknown: &artifact.unknown,
        }
    }
}
