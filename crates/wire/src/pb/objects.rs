//! Messages, artifacts, tasks and events to and from protobuf, as one macro for both schemas: they differ in a few names only.

/// Declares the modules `message`, `artifact`, `task` and `event` of one schema, over its `proto` and `part`:
///
/// - `parts`: the field of a message that has its parts.
/// - `references`: the field of a message that has the tasks it refers to, if there is one.
/// - `status_message`: the field of a status that has its message.
/// - `payload`: the variant of a stream's payload that is a message, and its name in the schema.
/// - `is_final`: what says that the stream of a call ends with a state, if the schema tells that.
macro_rules! object_conversions {
    (
        parts: $parts:ident,
        $(references: $references:ident,)?
        status_message: $status_message:ident,
        payload: $Payload:ident as $payload:literal,
        $(is_final: $is_final:path,)?
    ) => {
        mod message {
            use chancery_protocol::{Error, Message};

            use super::{part, proto};
            use crate::pb::fields::{list, metadata, optional, or_empty, role, task_ids, text, to_metadata, to_role};

            pub(super) fn read(message: proto::Message) -> Result<Message, Error> {
                Ok(Message {
                    message_id: text(message.message_id, "message_id")?,
                    context_id: optional(message.context_id),
                    task_id: optional(message.task_id),
                    role: role(message.role, "role")?,
                    parts: list(message.$parts, stringify!($parts), part::read)?,
                    metadata: metadata(message.metadata, "metadata")?,
                    extensions: message.extensions,
                    reference_task_ids: task_ids([$(message.$references)?]),
                    unknown: Default::default(),
                })
            }

            pub(super) fn write(message: &Message) -> proto::Message {
                proto::Message {
                    message_id: message.message_id.to_string(),
                    context_id: or_empty(message.context_id.as_ref()),
                    task_id: or_empty(message.task_id.as_ref()),
                    role: to_role(message.role),
                    $parts: message.parts.iter().map(part::write).collect(),
                    metadata: to_metadata(message.metadata.as_ref()),
                    extensions: message.extensions.clone(),
                    $($references: message.reference_task_ids.iter().map(ToString::to_string).collect(),)?
                }
            }
        }

        mod artifact {
            use chancery_protocol::{Artifact, Error};

            use super::{part, proto};
            use crate::pb::fields::{list, metadata, optional, or_empty, text, to_metadata};

            pub(super) fn read(artifact: proto::Artifact) -> Result<Artifact, Error> {
                Ok(Artifact {
                    artifact_id: text(artifact.artifact_id, "artifact_id")?,
                    name: optional(artifact.name),
                    description: optional(artifact.description),
                    parts: list(artifact.parts, "parts", part::read)?,
                    metadata: metadata(artifact.metadata, "metadata")?,
                    extensions: artifact.extensions,
                    unknown: Default::default(),
                })
            }

            pub(super) fn write(artifact: &Artifact) -> proto::Artifact {
                proto::Artifact {
                    artifact_id: artifact.artifact_id.to_string(),
                    name: or_empty(artifact.name.as_ref()),
                    description: or_empty(artifact.description.as_ref()),
                    parts: artifact.parts.iter().map(part::write).collect(),
                    metadata: to_metadata(artifact.metadata.as_ref()),
                    extensions: artifact.extensions.clone(),
                }
            }
        }

        mod task {
            use std::sync::Arc;

            use chancery_protocol::{ContextId, Error, Task, TaskStatus};

            use super::{artifact, message, proto};
            use crate::pb::fields::{Within, list, metadata, required, state, text, timestamp, to_metadata, to_timestamp};

            pub(super) fn read(task: proto::Task) -> Result<Task, Error> {
                Ok(Task {
                    id: text(task.id, "id")?,
                    // The schema lets a server leave it out.
                    context_id: ContextId::from(task.context_id),
                    status: read_status(required(task.status, "status")?).within("status")?,
                    artifacts: list(task.artifacts, "artifacts", |item| artifact::read(item).map(Arc::new))?,
                    history: list(task.history, "history", |item| message::read(item).map(Arc::new))?,
                    metadata: metadata(task.metadata, "metadata")?,
                    unknown: Default::default(),
                })
            }

            pub(super) fn write(task: &Task) -> proto::Task {
                write_with(task, write_artifacts(task))
            }

            /// Writes a task with these artifacts. A page of tasks has none unless they were asked for.
            pub(super) fn write_with(task: &Task, artifacts: Vec<proto::Artifact>) -> proto::Task {
                proto::Task {
                    id: task.id.to_string(),
                    context_id: task.context_id.to_string(),
                    status: Some(write_status(&task.status)),
                    artifacts,
                    history: task.history.iter().map(|message| message::write(message)).collect(),
                    metadata: to_metadata(task.metadata.as_ref()),
                }
            }

            pub(super) fn write_artifacts(task: &Task) -> Vec<proto::Artifact> {
                task.artifacts.iter().map(|artifact| artifact::write(artifact)).collect()
            }

            pub(super) fn read_status(status: proto::TaskStatus) -> Result<TaskStatus, Error> {
                let message = status.$status_message.map(|message| message::read(message).map(Arc::new));
                Ok(TaskStatus {
                    state: state(status.state, "state")?,
                    message: message.transpose().within(stringify!($status_message))?,
                    timestamp: status.timestamp.map(|time| timestamp(time, "timestamp")).transpose()?,
                    unknown: Default::default(),
                })
            }

            pub(super) fn write_status(status: &TaskStatus) -> proto::TaskStatus {
                proto::TaskStatus {
                    state: status.state.number(),
                    $status_message: status.message.as_deref().map(message::write),
                    timestamp: status.timestamp.map(to_timestamp),
                }
            }
        }

        pub mod event {
            //! What a stream shows.

            use std::sync::Arc;

            use chancery_protocol::{ArtifactChunk, Error, StatusChange, TaskEvent};

            use super::proto::{StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent, stream_response::Payload};
            use super::{artifact, message, task};
            use crate::TaskNames;
            use crate::pb::fields::{Within, metadata, of_peer, required, text, to_metadata};

            /// The event as a stream shows it; nothing for what a stream does not show.
            pub fn write(face: &TaskNames, event: &TaskEvent) -> Option<StreamResponse> {
                let payload = match event {
                    TaskEvent::Created(task) => Payload::Task(task::write(task)),
                    TaskEvent::Said(_) => return None,
                    TaskEvent::Status(change) => Payload::StatusUpdate(write_status(face, change)),
                    TaskEvent::Artifact(chunk) => Payload::ArtifactUpdate(write_artifact(face, chunk)),
                    TaskEvent::Replied(message) => Payload::$Payload(message::write(message)),
                };
                Some(StreamResponse { payload: Some(payload) })
            }

            /// Reads one event of a peer's stream, with the names it gives its task.
            pub fn read(response: StreamResponse) -> Result<(Option<TaskNames>, TaskEvent), Error> {
                of_peer(read_payload(response))
            }

            fn read_payload(response: StreamResponse) -> Result<(Option<TaskNames>, TaskEvent), Error> {
                Ok(match required(response.payload, "payload")? {
                    Payload::Task(task) => {
                        let task = task::read(task).within("task")?;
                        (Some(TaskNames::of_task(&task)), TaskEvent::Created(Arc::new(task)))
                    }
                    Payload::$Payload(message) => {
                        let message = message::read(message).within($payload)?;
                        (TaskNames::of_message(&message), TaskEvent::Replied(Arc::new(message)))
                    }
                    Payload::StatusUpdate(update) => read_status(update).within("status_update")?,
                    Payload::ArtifactUpdate(update) => read_artifact(update).within("artifact_update")?,
                })
            }

            fn read_status(update: TaskStatusUpdateEvent) -> Result<(Option<TaskNames>, TaskEvent), Error> {
                let face = TaskNames::named(text(update.task_id, "task_id")?, text(update.context_id, "context_id")?);
                let status = task::read_status(required(update.status, "status")?).within("status")?;
                let metadata = metadata(update.metadata, "metadata")?;
                Ok((Some(face), TaskEvent::Status(StatusChange { status, metadata, unknown: Default::default() })))
            }

            fn write_status(face: &TaskNames, change: &StatusChange) -> TaskStatusUpdateEvent {
                TaskStatusUpdateEvent {
                    task_id: face.task_id.to_string(),
                    context_id: face.context_id.to_string(),
                    status: Some(task::write_status(&change.status)),
                    $(r#final: $is_final(change.status.state, face),)?
                    metadata: to_metadata(change.metadata.as_ref()),
                }
            }

            fn read_artifact(update: TaskArtifactUpdateEvent) -> Result<(Option<TaskNames>, TaskEvent), Error> {
                let face = TaskNames::named(text(update.task_id, "task_id")?, text(update.context_id, "context_id")?);
                let chunk = ArtifactChunk {
                    artifact: Arc::new(artifact::read(required(update.artifact, "artifact")?).within("artifact")?),
                    append: update.append,
                    last_chunk: update.last_chunk,
                    metadata: metadata(update.metadata, "metadata")?,
                    unknown: Default::default(),
                };
                Ok((Some(face), TaskEvent::Artifact(chunk)))
            }

            fn write_artifact(face: &TaskNames, chunk: &ArtifactChunk) -> TaskArtifactUpdateEvent {
                TaskArtifactUpdateEvent {
                    task_id: face.task_id.to_string(),
                    context_id: face.context_id.to_string(),
                    artifact: Some(artifact::write(&chunk.artifact)),
                    append: chunk.append,
                    last_chunk: chunk.last_chunk,
                    metadata: to_metadata(chunk.metadata.as_ref()),
                }
            }
        }
    };
}

pub(super) use object_conversions;
