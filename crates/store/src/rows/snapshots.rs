//! Snapshots of tasks as JSON: the task without its artifacts, and the artifacts beside it.

use std::sync::Arc;

use chancery_core::{StoreError, TaskSnapshot};
use chancery_protocol::objects::from_json;
use chancery_protocol::{Artifact, Task, TaskId};
use serde::Serialize;

use super::UnreadableRow;

/// A snapshot in the form of its row. It is made where the snapshot is handed over, so that the one writer only writes.
#[derive(Debug)]
pub(crate) struct SnapshotRow {
    pub(crate) task: TaskId,
    pub(crate) seq: i64,
    pub(crate) body: String,
    pub(crate) artifacts: String,
}

impl SnapshotRow {
    pub(crate) fn new(snapshot: &TaskSnapshot, most: u64) -> Result<Self, StoreError> {
        let task = &snapshot.task;
        let body = Task { artifacts: Vec::new(), ..Task::clone(task) };
        let seq = snapshot.seq.min(most) as i64;
        Ok(Self { task: task.id.clone(), seq, body: encode(&body)?, artifacts: encode(&task.artifacts)? })
    }
}

fn encode(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::new(format!("a snapshot cannot be written as JSON: {error}")))
}

pub(crate) fn decode(seq: u64, body: &str, artifacts: Option<&str>) -> Result<TaskSnapshot, UnreadableRow> {
    let unreadable = |error: serde_json::Error| UnreadableRow::new(format!("a snapshot: {error}"));
    let mut task: Task = from_json(body).map_err(unreadable)?;
    if let Some(artifacts) = artifacts {
        let found: Vec<Artifact> = from_json(artifacts).map_err(unreadable)?;
        task.artifacts = found.into_iter().map(Arc::new).collect();
    }
    Ok(TaskSnapshot { seq, task: Arc::new(task) })
}
