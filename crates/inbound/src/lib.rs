//! How calls come in: listeners, one file per transport, context, limits.

mod accept;
mod authenticate;
mod body;
mod buckets;
mod card;
mod card_hosts;
mod card_shapes;
mod catalog;
mod connections;
mod context;
mod doors;
mod doors_handle;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "grpc_absent.rs"]
mod grpc;
mod handshakes;
mod health;
mod hosts;
mod json_rpc;
mod keepalive;
mod limits;
mod listen;
mod listening;
mod misaddressed;
mod offloaded_parts;
mod opening;
mod origin;
mod own_hosts;
mod paging;
mod rates;
mod reading;
mod refused_names;
mod rendered;
mod response;
mod rest;
mod shared_events;
mod signing;
mod signposts;
mod sse;
mod stall;
mod stalled_streams;
#[cfg(feature = "swp")]
mod swp;
mod swp_settings;
mod tls;
mod trusted_proxies;
mod unwritten;
mod watched_io;

pub use card::Headerless;
pub use chancery_wire::JsonLimits;
pub use doors::{DoorSettings, Doors};
pub use doors_handle::DoorsHandle;
pub use limits::InboundLimits;
pub use listen::serve;
pub use origin::ConnectionOrigin;
pub use response::DoorBody;
pub use signposts::{HostSign, Signposts};
#[cfg(feature = "swp")]
pub use swp::serve_swp;
pub use swp_settings::{SwpRules, SwpSettings, Timestamping};
pub use tls::{ClientCertificates, Tls, TlsError, TlsMaterial};
pub use trusted_proxies::{ProxyNet, TrustedProxies};
