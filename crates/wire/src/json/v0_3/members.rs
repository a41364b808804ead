//! What is read of 0.3 objects. One macro declares it for both JSON forms, which differ in names and in the spelling of values.

use chancery_protocol::TaskId;
use serde::Deserialize;

use super::state::{Speaker, State};
use crate::json::part::Read;

/// Declares the members of one form:
///
/// - `state`, `role`, `part`: the types that read them; `state … or` names a function for a state that is left out.
/// - `kind`: what a message may say in `kind`.
/// - `references`: the type that reads the tasks a message refers to.
/// - `parts`: the name of a message's parts.
/// - `also by alias`: snake_case names and the names of the proto are read too.
macro_rules! object_members {
    (
        state: $State:ident $(or $unset:literal)?,
        role: $Role:ty,
        part: $Part:ty,
        kind: $Kind:ty,
        references: $References:ty,
        parts: $parts:literal
        $(, also by $alias:ident)?
    ) => {
        use std::sync::Arc;

        use chancery_protocol::lenient::{non_empty, null_default};
        use chancery_protocol::{
            Artifact, ArtifactChunk, ArtifactId, ContextId, Message, MessageId, Metadata, Part, NamedTask, StatusChange, Task,
            TaskEvent, TaskPage, TaskStatus, Timestamp, Unknown, Version,
        };
        use serde::de::IgnoredAny;

        use crate::codec::TaskNames;

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>"))]
        pub(super) struct MessageMembers<P = $Part> {
            #[serde(rename = "kind")]
            _kind: Option<$Kind>,
            $(#[serde($alias = "message_id")])?
            message_id: MessageId,
            #[serde(default, deserialize_with = "non_empty")]
            $(#[serde($alias = "context_id")])?
            context_id: Option<ContextId>,
            #[serde(default, deserialize_with = "non_empty")]
            $(#[serde($alias = "task_id")])?
            task_id: Option<TaskId>,
            role: $Role,
            #[serde(rename = $parts, default, deserialize_with = "null_default")]
            parts: Vec<P>,
            metadata: Option<Metadata>,
            #[serde(default, deserialize_with = "null_default")]
            extensions: Vec<String>,
            #[serde(default, deserialize_with = "null_default")]
            reference_task_ids: $References,
            #[serde(default, rename = "$unknown")]
            unknown: Unknown<Message>,
        }

        impl<P: Into<Part>> From<MessageMembers<P>> for Message {
            fn from(members: MessageMembers<P>) -> Self {
                Self {
                    message_id: members.message_id,
                    context_id: members.context_id,
                    task_id: members.task_id,
                    role: members.role.into(),
                    parts: members.parts.into_iter().map(Into::into).collect(),
                    metadata: members.metadata,
                    extensions: members.extensions,
                    reference_task_ids: members.reference_task_ids.into(),
                    unknown: members.unknown,
                }
            }
        }

        impl MessageMembers {
            pub(super) fn into_event(self) -> (Option<TaskNames>, TaskEvent) {
                let message: Message = self.into();
                (TaskNames::of_message(&message), TaskEvent::Replied(Arc::new(message)))
            }
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct TaskMembers {
            #[serde(rename = "kind")]
            _kind: Option<IgnoredAny>,
            id: TaskId,
            $(#[serde($alias = "context_id")])?
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

        impl TaskMembers {
            pub(super) fn into_shown(self) -> NamedTask {
                NamedTask { task: Arc::new(self.into()), dialect: Version::V0_3.into(), client_task_id: None }
            }

            pub(super) fn into_event(self) -> (Option<TaskNames>, TaskEvent) {
                let task: Task = self.into();
                (Some(TaskNames::of_task(&task)), TaskEvent::Created(Arc::new(task)))
            }
        }

        #[derive(Deserialize)]
        struct StatusMembers {
            $(#[serde(default = $unset)])?
            state: $State,
            $(#[serde($alias = "update")])?
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
        #[serde(rename_all = "camelCase")]
        struct ArtifactMembers {
            $(#[serde($alias = "artifact_id")])?
            artifact_id: ArtifactId,
            #[serde(default, deserialize_with = "non_empty")]
            name: Option<String>,
            #[serde(default, deserialize_with = "non_empty")]
            description: Option<String>,
            #[serde(default, deserialize_with = "null_default")]
            parts: Vec<$Part>,
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
                    parts: artifact.parts.into_iter().map(Into::into).collect(),
                    metadata: artifact.metadata,
                    extensions: artifact.extensions,
                    unknown: artifact.unknown,
                }
            }
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct StatusUpdateMembers {
            #[serde(rename = "kind")]
            _kind: Option<IgnoredAny>,
            #[serde(rename = "final")]
            _final: Option<IgnoredAny>,
            $(#[serde($alias = "task_id")])?
            task_id: TaskId,
            $(#[serde($alias = "context_id")])?
            context_id: ContextId,
            status: StatusMembers,
            metadata: Option<Metadata>,
            #[serde(default, rename = "$unknown")]
            unknown: Unknown<StatusChange>,
        }

        impl StatusUpdateMembers {
            pub(super) fn into_event(self) -> (Option<TaskNames>, TaskEvent) {
                let change = StatusChange { status: self.status.into(), metadata: self.metadata, unknown: self.unknown };
                (Some(TaskNames::named(self.task_id, self.context_id)), TaskEvent::Status(change))
            }
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct ArtifactUpdateMembers {
            #[serde(rename = "kind")]
            _kind: Option<IgnoredAny>,
            $(#[serde($alias = "task_id")])?
            task_id: TaskId,
            $(#[serde($alias = "context_id")])?
            context_id: ContextId,
            artifact: ArtifactMembers,
            #[serde(default, deserialize_with = "null_default")]
            append: bool,
            #[serde(default, deserialize_with = "null_default")]
            $(#[serde($alias = "last_chunk")])?
            last_chunk: bool,
            metadata: Option<Metadata>,
            #[serde(default, rename = "$unknown")]
            unknown: Unknown<ArtifactChunk>,
        }

        impl ArtifactUpdateMembers {
            pub(super) fn into_event(self) -> (Option<TaskNames>, TaskEvent) {
                let chunk = ArtifactChunk {
                    artifact: Arc::new(self.artifact.into()),
                    append: self.append,
                    last_chunk: self.last_chunk,
                    metadata: self.metadata,
                    unknown: self.unknown,
                };
                (Some(TaskNames::named(self.task_id, self.context_id)), TaskEvent::Artifact(chunk))
            }
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct PageMembers {
            #[serde(default, deserialize_with = "null_default")]
            tasks: Vec<TaskMembers>,
            #[serde(default, deserialize_with = "null_default")]
            $(#[serde($alias = "next_page_token")])?
            next_page_token: String,
            #[serde(default, deserialize_with = "null_default")]
            $(#[serde($alias = "page_size")])?
            page_size: i32,
            #[serde(default, deserialize_with = "null_default")]
            $(#[serde($alias = "total_size")])?
            total_size: i32,
        }

        impl From<PageMembers> for TaskPage {
            fn from(page: PageMembers) -> Self {
                let tasks: Vec<NamedTask> = page.tasks.into_iter().map(TaskMembers::into_shown).collect();
                Self {
                    include_artifacts: tasks.iter().any(|shown| !shown.task.artifacts.is_empty()),
                    tasks,
                    next_page_token: page.next_page_token,
                    page_size: page.page_size,
                    total_size: page.total_size,
                }
            }
        }
    };
}

pub(super) use object_members;

/// What a message says in `kind`, if it says anything.
#[derive(Deserialize)]
enum MessageKind {
    #[serde(rename = "message")]
    Message,
}

object_members! {
    state: State,
    role: Speaker,
    part: Read<false>,
    kind: MessageKind,
    references: Vec<TaskId>,
    parts: "parts"
}
