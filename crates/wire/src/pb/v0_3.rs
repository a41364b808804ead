//! A2A 0.3 as protobuf: package `a2a.v1`.

pub mod card;
mod names;
mod part;
pub mod peer;
mod push;
pub mod reply;
pub mod request;

pub use super::generated::a2a_v1 as proto;

// The JSON form of 0.3 has references to other tasks, its protobuf form does not.
super::objects::object_conversions! {
    parts: content,
    status_message: update,
    payload: Msg as "msg",
    is_final: crate::json::v0_3::state::is_final,
}
