//! The one error a packet can end in: a kind for machines, a sentence for people.

use std::fmt;

use serde::Serialize;

/// Kinds may be added; readers must accept unknown ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AdapterErrorKind {
    /// Frozen, and never used by this adapter.
    Config,
    /// The packet breaks the contract: it cannot be read, is over a cap, or lacks something required.
    Measurement,
    /// The keeper of raw packets failed. The adapter itself never returns this.
    Infrastructure,
    UnsupportedProtocolVersion,
    /// Strict conversion would have had to make a generic message of an unknown event type.
    StrictLossinessViolation,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdapterError {
    pub kind: AdapterErrorKind,
    pub message: String,
}

impl AdapterError {
    pub fn new(kind: AdapterErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub fn measurement(message: impl Into<String>) -> Self {
        Self::new(AdapterErrorKind::Measurement, message)
    }

    pub(super) fn missing(field: &str) -> Self {
        Self::measurement(format!("missing required field: {field}"))
    }
}

/// The kind under its name in code, then the sentence: `Measurement: protocol must be 'a2a'`.
impl fmt::Display for AdapterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for AdapterError {}
