//! A2A 0.3 as protobuf: package `a2a.v1`.

mod artifact;
pub mod card;
pub mod event;
mod message;
mod names;
mod part;
pub mod peer;
mod push;
pub mod reply;
pub mod request;
mod task;

pub use super::generated::a2a_v1 as proto;
