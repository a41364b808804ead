//! Bytes to model and back: JSON per version, protobuf, JSON-RPC, the REST table, SSE and the error table.

mod codec;
mod frames;
pub mod json;
pub mod pb;

pub use codec::{Codec, Face};
pub use frames::Frames;
