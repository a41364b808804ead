//! A clock that stands still until a test moves it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chancery_core::Clock;
use chancery_protocol::Timestamp;

#[derive(Debug)]
pub struct ManualClock {
    wall_micros: AtomicI64,
    elapsed_micros: AtomicU64,
}

impl ManualClock {
    pub fn at(time: Timestamp) -> Self {
        Self { wall_micros: AtomicI64::new(time.micros()), elapsed_micros: AtomicU64::new(0) }
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        self.wall_micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.elapsed_micros.fetch_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// No time passes: an operator sets the clock of the machine, forward or back.
    pub fn set_wall_by(&self, seconds: i64) {
        self.wall_micros.fetch_add(seconds.saturating_mul(1_000_000), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall_micros.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.elapsed_micros.load(Ordering::Relaxed))
    }
}
