//! How often callers and addresses call, counted on while settings change.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_protocol::{Caller, Error, ErrorKind};

use crate::buckets::Buckets;
use crate::limits::InboundLimits;

#[derive(Debug)]
pub(crate) struct Rates {
    per_caller: Option<Arc<Buckets<Caller>>>,
    per_address: Option<Arc<Buckets<IpAddr>>>,
    start: Instant,
}

impl Rates {
    pub(crate) fn new(limits: &InboundLimits) -> Self {
        let (caller, address) = (of_caller(limits), of_address(limits));
        Self {
            per_caller: Buckets::new(caller.0, caller.1).map(Arc::new),
            per_address: Buckets::new(address.0, address.1).map(Arc::new),
            start: Instant::now(),
        }
    }

    /// A rate that stays the same is counted on: nobody gets a new burst because something else has changed.
    pub(crate) fn renewed(&self, before: &InboundLimits, after: &InboundLimits) -> Self {
        let mut renewed = Self { start: self.start, ..Self::new(after) };
        if of_caller(before) == of_caller(after) {
            renewed.per_caller.clone_from(&self.per_caller);
        }
        if of_address(before) == of_address(after) {
            renewed.per_address.clone_from(&self.per_address);
        }
        renewed
    }

    /// Counts a call, or says how long to wait with it.
    pub(crate) fn take_caller(&self, caller: &Caller) -> Result<(), Duration> {
        self.per_caller.as_ref().map_or(Ok(()), |buckets| buckets.take(caller, self.start.elapsed()))
    }

    pub(crate) fn take_address(&self, address: &IpAddr) -> Result<(), Duration> {
        self.per_address.as_ref().map_or(Ok(()), |buckets| buckets.take(address, self.start.elapsed()))
    }
}

fn of_caller(limits: &InboundLimits) -> (u32, u32) {
    (limits.calls_per_second_per_caller, limits.calls_burst_per_caller)
}

fn of_address(limits: &InboundLimits) -> (u32, u32) {
    (limits.calls_per_second_per_address, limits.calls_burst_per_address)
}

/// The refusal of a call over its rate.
pub(crate) fn rate_limited(limit: &'static str, wait: Duration) -> Error {
    let mut error =
        Error::new(ErrorKind::RateLimited, format!("too many calls ({limit}); try again later")).with_fact("limit", limit);
    error.retry_after = Some(wait);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_something_else_gives_nobody_a_new_burst() {
        let before = InboundLimits { calls_per_second_per_caller: 1, calls_burst_per_caller: 2, ..InboundLimits::default() };
        let rates = Rates::new(&before);
        let caller = Caller::new("t", "a");
        while rates.take_caller(&caller).is_ok() {}
        let other =
            InboundLimits { body_bytes: 1, calls_per_second_per_address: 1, calls_burst_per_address: 1, ..before.clone() };
        let renewed = rates.renewed(&before, &other);
        assert!(renewed.take_caller(&caller).is_err());
        let address = [127, 0, 0, 1].into();
        assert!(renewed.take_address(&address).is_ok());
        assert!(renewed.take_address(&address).is_err(), "the new rate holds");
        let more = InboundLimits { calls_burst_per_caller: 3, ..other.clone() };
        assert!(renewed.renewed(&other, &more).take_caller(&caller).is_ok());
    }
}
