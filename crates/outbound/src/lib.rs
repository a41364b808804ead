//! How calls go out: the client behind the command line.

mod admin;
mod card;
mod error;
mod frames;
mod json_rpc;
mod peer;
mod sse;

pub use admin::{Admin, AdminEvents};
pub use card::FetchedCard;
pub use error::CallError;
pub use json_rpc::{Answered, Conditions, Events, Streamed, new_message_id};
pub use peer::Peer;
pub use sse::{Parser, ServerSentEvent, TooLong};
