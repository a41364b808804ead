//! Events of the original protocol: a status or an artifact, never a task or a message.

use std::sync::Arc;

use chancery_protocol::{
    ArtifactChunk, ContextId, Error, Message, Metadata, StatusChange, Task, TaskEvent, TaskId, TaskStatus, Unknown,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::task::{ArtifactMembers, ArtifactView, StatusMembers, StatusView, stream_index};
use crate::codec::TaskNames;
use crate::frames::Frames;
use crate::json::peer::{from_peer, not_understood};
use crate::json::v0_3::state::is_final;

#[derive(Serialize)]
struct StatusUpdate<'a> {
    id: &'a str,
    status: StatusView<'a>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: Option<&'a Unknown<StatusChange>>,
}

#[derive(Serialize)]
struct ArtifactUpdate<'a, 'v> {
    id: &'a str,
    artifact: ArtifactView<'v>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(flatten)]
    unknown: Option<&'a Unknown<ArtifactChunk>>,
}

/// Writes the frames of one task under the name its caller knows.
pub(super) struct Writer<'a> {
    frames: &'a mut Frames,
    id: &'a str,
    face: &'a TaskNames,
}

impl<'a> Writer<'a> {
    pub(super) fn new(frames: &'a mut Frames, face: &'a TaskNames) -> Self {
        Self { frames, id: face.client_task_id.as_deref().unwrap_or(face.task_id.as_str()), face }
    }

    pub(super) fn event(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Created(task) => self.created(task),
            TaskEvent::Said(_) => {}
            TaskEvent::Status(change) => {
                self.status(&change.status, is_final(change.status.state, self.face), Some(change), true)
            }
            TaskEvent::Artifact(chunk) => {
                let index = stream_index(&chunk.artifact.artifact_id, &self.face.artifacts);
                let view = ArtifactView::chunk(index, &chunk.artifact, chunk.append, chunk.last_chunk);
                self.artifact(view, Some(chunk), true);
            }
            TaskEvent::Replied(message) => self.replied(message),
        }
    }

    /// A task is its status and its artifacts. The status comes first, unless the stream ends with it. A stream that
    /// opens with a task that waits goes on, so what it opens with is not final.
    fn created(&mut self, task: &Task) {
        let ends = task.status.state.is_terminal();
        if !ends {
            self.status(&task.status, false, None, task.artifacts.is_empty());
        }
        for (index, artifact) in (0_u32..).zip(&task.artifacts) {
            let last = index as usize + 1 == task.artifacts.len();
            self.artifact(ArtifactView::chunk(index, artifact, false, true), None, last && !ends);
        }
        if ends {
            self.status(&task.status, true, None, true);
        }
    }

    fn status(&mut self, status: &TaskStatus, ends: bool, change: Option<&StatusChange>, last: bool) {
        let metadata = change.and_then(|change| change.metadata.as_ref());
        let unknown = change.map(|change| &change.unknown);
        let update = StatusUpdate { id: self.id, status: status.into(), r#final: ends, metadata, unknown };
        self.frames.push_named("status", &update, last);
    }

    fn artifact(&mut self, artifact: ArtifactView<'_>, chunk: Option<&ArtifactChunk>, last: bool) {
        let metadata = chunk.and_then(|chunk| chunk.metadata.as_ref());
        let unknown = chunk.map(|chunk| &chunk.unknown);
        self.frames.push_named("artifact", &ArtifactUpdate { id: self.id, artifact, metadata, unknown }, last);
    }

    fn replied(&mut self, message: &Message) {
        let status = StatusView::said(message);
        let update = StatusUpdate { id: self.id, status, r#final: true, metadata: None, unknown: None };
        self.frames.push_named("status", &update, true);
    }
}

#[derive(Deserialize)]
struct EventMembers {
    id: String,
    status: Option<StatusMembers>,
    artifact: Option<ArtifactMembers>,
    #[serde(rename = "final")]
    _final: Option<IgnoredAny>,
    metadata: Option<Metadata>,
    #[serde(default, rename = "$unknown")]
    unknown: Unknown<StatusChange>,
}

pub(super) fn read(payload: &str) -> Result<(Option<TaskNames>, TaskEvent), Error> {
    let members: EventMembers = from_peer(payload)?;
    let (metadata, unknown) = (members.metadata, members.unknown);
    let event = match (members.status, members.artifact) {
        (Some(status), None) => TaskEvent::Status(StatusChange { status: status.into(), metadata, unknown }),
        (None, Some(artifact)) => {
            let (append, last_chunk) = (artifact.append, artifact.last_chunk);
            let (artifact, unknown) = (Arc::new(artifact.into()), Unknown::from_other(&unknown));
            TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata, unknown })
        }
        _ => return Err(not_understood("an event has exactly one of status and artifact")),
    };
    // Events do not say which session they belong to.
    let face = TaskNames {
        client_task_id: Some(members.id.as_str().into()),
        ..TaskNames::named(TaskId::from(members.id), ContextId::from(""))
    };
    Ok((Some(face), event))
}
