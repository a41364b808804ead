//! Where a receiver has the time from.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use chancery_protocol::Timestamp;

/// A source of the time.
pub trait ReceiverClock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl ReceiverClock for MachineClock {
    #[expect(clippy::disallowed_methods, reason = "a receiver stands alone, and this is its adapter to the machine's clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
