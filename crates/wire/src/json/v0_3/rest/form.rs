//! The JSON form of the 0.3 proto: no `kind`, the proto's names, states and roles by their enum names.

use chancery_protocol::{Part, Role, TaskState};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::part::PartView;
use crate::json::v0_3::form::Form;

/// The form of REST.
pub(super) struct ProtoForm;

impl Form for ProtoForm {
    type State = ProtoState;
    type Role = Role;
    type PartView<'a> = PartView<'a>;
    const HAS_KIND: bool = false;
    const HAS_PROTO_NAMES: bool = true;

    fn state(state: TaskState) -> ProtoState {
        ProtoState(state)
    }

    fn role(role: Role) -> Role {
        role
    }

    fn part(part: &Part) -> PartView<'_> {
        PartView(part)
    }
}

/// The one state whose name 1.0 changed.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

#[derive(Clone, Copy, Debug)]
pub(super) struct ProtoState(pub(in crate::json::v0_3) TaskState);

impl Serialize for ProtoState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(if self.0 == TaskState::Canceled { CANCELLED } else { self.0.name() })
    }
}

impl<'de> Deserialize<'de> for ProtoState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Named {
            Name(String),
            Number(i64),
        }

        let expected = &"a task state such as TASK_STATE_WORKING";
        match Named::deserialize(from)? {
            Named::Name(name) => {
                let found = TaskState::ALL.into_iter().find(|state| state.name() == name);
                let found = found.or_else(|| (name == CANCELLED).then_some(TaskState::Canceled));
                found.ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&name), expected))
            }
            Named::Number(number) => {
                TaskState::from_number(number).ok_or_else(|| de::Error::invalid_value(de::Unexpected::Signed(number), expected))
            }
        }
        .map(Self)
    }
}
