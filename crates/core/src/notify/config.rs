//! The delivery settings of notifications: the part of the `[push]` section that the engine uses.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chancery_rules::push::{Bounds, Schedule, SlotLimits};
use serde::{Deserialize, Serialize};

/// The settings of deliveries: retries, leases and how long their traces are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// Seconds before each attempt.
    pub schedule_s: Vec<u64>,
    /// A receiver that fails for longer is given up.
    pub give_up_after_s: u64,
    /// How long the answer to a message, and the end of a stream, wait for the first attempts. 0 is not at all.
    pub barrier_ms: u64,
    /// Deliveries of one registration in a row before others have their turn.
    pub in_a_row: u32,
    /// How long the holder of a registration's deliveries may be silent before another worker does them.
    pub lease_ms: u64,
    /// Whether a signed receipt is kept for each delivery that was taken.
    pub receipts: bool,
    /// How long registrations of ended tasks are kept after their last delivery, and what was noted of attempts.
    pub keep_hours: u64,
    /// How long deliveries that were given up are kept.
    pub keep_dead_hours: u64,
    /// How long receipts are kept.
    pub keep_receipts_hours: u64,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            schedule_s: Schedule::default().into(),
            give_up_after_s: 5 * 24 * 60 * 60,
            barrier_ms: 250,
            in_a_row: 32,
            lease_ms: 20_000,
            receipts: true,
            keep_hours: 7 * 24,
            keep_dead_hours: 30 * 24,
            keep_receipts_hours: 90 * 24,
        }
    }
}

/// All settings of the engine.
#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// Retries, leases and retention.
    pub notify: NotifyConfig,
    /// The bounds of a lane.
    pub bounds: Bounds,
    /// How many deliveries run at once.
    pub slots: SlotLimits,
    /// Origins whose 4xx are tried again.
    pub lenient: HashSet<Arc<str>>,
    /// The longest an exchange can take, so that none outlives its claim.
    pub exchange: Duration,
}

impl NotifyConfig {
    /// The default in place of an impossible value, for which a config is refused.
    pub fn schedule(&self) -> Schedule {
        Schedule::new(self.schedule_s.clone()).unwrap_or_default()
    }
}

impl EngineConfig {
    pub(super) fn lease(&self) -> Duration {
        // A claim must leave time for at least one exchange.
        Duration::from_millis(self.notify.lease_ms).max(self.exchange + Self::MARGIN * 2)
    }

    /// Between the end of an exchange and the end of the claim.
    pub(super) const MARGIN: Duration = Duration::from_secs(1);
}
