//! Reading what a peer answered: the same typed reading, with the fault laid at the peer's door.

use chancery_protocol::{Error, ErrorKind, Operation};
use serde::de::DeserializeOwned;

use super::decode::from_json;

/// Reads a peer's reply, event or card.
pub(crate) fn from_peer<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_json(text).map_err(blame)
}

fn blame(error: Error) -> Error {
    Error { kind: ErrorKind::InvalidAgentResponse, ..error }
}

/// The peer answered well-formed JSON that says nothing this version knows.
pub(crate) fn not_understood(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidAgentResponse, what)
}

/// A stream's answers are events; there is no reply to read.
pub(crate) fn answers_with_events(operation: Operation) -> Error {
    Error::new(ErrorKind::InvalidAgentResponse, format!("{operation:?} is answered with events, not with one reply"))
}
