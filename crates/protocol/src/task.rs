//! Tasks and the states they pass through.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::lenient::arcs;
use crate::unknown::open_object;
use crate::{Artifact, ContextId, Message, Metadata, TaskId, Timestamp};

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// No state. Only messages that leave it out have this value.
    Unspecified,
    /// The task is accepted and has not started.
    Submitted,
    /// The agent works on the task.
    Working,
    /// The task ended with success.
    Completed,
    /// The task ended with a failure.
    Failed,
    /// The task was canceled.
    Canceled,
    /// The task waits for a message of the caller.
    InputRequired,
    /// The agent declined the task.
    Rejected,
    /// The task waits for credentials.
    AuthRequired,
}

impl TaskState {
    /// Every state, in the order of its numbers.
    pub const ALL: [Self; 9] = [
        Self::Unspecified,
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// The number in protobuf, which is also its place in `ALL`.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the state of a number in protobuf.
    pub fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).copied()
    }

    /// Returns the name in JSON, such as `TASK_STATE_WORKING`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "TASK_STATE_UNSPECIFIED",
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }

    /// Nothing can happen to the task any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// The task waits for the caller.
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl Serialize for TaskState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TaskState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        enum_value(from, "a task state such as TASK_STATE_WORKING", |name, number| match (name, number) {
            (Some(name), _) => Self::ALL.into_iter().find(|state| state.name() == name),
            (_, Some(number)) => Self::from_number(number),
            _ => None,
        })
    }
}

/// A ProtoJSON enum: its name, or its number. Anything else is refused, never taken for "unset".
pub(crate) fn enum_value<'de, D, T, F>(from: D, expected: &'static str, find: F) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: Fn(Option<&str>, Option<i64>) -> Option<T>,
{
    struct Named<F>(&'static str, F);

    impl<'de, T, F: Fn(Option<&str>, Option<i64>) -> Option<T>> Visitor<'de> for Named<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
            (self.1)(Some(name), None).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self.0))
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            (self.1)(None, Some(number)).ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self.0))
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            let found = i64::try_from(number).ok().and_then(|number| (self.1)(None, Some(number)));
            found.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(number), &self.0))
        }
    }

    from.deserialize_any(Named(expected, find))
}

open_object! {
    /// The status of a task.
    pub struct TaskStatus {
        /// The state.
        pub state: TaskState,
        /// The message of the agent about the state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub message: Option<Arc<Message>>,
        /// The time of the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timestamp: Option<Timestamp>,
    }
    knows ["state", "message", "update", "timestamp"]
}

open_object! {
    /// A task of an agent.
    pub struct Task {
        /// The id of the task.
        pub id: TaskId,
        /// The context of the task.
        #[serde(alias = "context_id")]
        pub context_id: ContextId,
        /// The current status.
        pub status: TaskStatus,
        /// The results.
        #[serde(default, deserialize_with = "arcs", skip_serializing_if = "Vec::is_empty")]
        pub artifacts: Vec<Arc<Artifact>>,
        /// The messages of the task.
        #[serde(default, deserialize_with = "arcs", skip_serializing_if = "Vec::is_empty")]
        pub history: Vec<Arc<Message>>,
        /// The metadata of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<Metadata>,
    }
    knows ["kind", "id", "contextId", "context_id", "sessionId", "status", "artifacts", "history", "metadata"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_by_name_and_by_number() {
        for state in TaskState::ALL {
            let name = format!("\"{}\"", state.name());
            assert_eq!(serde_json::from_str::<TaskState>(&name).unwrap(), state);
            assert_eq!(serde_json::from_str::<TaskState>(&state.number().to_string()).unwrap(), state);
        }
        assert!(serde_json::from_str::<TaskState>("9").is_err());
        assert!(serde_json::from_str::<TaskState>("-1").is_err());
        assert!(serde_json::from_str::<TaskState>("\"working\"").is_err());
    }
}
