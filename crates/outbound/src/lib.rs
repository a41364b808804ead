//! How calls go out: the client behind the command line, and the guarded client behind everything the server calls.

mod admin;
mod card;
pub mod client;
pub mod discovery;
mod error;
mod frames;
pub mod guard;
mod json_rpc;
mod jwks;
mod peer;
pub mod push;
pub mod remote;
mod sse;
pub mod swp;
mod terms;
mod trust;

pub use admin::{Admin, AdminEvents};
pub use card::FetchedCard;
pub use client::{AgentClient, ClientError, ClientLimits, Credentials, EventStream, Heard, Interface, RateLimit};
pub use error::CallError;
pub use guard::{Blocked, Fetch, Fetched, Guard, GuardConfig, GuardError, GuardedClient};
pub use json_rpc::{Answered, Conditions, Events, Streamed, new_message_id};
pub use jwks::{JwksCache, JwksError, JwksLimits};
pub use peer::Peer;
pub use sse::{Parser, ServerSentEvent, TooLong};
pub use terms::{ClientCertificate, RequestSigner, Terms, Trust};
