//! Tasks, statuses, messages and artifacts as the JSON of the 0.3 proto writes them. Some of its readers refuse members that
//! the proto does not have, so nothing of ours is added here; what a peer added is passed on as everywhere.

use std::sync::Arc;

use chancery_protocol::lenient::{non_empty, null_default};
use chancery_protocol::{
    Artifact, ArtifactId, ContextId, Message, MessageId, Metadata, Part, Role, Shown, Task, TaskId, TaskState, TaskStatus,
    Timestamp, Unknown,
};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::part::{PartRead, PartView};
use crate::json::write::Each;

/// The one state whose name 1.0 changed.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

#[derive(Clone, Copy, Debug)]
pub(super) struct ProtoState(pub TaskState);

impl Serialize for ProtoState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(if self.0 == TaskState::Canceled { CANCELLED } else { self.0.name() })
    }
}

impl<'de> Deserialize<'de> for ProtoState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Named {
            Name(String),
            Number(i64),
        }

        let expected = &"a task state such as TASK_STATE_WORKING";
        match Named::deserialize(from)? {
            Named::Name(name) => {
                let found = TaskState::ALL.into_iter().find(|state| state.name() == name);
                let found = found.or_else(|| (name == CANCELLED).then_some(TaskState::Canceled));
                found.ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&name), expected))
            }
            Named::Number(number) => {
                TaskState::from_number(number).ok_or_else(|| de::Error::invalid_value(de::Unexpected::Signed(number), expected))
            }
        }
        .map(Self)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageView<'a> {
    message_id: &'a MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a ContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a TaskId>,
    role: Role,
    content: Each<'a, Part, PartView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(flatten)]
    unknown: &'a Unknown<Message>,
}

impl<'a> From<&'a Message> for MessageView<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            message_id: &message.message_id,
            context_id: message.context_id.as_ref(),
            task_id: message.task_id.as_ref(),
            role: message.role,
            content: Each(&message.parts, PartView),
            metadata: message.metadata.as_ref(),
            extensions: &message.extensions,
            unknown: &message.unknown,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskView<'a> {
    id: &'a TaskId,
    context_id: &'a ContextId,
    status: StatusView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<Each<'a, Arc<Artifact>, ArtifactView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Each<'a, Arc<Message>, MessageView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: &'a Unknown<Task>,
}

impl<'a> From<&'a Task> for TaskView<'a> {
    fn from(task: &'a Task) -> Self {
        Self {
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

impl<'a> TaskView<'a> {
    pub(super) fn without_artifacts(shown: &'a Shown) -> Self {
        Self { artifacts: None, ..Self::from(&*shown.task) }
    }

    pub(super) fn with_artifacts(shown: &'a Shown) -> Self {
        let artifacts = Each(&shown.task.artifacts, |artifact| (&**artifact).into());
        Self { artifacts: Some(artifacts), ..Self::from(&*shown.task) }
    }
}

#[derive(Serialize)]
pub(super) struct StatusView<'a> {
    state: ProtoState,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(flatten)]
    unknown: &'a Unknown<TaskStatus>,
}

impl<'a> From<&'a TaskStatus> for StatusView<'a> {
    fn from(status: &'a TaskStatus) -> Self {
        let message = status.message.as_deref().map(Into::into);
        Self { state: ProtoState(status.state), message, timestamp: status.timestamp, unknown: &status.unknown }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactView<'a> {
    artifact_id: &'a ArtifactId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parts: Each<'a, Part, PartView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(flatten)]
    unknown: &'a Unknown<Artifact>,
}

impl<'a> From<&'a Artifact> for ArtifactView<'a> {
    fn from(artifact: &'a Artifact) -> Self {
        Self {
            artifact_id: &artifact.artifact_id,
            name: artifact.name.as_deref(),
            description: artifact.description.as_deref(),
            parts: Each(&artifact.parts, PartView),
            metadata: artifact.metadata.as_ref(),
            extensions: &artifact.extensions,
            unknown: &artifact.unknown,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageMembers {
    #[serde(alias = "message_id")]
    message_id: MessageId,
    #[serde(default, alias = "context_id", deserialize_with = "non_empty")]
    context_id: Option<ContextId>,
    #[serde(default, alias = "task_id", deserialize_with = "non_empty")]
    task_id: Option<TaskId>,
    role: Role,
    #[serde(default, deserialize_with = "null_default")]
    content: Vec<PartRead>,
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "null_default")]
    extensions: Vec<String>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Message>,
}

impl From<MessageMembers> for Message {
    fn from(members: MessageMembers) -> Self {
        Self {
            message_id: members.message_id,
            context_id: members.context_id,
            task_id: members.task_id,
            role: members.role,
            parts: parts(members.content),
            metadata: members.metadata,
            extensions: members.extensions,
            reference_task_ids: Vec::new(),
            unknown: members.unknown,
        }
    }
}

fn parts(read: Vec<PartRead>) -> Vec<Part> {
    read.into_iter().map(|PartRead(part)| part).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskMembers {
    id: TaskId,
    #[serde(alias = "context_id")]
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

#[derive(Deserialize)]
pub(super) struct StatusMembers {
    #[serde(default = "unset")]
    state: ProtoState,
    #[serde(alias = "update")]
    message: Option<MessageMembers>,
    timestamp: Option<Timestamp>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<TaskStatus>,
}

/// ProtoJSON leaves the state with number zero out.
fn unset() -> ProtoState {
    ProtoState(TaskState::Unspecified)
}

impl From<StatusMembers> for TaskStatus {
    fn from(status: StatusMembers) -> Self {
        let message = status.message.map(|message| Arc::new(message.into()));
        Self { state: status.state.0, message, timestamp: status.timestamp, unknown: status.unknown }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactMembers {
    #[serde(alias = "artifact_id")]
    artifact_id: ArtifactId,
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    description: Option<String>,
    #[serde(default, deserialize_with = "null_default")]
    parts: Vec<PartRead>,
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "null_default")]
    extensions: Vec<String>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Artifact>,
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
