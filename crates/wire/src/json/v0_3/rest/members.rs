//! What is read of 0.3 objects over REST.

use chancery_protocol::{Role, TaskId, TaskState};
use serde::Deserialize;

use super::form::ProtoState;
use super::part::PartRead;
use crate::json::v0_3::members::object_members;

object_members! {
    state: ProtoState or "unset",
    role: Role,
    part: PartRead,
    kind: IgnoredAny,
    references: NoReferences,
    parts: "content",
    also by alias
}

/// ProtoJSON leaves the state with number zero out.
fn unset() -> ProtoState {
    ProtoState(TaskState::Unspecified)
}

/// The proto has no references to other tasks, so a value there is not one.
#[derive(Default, Deserialize)]
struct NoReferences(#[allow(dead_code)] IgnoredAny);

impl From<NoReferences> for Vec<TaskId> {
    fn from(_: NoReferences) -> Self {
        Self::new()
    }
}
