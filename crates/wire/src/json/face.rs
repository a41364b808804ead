//! The names of a task as an event of it tells them.

use chancery_protocol::{ContextId, Message, Task, TaskId};

use crate::codec::TaskNames;

impl TaskNames {
    pub(crate) fn named(task_id: TaskId, context_id: ContextId) -> Self {
        Self { task_id, context_id, client_task_id: None, artifacts: Vec::new(), stays_open: false }
    }

    pub(crate) fn of_task(task: &Task) -> Self {
        Self::named(task.id.clone(), task.context_id.clone())
    }

    /// A message alone may belong to no task.
    pub(crate) fn of_message(message: &Message) -> Option<Self> {
        Some(Self::named(message.task_id.clone()?, message.context_id.clone()?))
    }
}
