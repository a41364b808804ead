//! Tasks, statuses, messages and artifacts of the original protocol: no message ids, artifacts known by their index.

use std::borrow::Cow;
use std::sync::Arc;

use chancery_protocol::lenient::{non_empty, null_default};
use chancery_protocol::{
    Artifact, ArtifactId, ContextId, Message, MessageId, Metadata, NamedTask, Part, Task, TaskId, TaskState, TaskStatus,
    Timestamp, Unknown, Version, around_rvagent, from_rvagent, to_rvagent,
};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use crate::json::part::{Read, by_type, parts};
use crate::json::v0_3::state::{Speaker, State};
use crate::json::write::Each;

/// The original has no word for two of the states; callers get the nearest it has.
pub(super) const fn known(state: TaskState) -> TaskState {
    match state {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        other => other,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskView<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    session_id: &'a str,
    status: StatusView<'a>,
    #[serde(skip_serializing_if = "Artifacts::is_empty")]
    artifacts: Artifacts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Each<'a, Arc<Message>, MessageView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: Option<&'a Unknown<Task>>,
}

impl<'a> From<&'a NamedTask> for TaskView<'a> {
    fn from(NamedTask { task, client_task_id, .. }: &'a NamedTask) -> Self {
        Self {
            id: client_task_id.as_deref().unwrap_or(task.id.as_str()),
            session_id: task.context_id.as_str(),
            status: (&task.status).into(),
            artifacts: Artifacts(&task.artifacts),
            history: Each::some(&task.history, |message| (&**message).into()),
            metadata: task.metadata.as_ref(),
            unknown: Some(&task.unknown),
        }
    }
}

impl<'a> TaskView<'a> {
    /// A message instead of a task. The original knows only tasks, so it becomes one that is done and said this.
    pub(super) fn around(message: &'a Message) -> Self {
        Self {
            id: message.task_id.as_ref().map_or(message.message_id.as_str(), TaskId::as_str),
            session_id: message.context_id.as_ref().map_or("", ContextId::as_str),
            status: StatusView::said(message),
            artifacts: Artifacts(&[]),
            history: None,
            metadata: None,
            unknown: None,
        }
    }
}

#[derive(Serialize)]
pub(super) struct StatusView<'a> {
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(flatten)]
    unknown: Option<&'a Unknown<TaskStatus>>,
}

impl<'a> From<&'a TaskStatus> for StatusView<'a> {
    fn from(status: &'a TaskStatus) -> Self {
        let message = status.message.as_deref().map(Into::into);
        Self { state: State(known(status.state)), message, timestamp: status.timestamp, unknown: Some(&status.unknown) }
    }
}

impl<'a> StatusView<'a> {
    pub(super) fn said(message: &'a Message) -> Self {
        Self { state: State(TaskState::Completed), message: Some(message.into()), timestamp: None, unknown: None }
    }
}

/// A part as the original tags it, typed data as `rvagent-a2a` spells it.
pub(super) struct PartView<'a>(Cow<'a, Part>);

impl<'a> PartView<'a> {
    fn of(part: &'a Part) -> Self {
        Self(to_rvagent(part))
    }
}

impl Serialize for PartView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        by_type(&self.0).serialize(to)
    }
}

#[derive(Serialize)]
pub(super) struct MessageView<'a> {
    role: Speaker,
    parts: Each<'a, Part, PartView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Cow<'a, Metadata>>,
    #[serde(flatten)]
    unknown: &'a Unknown<Message>,
}

impl<'a> From<&'a Message> for MessageView<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            role: message.role.into(),
            parts: Each(&message.parts, PartView::of),
            metadata: around_rvagent(&message.parts, message.metadata.as_ref()),
            unknown: &message.unknown,
        }
    }
}

/// A task's artifacts, each with its place as its index.
struct Artifacts<'a>(&'a [Arc<Artifact>]);

impl Artifacts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Artifacts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for (index, artifact) in (0..).zip(self.0) {
            list.serialize_element(&ArtifactView::at(index, artifact))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parts: Each<'a, Part, PartView<'a>>,
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_chunk: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Cow<'a, Metadata>>,
    #[serde(flatten)]
    unknown: &'a Unknown<Artifact>,
}

impl<'a> ArtifactView<'a> {
    fn at(index: u32, artifact: &'a Artifact) -> Self {
        Self {
            name: artifact.name.as_deref(),
            description: artifact.description.as_deref(),
            parts: Each(&artifact.parts, PartView::of),
            index,
            append: None,
            last_chunk: None,
            metadata: around_rvagent(&artifact.parts, artifact.metadata.as_ref()),
            unknown: &artifact.unknown,
        }
    }

    pub(super) fn chunk(index: u32, artifact: &'a Artifact, append: bool, last_chunk: bool) -> Self {
        Self { append: Some(append), last_chunk: Some(last_chunk), ..Self::at(index, artifact) }
    }
}

