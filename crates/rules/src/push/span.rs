//! Which entries of a log one delivery stands for.

use serde::{Deserialize, Serialize};

/// From the lane's head up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The last event of the span.
    pub to: u64,
    /// What is delivered for the span.
    pub kind: SpanKind,
}

/// What one delivery has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// The entry as it is.
    Single,
    /// Pieces of one artifact, put together.
    Merged,
    /// The task as it is after `to`.
    Snapshot,
}

impl SpanKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Single, Self::Merged, Self::Snapshot];

    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Merged => "merged",
            Self::Snapshot => "snapshot",
        }
    }
}

impl Span {
    /// Makes a span of one event.
    pub fn single(seq: u64) -> Self {
        Self { to: seq, kind: SpanKind::Single }
    }

    /// Makes a span of events that are delivered as one.
    pub fn merged(to: u64) -> Self {
        Self { to, kind: SpanKind::Merged }
    }

    /// Makes a span that is delivered as the task of its end.
    pub fn snapshot(to: u64) -> Self {
        Self { to, kind: SpanKind::Snapshot }
    }
}
