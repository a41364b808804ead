//! The named limits on following a task at an agent elsewhere.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Part of the `[peers]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowLimits {
    /// Times in a row that a task is looked for again without being shown that it is worked on.
    pub reconnects: u32,
    /// The first pause before looking again; each is twice as long as the one before.
    pub reconnect_ms: u64,
    /// The longest such pause.
    pub reconnect_most_ms: u64,
    /// The first pause between two looks at a task of an agent without streams.
    pub poll_ms: u64,
    pub poll_most_ms: u64,
    /// Quick turns in a row, after which an agent that streams is asked for one answer where nobody needs more than that; 0 for
    /// never.
    pub plain_after: u32,
    /// The longest that a quick turn takes.
    pub plain_within_ms: u64,
}

impl Default for FollowLimits {
    fn default() -> Self {
        Self {
            reconnects: 6,
            reconnect_ms: 200,
            reconnect_most_ms: 10_000,
            poll_ms: 200,
            poll_most_ms: 5_000,
            plain_after: 0,
            plain_within_ms: 1_000,
        }
    }
}

impl FollowLimits {
    pub(super) fn reconnect_pause(&self, misses: u32) -> Duration {
        pause(self.reconnect_ms, self.reconnect_most_ms, misses)
    }

    pub(super) fn poll_pause(&self, misses: u32) -> Duration {
        pause(self.poll_ms, self.poll_most_ms, misses)
    }
}

fn pause(first_ms: u64, most_ms: u64, misses: u32) -> Duration {
    Duration::from_millis(first_ms.saturating_mul(1 << misses.min(16)).min(most_ms))
}
