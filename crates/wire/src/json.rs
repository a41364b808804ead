//! The JSON forms of the protocol, one codec each.

pub mod card;
pub mod codecs;
pub mod decode;
mod face;
pub mod methods;
pub mod original;
pub mod paging;
pub(crate) mod part;
mod peer;
pub mod push;
pub mod v0_3;
pub mod v1_0;
mod write;
