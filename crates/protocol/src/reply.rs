//! The answers to a caller: one variant per kind.

use std::sync::Arc;

use crate::{AgentCard, Dialect, Message, PushConfig, Task};

/// The answer to a request. Its variant follows from the operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To a sent message: the task it made or went on with, or a message alone.
    Sent(Sent),
    /// One task.
    Task(NamedTask),
    /// A page of tasks.
    Tasks(TaskPage),
    /// The registration of a webhook.
    PushConfig(PushConfig),
    /// A page of registrations of webhooks.
    PushConfigs(PushConfigPage),
    /// The registration is deleted, or there was none.
    PushConfigDeleted,
    /// The extended card of the agent.
    Card(Arc<AgentCard>),
}

/// The answer to a sent message.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// The task that the message started or continued.
    Task(NamedTask),
    /// A message of the agent, without a task.
    Message(Arc<Message>),
}

/// A task with what the older dialects need to show it under the name its caller knows.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTask {
    /// The task.
    pub task: Arc<Task>,
    /// The dialect of the call that made the task.
    pub dialect: Dialect,
    /// The client's own name for it, in the original protocol.
    pub client_task_id: Option<Arc<str>>,
}

/// A page of a list of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks of the page.
    pub tasks: Vec<NamedTask>,
    /// Empty on the last page.
    pub next_page_token: String,
    /// The largest number of tasks that the page can have.
    pub page_size: i32,
    /// Matches before paging.
    pub total_size: i32,
    /// Whether the caller requested artifacts: then the member is there even when it is empty.
    pub include_artifacts: bool,
}

/// A page of the webhooks of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigPage {
    /// The registrations of the page.
    pub configs: Vec<PushConfig>,
    /// The token of the next page. Empty on the last page.
    pub next_page_token: String,
}
