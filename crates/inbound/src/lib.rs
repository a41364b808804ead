//! How calls come in: listeners, one file per transport, context, limits, admin API.

mod admin;
mod authenticate;
mod body;
mod buckets;
mod card;
mod catalog;
mod codecs;
mod context;
mod doors;
mod entrance;
mod grpc;
mod json_rpc;
mod limits;
mod listen;
mod listening;
mod opening;
mod origin;
mod rates;
mod rendered;
mod response;
mod rest;
mod signing;
mod signposts;
mod sse;
mod stall;
mod tls;

pub use card::Headerless;
pub use chancery_wire::JsonLimits;
pub use doors::{DoorSettings, Doors};
pub use entrance::Entrance;
pub use limits::InboundLimits;
pub use listen::serve;
pub use origin::Origin;
pub use response::DoorBody;
pub use signposts::{HostSign, Signposts};
pub use tls::{ClientCertificates, Tls, TlsError, TlsMaterial};
