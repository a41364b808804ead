//! A clock that stands still until a test moves it.

use std::sync::atomic::{AtomicI64, Ordering};

use chancery_core::Clock;
use chancery_protocol::Timestamp;

#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at(time: Timestamp) -> Self {
        Self(AtomicI64::new(time.micros()))
    }

    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}
