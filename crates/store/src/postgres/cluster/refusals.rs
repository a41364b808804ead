//! What the store says to a member that may not write what it was asked to.

use chancery_core::{ForwardedCallNumber, StoreError, StoreTrouble};
use chancery_protocol::TaskId;

/// The refusal of an append by a node that does not hold the task.
pub(in crate::postgres) fn held_elsewhere(task: &TaskId, holder: Option<i64>) -> StoreError {
    let message = match holder {
        Some(node) => format!("node {node} holds task {task}, so this node cannot append to it"),
        None => format!("no node holds task {task}; a node has to take it before it appends to it"),
    };
    StoreError::new(message).of_trouble(StoreTrouble::HeldElsewhere)
}

/// The refusal of an append about a call that does not wait any more.
pub(in crate::postgres) fn call_withdrawn(number: ForwardedCallNumber) -> StoreError {
    let message = format!("forwarded call {} does not wait for an answer any more, so nothing was written for it", number.0);
    StoreError::new(message).of_trouble(StoreTrouble::CallWithdrawn)
}

/// The refusal of a new task by a node that has left.
pub(in crate::postgres) fn has_left() -> StoreError {
    StoreError::new("this node has left the cluster and makes no tasks any more").of_trouble(StoreTrouble::Unavailable)
}
