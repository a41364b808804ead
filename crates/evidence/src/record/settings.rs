//! How a record is kept.

use serde::{Deserialize, Serialize};

/// The `[evidence]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvidenceConfig {
    /// Whether a node that keeps its tasks on disk keeps a record of what it saw and decided.
    pub record: bool,
    /// A checkpoint is signed after this many entries.
    pub checkpoint_entries: u64,
    /// And after this many seconds, if anything was recorded in them.
    pub checkpoint_seconds: u64,
    /// A segment is sealed when it has this many entries. Entries are deleted by whole segments.
    pub segment_entries: u64,
    /// Segments that were sealed more than this many days ago are deleted. 0 keeps them permanently.
    pub keep_days: u64,
    /// Of the entries at least this many stay, the newest, and less than a segment more. 0 keeps all.
    pub keep_entries: u64,
}

impl Default for EvidenceConfig {
    fn default() -> Self {
        Self {
            record: true,
            checkpoint_entries: 4096,
            checkpoint_seconds: 60,
            segment_entries: 65_536,
            keep_days: 365,
            keep_entries: 10_000_000,
        }
    }
}
