//! What a stream shows.

use std::sync::Arc;

use chancery_protocol::{ArtifactChunk, Error, StatusChange, TaskEvent};

use super::proto::{StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent, stream_response::Payload};
use super::{artifact, message, task};
use crate::Face;
use crate::json::v0_3::state::is_final;
use crate::pb::fields::{Within, metadata, of_peer, required, text, to_metadata};

/// The event as a stream shows it; nothing for what a stream does not show.
pub fn write(face: &Face, event: &TaskEvent) -> Option<StreamResponse> {
    let payload = match event {
        TaskEvent::Created(task) => Payload::Task(task::write(task)),
        TaskEvent::Said(_) => return None,
        TaskEvent::Status(change) => Payload::StatusUpdate(write_status(face, change)),
        TaskEvent::Artifact(chunk) => Payload::ArtifactUpdate(write_artifact(face, chunk)),
        TaskEvent::Replied(message) => Payload::Msg(message::write(message)),
    };
    Some(StreamResponse { payload: Some(payload) })
}

/// Reads one event of a peer's stream, with the names it gives its task.
pub fn read(response: StreamResponse) -> Result<(Option<Face>, TaskEvent), Error> {
    of_peer(read_payload(response))
}

fn read_payload(response: StreamResponse) -> Result<(Option<Face>, TaskEvent), Error> {
    Ok(match required(response.payload, "payload")? {
        Payload::Task(task) => {
            let task = task::read(task).within("task")?;
            (Some(Face::of_task(&task)), TaskEvent::Created(Arc::new(task)))
        }
        Payload::Msg(message) => {
            let message = message::read(message).within("msg")?;
            (Face::of_message(&message), TaskEvent::Replied(Arc::new(message)))
        }
        Payload::StatusUpdate(update) => read_status(update).within("status_update")?,
        Payload::ArtifactUpdate(update) => read_artifact(update).within("artifact_update")?,
    })
}

fn read_status(update: TaskStatusUpdateEvent) -> Result<(Option<Face>, TaskEvent), Error> {
    let face = Face::named(text(update.task_id, "task_id")?, text(update.context_id, "context_id")?);
    let status = task::read_status(required(update.status, "status")?).within("status")?;
    let metadata = metadata(update.metadata, "metadata")?;
    Ok((Some(face), TaskEvent::Status(StatusChange { status, metadata, unknown: Default::default() })))
}

fn write_status(face: &Face, change: &StatusChange) -> TaskStatusUpdateEvent {
    TaskStatusUpdateEvent {
        task_id: face.task_id.to_string(),
        context_id: face.context_id.to_string(),
        status: Some(task::write_status(&change.status)),
        r#final: is_final(change.status.state),
        metadata: to_metadata(change.metadata.as_ref()),
    }
}

fn read_artifact(update: TaskArtifactUpdateEvent) -> Result<(Option<Face>, TaskEvent), Error> {
    let face = Face::named(text(update.task_id, "task_id")?, text(update.context_id, "context_id")?);
    let chunk = ArtifactChunk {
        artifact: Arc::new(artifact::read(required(update.artifact, "artifact")?).within("artifact")?),
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: metadata(update.metadata, "metadata")?,
        unknown: Default::default(),
    };
    Ok((Some(face), TaskEvent::Artifact(chunk)))
}

fn write_artifact(face: &Face, chunk: &ArtifactChunk) -> TaskArtifactUpdateEvent {
    TaskArtifactUpdateEvent {
        task_id: face.task_id.to_string(),
        context_id: face.context_id.to_string(),
        artifact: Some(artifact::write(&chunk.artifact)),
        append: chunk.append,
        last_chunk: chunk.last_chunk,
        metadata: to_metadata(chunk.metadata.as_ref()),
    }
}
