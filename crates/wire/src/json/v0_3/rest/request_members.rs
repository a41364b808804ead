//! What 0.3 REST callers send and list by.

use serde::{Deserialize, Serialize};

use super::form::ProtoState;
use super::members::MessageMembers;
use super::part::PartRead;
use crate::json::v0_3::request_members::request_members;

request_members! {
    state: ProtoState,
    part: PartRead,
    push: "pushNotification",
    // A proto boolean that is left out is false: callers of this form wait only when they say so.
    waits: false,
    also by alias
}
