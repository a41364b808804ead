//! The JSON forms of 0.3: the same objects, tagged, named and spelled in three ways.

use chancery_protocol::{Part, Role, TaskState};
use serde::Serialize;

use super::state::{Speaker, State};
use crate::json::part::{Tagged, by_kind, untagged};

/// What sets one form apart from the others when it is written. Views take it as their parameter.
pub(super) trait Form {
    type State: Serialize;
    type Role: Serialize;
    type PartView<'a>: Serialize;

    /// Whether an object says in `kind` what it is.
    const HAS_KIND: bool;

    /// Whether members have the names of the 0.3 proto, such as `content` for the parts of a message.
    const HAS_PROTO_NAMES: bool;

    fn state(state: TaskState) -> Self::State;
    fn role(role: Role) -> Self::Role;
    fn part(part: &Part) -> Self::PartView<'_>;
}

/// The form of JSON-RPC: states and roles are lower-case words, objects and parts have a `kind`. `WRAPPED` leaves out the
/// `kind` and writes the parts of 1.0.
pub(super) struct RpcForm<const WRAPPED: bool>;

pub(super) type TaggedForm = RpcForm<false>;

/// As fasta2a's client reads it.
pub(super) type WrappedForm = RpcForm<true>;

impl<const WRAPPED: bool> Form for RpcForm<WRAPPED> {
    type State = State;
    type Role = Speaker;
    type PartView<'a> = Tagged<'a>;
    const HAS_KIND: bool = !WRAPPED;
    const HAS_PROTO_NAMES: bool = false;

    fn state(state: TaskState) -> State {
        State(state)
    }

    fn role(role: Role) -> Speaker {
        role.into()
    }

    fn part(part: &Part) -> Tagged<'_> {
        if WRAPPED { untagged(part) } else { by_kind(part) }
    }
}
