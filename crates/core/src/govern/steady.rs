//! The clock of budgets. It advances evenly, also when the machine's clock is set while the node runs.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;

use crate::Clock;

/// Begins at the wall clock's time and is never set: an hour by it is an hour.
#[derive(Debug)]
pub(crate) struct SteadyTime {
    clock: Arc<dyn Clock>,
    first: Timestamp,
    began: Duration,
}

impl SteadyTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (first, began) = (clock.now(), clock.elapsed());
        Self { clock, first, began }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.first + self.clock.elapsed().saturating_sub(self.began)
    }

    /// What the store says happened at `at`, as long ago by this time as it is by the wall clock now.
    pub(crate) fn of_stored(&self, at: Timestamp) -> Timestamp {
        let age = self.clock.now().micros().saturating_sub(at.micros());
        Timestamp::from_micros(self.now().micros().saturating_sub(age))
    }
}
