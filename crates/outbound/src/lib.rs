//! How calls go out: the guarded client behind everything that the server and the command line call.

mod admin;
pub mod client;
pub mod discovery;
mod error;
pub mod guard;
mod jwks;
pub mod push;
pub mod remote;
mod sse;
#[cfg(feature = "swp")]
pub mod swp;
mod terms;
mod typed;

pub use admin::{Admin, AdminEvents, ScopeName};
pub use client::{
    AgentClient, AgentCredentials, ClientError, ClientLimits, EventStream, Interface, RateLimit, StreamedEvent, new_message_id,
};
pub use error::CallError;
pub use guard::{Blocked, Fetch, Fetched, Guard, GuardConfig, GuardError, GuardedClient};
pub use jwks::{JwksCache, JwksError, JwksLimits};
pub use sse::{Parser, ServerSentEvent, TooLong};
pub use terms::{ClientCertificate, ConnectionTerms, RequestSigner, TrustedRoots};
pub use typed::{FetchedCard, TypedAgent, TypedUrl, WantedInterface};
