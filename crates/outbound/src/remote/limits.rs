//! The named limits on following a task at a remote agent: part of the `[peers]` section.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of the work that follows a call: retries, reconnects and polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FollowLimits {
    /// How long an agent may work on a message before it answers a blocking call.
    pub answer_ms: u64,
    /// Times in a row that a task is looked for again without being shown that it is worked on.
    pub reconnects: u32,
    /// The first pause before looking again; each is twice as long as the one before.
    pub reconnect_ms: u64,
    /// The longest such pause.
    pub max_reconnect_ms: u64,
    /// The first pause between two polls of a task; each is twice as long as the one before.
    pub poll_ms: u64,
    /// The longest such pause.
    pub max_poll_ms: u64,
}

impl Default for FollowLimits {
    fn default() -> Self {
        Self { answer_ms: 600_000, reconnects: 6, reconnect_ms: 200, max_reconnect_ms: 10_000, poll_ms: 100, max_poll_ms: 1_000 }
    }
}

impl FollowLimits {
    pub(super) fn answer(&self) -> Duration {
        Duration::from_millis(self.answer_ms)
    }

    pub(super) fn reconnect_pause(&self, misses: u32) -> Duration {
        pause(self.reconnect_ms, self.max_reconnect_ms, misses)
    }

    pub(super) fn poll_pause(&self, misses: u32) -> Duration {
        pause(self.poll_ms, self.max_poll_ms, misses)
    }
}

fn pause(first_ms: u64, most_ms: u64, misses: u32) -> Duration {
    Duration::from_millis(first_ms.saturating_mul(1 << misses.min(16)).min(most_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let limits = FollowLimits::default();
        let polls: Vec<u128> = (0..6).map(|misses| limits.poll_pause(misses).as_millis()).collect();
        assert_eq!(polls, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(limits.reconnect_pause(u32::MAX).as_millis(), 10_000);
    }
}