/// The index an artifact has in a stream: its place in the task, as in the task itself. Where the face does not know it,
/// any number will do that is always the same for one artifact and another for another: the id itself if it is a number,
/// else its FNV-1a hash.
pub(super) fn stream_index(id: &ArtifactId, known: &[ArtifactId]) -> u32 {
    if let Some(place) = known.iter().position(|other| other == id) {
        return u32::try_from(place).unwrap_or(u32::MAX);
    }
    let hash = |text: &str| text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // Kept positive for readers whose integers have a sign.
    id.as_str().parse().unwrap_or_else(|_| hash(id.as_str())) & 0x7fff_ffff
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskMembers {
    id: String,
    #[serde(default, deserialize_with = "null_default")]
    session_id: String,
    status: StatusMembers,
    #[serde(default, deserialize_with = "null_default")]
    artifacts: Vec<ArtifactMembers>,
    #[serde(default, deserialize_with = "null_default")]
    history: Vec<MessageMembers>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Task>,
}

impl From<TaskMembers> for NamedTask {
    fn from(task: TaskMembers) -> Self {
        let client_task_id = Some(task.id.as_str().into());
        let task = Task {
            id: task.id.into(),
            context_id: task.session_id.into(),
            status: task.status.into(),
            artifacts: told_apart(task.artifacts.into_iter().map(Into::into).collect()),
            history: task.history.into_iter().map(|message| Arc::new(message.into())).collect(),
            metadata: task.metadata,
            unknown: task.unknown,
        };
        Self { task: Arc::new(task), dialect: Version::Original.into(), client_task_id }
    }
}

/// `rvagent-a2a` gives every artifact the index 0 unless its agent says another. Two of one task are two all the same: they are known
/// by their place then.
fn told_apart(mut artifacts: Vec<Artifact>) -> Vec<Arc<Artifact>> {
    let mut ids: Vec<&ArtifactId> = artifacts.iter().map(|artifact| &artifact.artifact_id).collect();
    ids.sort();
    ids.dedup();
    if ids.len() < artifacts.len() {
        for (place, artifact) in artifacts.iter_mut().enumerate() {
            artifact.artifact_id = place.to_string().into();
        }
    }
    artifacts.into_iter().map(Arc::new).collect()
}

#[derive(Deserialize)]
pub(super) struct StatusMembers {
    state: State,
    message: Option<MessageMembers>,
    timestamp: Option<Timestamp>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<TaskStatus>,
}

impl From<StatusMembers> for TaskStatus {
    fn from(status: StatusMembers) -> Self {
        let message = status.message.map(|message| Arc::new(message.into()));
        Self { state: status.state.0, message, timestamp: status.timestamp, unknown: status.unknown }
    }
}

#[derive(Deserialize)]
pub(super) struct MessageMembers {
    role: Speaker,
    #[serde(default, deserialize_with = "null_default")]
    parts: Vec<Read<true>>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Message>,
}

impl From<MessageMembers> for Message {
    /// The message's id is left empty, to be given where it is recorded.
    fn from(message: MessageMembers) -> Self {
        let MessageMembers { role, parts: read, metadata, unknown } = message;
        let parts = from_rvagent(parts(read), metadata.as_ref());
        Self { metadata, unknown, ..Self::of_parts(role.into(), MessageId::from(""), parts) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactMembers {
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
    #[serde(default, deserialize_with = "non_empty")]
    description: Option<String>,
    #[serde(default, deserialize_with = "null_default")]
    parts: Vec<Read<true>>,
    #[serde(default, deserialize_with = "null_default")]
    index: u32,
    #[serde(default, deserialize_with = "null_default")]
    pub(super) append: bool,
    #[serde(default, deserialize_with = "null_default")]
    pub(super) last_chunk: bool,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<Artifact>,
}

impl From<ArtifactMembers> for Artifact {
    fn from(artifact: ArtifactMembers) -> Self {
        let parts = from_rvagent(parts(artifact.parts), artifact.metadata.as_ref());
        Self {
            name: artifact.name,
            description: artifact.description,
            metadata: artifact.metadata,
            unknown: artifact.unknown,
            ..Self::new(artifact.index.to_string(), parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_of_one_index_are_told_apart_by_their_place() {
        let ids = |indices: [u32; 3]| {
            let artifacts = indices.map(|index| Artifact::new(index.to_string(), vec![])).to_vec();
            told_apart(artifacts).iter().map(|artifact| artifact.artifact_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids([0, 0, 1]), ["0", "1", "2"]);
        assert_eq!(ids([5, 3, 4]), ["5", "3", "4"]);
    }

    #[test]
    fn an_artifact_keeps_its_index_through_a_stream() {
        assert_eq!(stream_index(&"7".into(), &[]), 7);
        assert_eq!(stream_index(&"report".into(), &[]), stream_index(&"report".into(), &[]));
        assert_ne!(stream_index(&"report".into(), &[]), stream_index(&"summary".into(), &[]));
        assert!(stream_index(&"4294967295".into(), &[]) <= i32::MAX as u32);
        assert_eq!(stream_index(&"summary".into(), &["report".into(), "summary".into()]), 1);
    }
}
