//! A2A 1.0 as protobuf: package `lf.a2a.v1`.

mod artifact;
pub mod card;
pub mod event;
mod message;
pub mod peer;
mod push;
pub mod reply;
pub mod request;
pub(super) mod security;
mod task;

pub use super::generated::lf_a2a_v1 as proto;
