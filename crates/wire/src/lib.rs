//! Bytes to model and back: JSON per version, protobuf, JSON-RPC, the REST table, SSE, SWP and the error table.

mod codec;
pub mod errors;
mod frames;
pub mod json;
pub mod json_rpc;
mod notification;
#[cfg(feature = "protobuf")]
pub mod pb;
pub mod rest;
mod scan;
pub mod swp;
pub mod tolerant;

pub use codec::{Codec, TaskNames};
pub use frames::{Frames, Payload};
pub use notification::{Notification, NotificationForm, read_notification};
pub use scan::{JsonLimits, scan};
