//! What can happen to a task: the entries of its log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::unknown::open_object;
use crate::{ArtifactChunk, Message, Metadata, Task, TaskStatus};

/// One entry of a task's log. Everything a task is follows from its entries in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskEvent {
    /// The task as it was made. Always the first entry of a task.
    Created(Arc<Task>),
    /// The caller said something more. Part of the history; streams do not show it.
    Said(Arc<Message>),
    /// The state of the task changed.
    Status(StatusChange),
    /// The agent produced an artifact, or more of one.
    Artifact(ArtifactChunk),
    /// The agent answered with a message instead of working on a task. The only entry of its log.
    Replied(Arc<Message>),
}

open_object! {
    /// A new status of a task.
    pub struct StatusChange {
        /// The status.
        pub status: TaskStatus,
        /// The metadata of the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
    }
    knows ["kind", "id", "taskId", "task_id", "contextId", "context_id", "status", "final", "artifact", "metadata"]
}
