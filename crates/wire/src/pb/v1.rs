//! A2A 1.0 as protobuf: package `lf.a2a.v1`.

pub mod card;
mod part;
pub mod peer;
mod push;
pub mod reply;
pub mod request;
pub(super) mod security;

pub use super::generated::lf_a2a_v1 as proto;

super::objects::object_conversions! {
    parts: parts,
    references: reference_task_ids,
    status_message: message,
    payload: Message as "message",
}
