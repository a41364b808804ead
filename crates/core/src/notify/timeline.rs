//! The clock of delivery plans. It advances evenly. When the machine's clock is set, the planned times move
//! first, and then the new time applies.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_protocol::Timestamp;
use tokio::time::Instant;

use crate::Clock;
use crate::push::ClockSet;

/// A clock that is off by less was not set, but hurries or lags a little.
const SET: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Timeline {
    clock: Arc<dyn Clock>,
    began: Instant,
    first: Timestamp,
    /// How far the time that plans are made by is from one that began with `first` and was never set.
    ahead_micros: Mutex<i64>,
}

impl Timeline {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let first = clock.now();
        Self { clock, began: Instant::now(), first, ahead_micros: Mutex::new(0) }
    }

    /// The time of the machine's clock, for comparisons with other machines.
    pub(super) fn wall(&self) -> Timestamp {
        self.clock.now()
    }

    /// Never set at all: for what lives no longer than this process.
    pub(super) fn steady(&self) -> Timestamp {
        self.first + self.began.elapsed()
    }

    /// By which what is stored is planned.
    pub(super) fn now(&self) -> Timestamp {
        let ahead = *self.ahead_micros.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp::from_micros(self.steady().micros().saturating_add(ahead))
    }

    /// How the clock was set since it was last followed, if it was. A little is followed at once.
    pub(super) fn was_set(&self) -> Option<ClockSet> {
        let set = ClockSet { was: self.now(), is: self.wall() };
        let off = Duration::from_micros(set.by_micros().unsigned_abs());
        if off >= SET {
            return Some(set);
        }
        self.follow(set);
        None
    }

    pub(super) fn follow(&self, set: ClockSet) {
        let mut ahead = self.ahead_micros.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.saturating_add(set.by_micros());
    }
}
