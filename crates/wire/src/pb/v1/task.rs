//! Tasks and their status.

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
    proto::Task {
        artifacts: task.artifacts.iter().map(|artifact| artifact::write(artifact)).collect(),
        ..write_without_artifacts(task)
    }
}

pub(super) fn write_without_artifacts(task: &Task) -> proto::Task {
    proto::Task {
        id: task.id.to_string(),
        context_id: task.context_id.to_string(),
        status: Some(write_status(&task.status)),
        artifacts: Vec::new(),
        history: task.history.iter().map(|message| message::write(message)).collect(),
        metadata: to_metadata(task.metadata.as_ref()),
    }
}

pub(super) fn read_status(status: proto::TaskStatus) -> Result<TaskStatus, Error> {
    Ok(TaskStatus {
        state: state(status.state, "state")?,
        message: status.message.map(|message| message::read(message).map(Arc::new)).transpose().within("message")?,
        timestamp: status.timestamp.map(|time| timestamp(time, "timestamp")).transpose()?,
        unknown: Default::default(),
    })
}

pub(super) fn write_status(status: &TaskStatus) -> proto::TaskStatus {
    proto::TaskStatus {
        state: status.state.number(),
        message: status.message.as_deref().map(message::write),
        timestamp: status.timestamp.map(to_timestamp),
    }
}
