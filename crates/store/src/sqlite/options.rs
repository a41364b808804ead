//! What can be chosen about the SQLite store.

use serde::{Deserialize, Serialize};

/// How often SQLite waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronous {
    /// At every commit: no answered write is lost, even if the machine loses power.
    #[default]
    Full,
    /// At checkpoints: nothing is lost when the process dies, but the last moments may be when the power fails.
    Normal,
}

impl Synchronous {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Settings of a SQLite store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqliteOptions {
    /// How often the database waits for the disk.
    pub synchronous: Synchronous,
    /// Connections, each with its thread, that read while the one writer writes.
    pub readers: usize,
    /// At most this many appends share one commit.
    pub batch_limit: usize,
    /// At most this many appends wait for the writer; the next one waits for its place.
    pub queue_limit: usize,
    /// When the write-ahead log reaches this size, the writer pauses to restart it.
    pub wal_limit_bytes: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            readers: 4,
            batch_limit: 256,
            queue_limit: 1024,
            wal_limit_bytes: 64 * 1024 * 1024,
        }
    }
}
