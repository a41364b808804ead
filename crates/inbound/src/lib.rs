//! How calls come in: listeners, one file per transport, context, limits, admin API.

mod admin;
mod body;
mod buckets;
mod card;
mod codecs;
mod context;
mod doors;
mod grpc;
mod json_rpc;
mod limits;
mod listen;
mod listening;
mod opening;
mod response;
mod rest;
mod sse;
mod stall;

pub use card::Headerless;
pub use chancery_wire::JsonLimits;
pub use doors::{DoorSettings, Doors};
pub use limits::InboundLimits;
pub use listen::serve;
pub use response::DoorBody;
