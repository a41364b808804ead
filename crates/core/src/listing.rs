//! Which tasks a list has, and where a page of it begins.

use std::sync::Arc;

use chancery_protocol::{AgentName, Caller, ContextId, TaskId, TaskState, Timestamp};

use crate::ports::Stored;

/// Newest status first, ties by id descending. Logs that hold only a message are never listed.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// `None` sees every owner's tasks: for the operator only.
    pub owner: Option<Caller>,
    /// The tasks of one tenant's callers: for the operator only.
    pub tenant: Option<Arc<str>>,
    /// The tasks of callers with this name, of any tenant: for the operator only.
    pub caller: Option<Arc<str>>,
    /// The tasks of these agents; `None` lists those of all.
    pub agents: Option<Vec<AgentName>>,
    pub context_id: Option<ContextId>,
    pub state: Option<TaskState>,
    /// Inclusive.
    pub status_at_or_after: Option<Timestamp>,
}

/// Where the last page ended: the next one starts strictly after it in list order.
#[derive(Clone, Debug, PartialEq)]
pub struct ListCursor {
    pub status_at: Timestamp,
    pub id: TaskId,
}

#[derive(Clone, Debug)]
pub struct TaskListing {
    pub tasks: Vec<Stored>,
    /// All that match the filter, wherever the page starts.
    pub total: u64,
}
