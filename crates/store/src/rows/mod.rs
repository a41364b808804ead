//! What rows hold in both SQL stores: JSON bodies, and the numbers and words that stand for values.

pub(crate) mod cost_sources;
pub(crate) mod decisions;
pub(crate) mod dialects;
pub(crate) mod facts;
pub(crate) mod freezes;
pub(crate) mod lane_words;
pub(crate) mod log;
pub(crate) mod snapshots;
pub(crate) mod stages;

use std::sync::Arc;

/// A row that holds what this program never writes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("what is stored cannot be read: {0}")]
pub(crate) struct UnreadableRow(Arc<str>);

impl UnreadableRow {
    pub(crate) fn new(what: impl AsRef<str>) -> Self {
        Self(what.as_ref().into())
    }
}
