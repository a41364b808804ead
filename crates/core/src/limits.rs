//! The named limits on what tasks, messages and streams may be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Part of the `[limits]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskLimits {
    /// Parts of one message.
    pub message_parts: usize,
    /// Tasks one message may point at.
    pub reference_tasks: usize,
    /// Bytes of one `metadata` object, and of the unknown members of one object.
    pub metadata_bytes: usize,
    /// Bytes of an id a caller chooses: message, context, task, idempotency key.
    pub id_bytes: usize,
    /// Entries in one task's log.
    pub task_events: u64,
    /// Weight of one task's log in bytes.
    pub task_bytes: u64,
    /// Updates of one task that wait for the store before its runner has to wait too.
    pub task_updates_pending: usize,
    /// Follow-up messages of one task that wait for its runner.
    pub task_messages_queued: usize,
    /// Open streams of one caller.
    pub streams_per_caller: usize,
    /// Open streams of one task.
    pub streams_per_task: usize,
    /// Open streams of the node.
    pub streams_per_node: usize,
    /// Events a stream holds in memory for one reader; a reader further behind is served from the log.
    pub stream_buffer_events: usize,
    /// Bytes that the tails of all open tasks hold in memory for readers that keep up.
    pub stream_buffer_bytes: u64,
    /// Weight of the tasks in one page of a list. A larger task is a page of its own.
    pub answer_bytes: u64,
    /// Bytes of answers and events that one caller has not read yet.
    pub answering_bytes_per_caller: u64,
    /// The same for all callers together.
    pub answering_bytes_per_node: u64,
    /// The largest page of a list.
    pub page_size: i32,
    /// The page size of a caller who names none.
    pub page_size_default: i32,
    /// How long a runner may take to stop by itself after a cancel.
    pub cancel_grace_ms: u64,
    /// How long a call waits for room in a budget, where `overflow` lets it wait.
    pub budget_wait_ms: u64,
    /// How long the tasks below a cancelled one are given to end, level by level.
    pub cascade_ms: u64,
    /// How long an idempotency key is remembered.
    pub idempotency_hours: u32,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            message_parts: 256,
            reference_tasks: 16,
            metadata_bytes: 64 * 1024,
            id_bytes: 256,
            task_events: 100_000,
            task_bytes: 64 * 1024 * 1024,
            task_updates_pending: 1024,
            task_messages_queued: 16,
            streams_per_caller: 32,
            streams_per_task: 16,
            streams_per_node: 10_000,
            stream_buffer_events: 256,
            stream_buffer_bytes: 64 * 1024 * 1024,
            // With what its encoding adds, such a page fits into the 4 MiB that gRPC clients take.
            answer_bytes: 2 * 1024 * 1024,
            answering_bytes_per_caller: 32 * 1024 * 1024,
            answering_bytes_per_node: 256 * 1024 * 1024,
            page_size: 100,
            page_size_default: 50,
            cancel_grace_ms: 2_000,
            budget_wait_ms: 30_000,
            cascade_ms: 10_000,
            idempotency_hours: 24,
        }
    }
}

impl TaskLimits {
    pub(crate) fn cancel_grace(&self) -> Duration {
        Duration::from_millis(self.cancel_grace_ms)
    }

    pub(crate) fn budget_wait(&self) -> Duration {
        Duration::from_millis(self.budget_wait_ms)
    }

    pub(crate) fn cascade(&self) -> Duration {
        Duration::from_millis(self.cascade_ms)
    }
}
