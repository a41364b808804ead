//! States and roles in lower case, as 0.3 and the original name them.

use chancery_protocol::{Role, TaskState};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::codec::TaskNames;

/// A task state to write or read by its 0.3 name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State(pub TaskState);

pub(crate) const fn name(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// The stream of a call ends here: the task is over, or it is the caller's turn.
pub(crate) const fn is_final(state: TaskState, face: &TaskNames) -> bool {
    state.is_terminal() || (state.is_interrupted() && !face.stays_open)
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(name(self.0))
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let found = TaskState::ALL.into_iter().find(|state| name(*state) == text);
        found.map(Self).ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &"a task state such as working"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Speaker {
    User,
    Agent,
}

impl From<Role> for Speaker {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

impl From<Speaker> for Role {
    fn from(speaker: Speaker) -> Self {
        match speaker {
            Speaker::User => Self::User,
            Speaker::Agent => Self::Agent,
        }
    }
}
