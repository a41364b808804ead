//! The answers to a caller: one variant per kind.

use std::sync::Arc;

use crate::{AgentCard, Dialect, Message, PushConfig, Task};

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To a sent message: the task it made or went on with, or a message alone.
    Sent(Sent),
    Task(NamedTask),
    Tasks(TaskPage),
    PushConfig(PushConfig),
    PushConfigs(PushConfigPage),
    PushConfigDeleted,
    Card(Arc<AgentCard>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    Task(NamedTask),
    Message(Arc<Message>),
}

/// A task with what the older dialects need to show it under the name its caller knows.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTask {
    pub task: Arc<Task>,
    /// The dialect of the call that made the task.
    pub dialect: Dialect,
    /// The client's own name for it, in the original protocol.
    pub client_task_id: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    pub tasks: Vec<NamedTask>,
    /// Empty on the last page.
    pub next_page_token: String,
    pub page_size: i32,
    /// Matches before paging.
    pub total_size: i32,
    /// Whether the caller requested artifacts: then the member is there even when it is empty.
    pub include_artifacts: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigPage {
    pub configs: Vec<PushConfig>,
    pub next_page_token: String,
}
