//! Which entries of a log one delivery stands for.

use serde::{Deserialize, Serialize};

/// From the lane's head up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    pub to: u64,
    pub kind: SpanKind,
}

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
    pub const ALL: [Self; 3] = [Self::Single, Self::Merged, Self::Snapshot];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Merged => "merged",
            Self::Snapshot => "snapshot",
        }
    }
}

impl Span {
    pub fn single(seq: u64) -> Self {
        Self { to: seq, kind: SpanKind::Single }
    }

    pub fn merged(to: u64) -> Self {
        Self { to, kind: SpanKind::Merged }
    }

    pub fn snapshot(to: u64) -> Self {
        Self { to, kind: SpanKind::Snapshot }
    }
}
