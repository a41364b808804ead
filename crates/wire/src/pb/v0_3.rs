//! A2A 0.3 as protobuf: package `a2a.v1`.

pub use super::generated::a2a_v1 as proto;
