//! The JSON forms of the protocol, one codec each.

pub mod decode;
