//! Counts how often callers and addresses call, and rejects calls over their rate. A reload does not reset the counts.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_core::ByteLedger;
use chancery_protocol::{Caller, Error, ErrorKind};

use crate::buckets::Buckets;
use crate::limits::InboundLimits;

const PER_CALLER: &str = "limits.calls_per_second_per_caller";
const PER_ADDRESS: &str = "limits.calls_per_second_per_address";
/// Rejections of one limit are logged at most once in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Rates {
    per_caller: Option<Arc<Buckets<Caller>>>,
    /// The rate of one caller, for callers without credentials: by their address, because they all have one name.
    per_unknown: Option<Arc<Buckets<IpAddr>>>,
    per_address: Option<Arc<Buckets<IpAddr>>>,
    limits: RateLimits,
    start: Instant,
    caller_notices: Arc<RejectionNotices>,
    address_notices: Arc<RejectionNotices>,
    /// Bytes of bodies that are being read.
    reading: Arc<ByteLedger>,
}

/// The rate and the burst of a caller, and those of an address.
#[derive(Clone, Copy, Debug)]
struct RateLimits {
    caller: (u32, u32),
    address: (u32, u32),
}

impl From<&InboundLimits> for RateLimits {
    fn from(limits: &InboundLimits) -> Self {
        Self {
            caller: (limits.calls_per_second_per_caller, limits.calls_burst_per_caller),
            address: (limits.calls_per_second_per_address, limits.calls_burst_per_address),
        }
    }
}

impl Rates {
    pub(crate) fn new(limits: &InboundLimits) -> Self {
        let limits = RateLimits::from(limits);
        Self {
            per_caller: Buckets::new(limits.caller.0, limits.caller.1).map(Arc::new),
            per_unknown: Buckets::new(limits.caller.0, limits.caller.1).map(Arc::new),
            per_address: Buckets::new(limits.address.0, limits.address.1).map(Arc::new),
            limits,
            start: Instant::now(),
            caller_notices: Arc::default(),
            address_notices: Arc::default(),
            reading: Arc::default(),
        }
    }

    /// The rates after a change of the limits. An unchanged rate keeps its buckets, so that a reload gives no new burst.
    pub(crate) fn renewed(&self, after: &InboundLimits) -> Self {
        let mut renewed = Self { start: self.start, ..Self::new(after) };
        if self.limits.caller == renewed.limits.caller {
            renewed.per_caller.clone_from(&self.per_caller);
            renewed.per_unknown.clone_from(&self.per_unknown);
        }
        if self.limits.address == renewed.limits.address {
            renewed.per_address.clone_from(&self.per_address);
        }
        renewed.caller_notices.clone_from(&self.caller_notices);
        renewed.address_notices.clone_from(&self.address_notices);
        renewed.reading.clone_from(&self.reading);
        renewed
    }

    pub(crate) fn reading(&self) -> &Arc<ByteLedger> {
        &self.reading
    }

    /// Counts a call of a caller, or rejects it with the time to wait. All calls to an open node are of one caller: they are
    /// counted by address, and the default rate does not apply to its loopback.
    pub(crate) fn take_caller(&self, caller: &Caller, address: Option<IpAddr>, open_node: bool) -> Result<(), Error> {
        if open_node && is_loopback(address) && self.limits.caller == RateLimits::from(&InboundLimits::default()).caller {
            return Ok(());
        }
        let now = self.start.elapsed();
        let taken = match address.filter(|_| open_node) {
            Some(address) => self.per_unknown.as_ref().map_or(Ok(()), |buckets| buckets.take(&address, now)),
            None => self.per_caller.as_ref().map_or(Ok(()), |buckets| buckets.take(caller, now)),
        };
        taken.map_err(|wait| {
            let who = format_args!("{}/{}", caller.tenant, caller.name);
            self.caller_notices.reject(PER_CALLER, self.limits.caller.0, &who, now, wait)
        })
    }

    /// Counts a call from an address, or rejects it with the time to wait. The default rate does not apply to the loopback of
    /// an open node: there the limit protects the node from its own user alone.
    pub(crate) fn take_address(&self, address: Option<IpAddr>, open_node: bool) -> Result<(), Error> {
        let Some(from) = address else { return Ok(()) };
        if open_node && is_loopback(address) && self.limits.address == RateLimits::from(&InboundLimits::default()).address {
            return Ok(());
        }
        let now = self.start.elapsed();
        let taken = self.per_address.as_ref().map_or(Ok(()), |buckets| buckets.take(&from, now));
        taken.map_err(|wait| self.address_notices.reject(PER_ADDRESS, self.limits.address.0, &from, now, wait))
    }
}

fn is_loopback(address: Option<IpAddr>) -> bool {
    address.is_some_and(|address| address.to_canonical().is_loopback())
}

/// Decides which rejections of one limit are logged: the first one, and after a minute the next.
#[derive(Debug, Default)]
struct RejectionNotices {
    logged_at: Mutex<Option<Duration>>,
    unlogged: AtomicU64,
}

impl RejectionNotices {
    /// Returns how many rejections were not logged before this one, if this one is to be logged.
    fn due(&self, now: Duration) -> Option<u64> {
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_some_and(|at| now < at + LOG_EVERY) {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *logged_at = Some(now);
        Some(self.unlogged.swap(0, Ordering::Relaxed))
    }

    fn reject(&self, limit: &'static str, rate: u32, who: &impl Display, now: Duration, wait: Duration) -> Error {
        if let Some(unlogged) = self.due(now) {
            tracing::warn!(
                setting = limit,
                calls_per_second = rate,
                from = %who,
                rejected_before = unlogged,
                "rejected a call over the rate limit; raise {limit} if this traffic is wanted (logged once a minute)"
            );
        }
        let message = format!("too many calls ({limit}); try again later");
        let mut error = Error::new(ErrorKind::RateLimited, message).with_fact("limit", limit);
        error.retry_after = Some(wait);
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_something_else_gives_nobody_a_new_burst() {
        let before = InboundLimits { calls_per_second_per_caller: 1, calls_burst_per_caller: 2, ..InboundLimits::default() };
        let rates = Rates::new(&before);
        let caller = Caller::new("t", "a");
        while rates.take_caller(&caller, None, false).is_ok() {}
        let other =
            InboundLimits { body_bytes: 1, calls_per_second_per_address: 1, calls_burst_per_address: 1, ..before.clone() };
        let renewed = rates.renewed(&other);
        assert!(renewed.take_caller(&caller, None, false).is_err());
        let address = Some([127, 0, 0, 1].into());
        assert!(renewed.take_address(address, true).is_ok());
        assert!(renewed.take_address(address, true).is_err(), "the new rate holds");
        let more = InboundLimits { calls_burst_per_caller: 3, ..other.clone() };
        assert!(renewed.renewed(&more).take_caller(&caller, None, false).is_ok());
    }

    #[test]
    fn callers_without_credentials_are_counted_by_their_address() {
        let limits = InboundLimits { calls_per_second_per_caller: 1, calls_burst_per_caller: 2, ..InboundLimits::default() };
        let (rates, anybody) = (Rates::new(&limits), Caller::new("default", "anonymous"));
        let [here, there] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(|address| Some(address.into()));
        while rates.take_caller(&anybody, here, true).is_ok() {}
        assert!(rates.take_caller(&anybody, there, true).is_ok(), "another address has its own rate");
    }

    #[test]
    fn the_first_rejection_of_a_minute_is_logged_with_the_number_of_the_others() {
        let notices = RejectionNotices::default();
        let at = Duration::from_secs;
        assert_eq!(notices.due(at(5)), Some(0));
        assert_eq!(notices.due(at(5)), None);
        assert_eq!(notices.due(at(64)), None);
        assert_eq!(notices.due(at(65)), Some(2));
        assert_eq!(notices.due(at(65)), None);
    }

    #[test]
    fn default_rates_do_not_apply_to_the_loopback_of_an_open_node_alone() {
        let caller = Caller::new("t", "a");
        // Far more than the bursts hold, made far faster than they fill.
        let rejects = |limits: &InboundLimits, address: &str, open: bool| {
            let (rates, address) = (Rates::new(limits), Some(address.parse().unwrap()));
            let of_address = (0..1_000_000).any(|_| rates.take_address(address, open).is_err());
            let of_caller = (0..1_000_000).any(|_| rates.take_caller(&caller, address, open).is_err());
            (of_address, of_caller)
        };
        let defaults = InboundLimits::default();
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(rejects(&defaults, loopback, true), (false, false), "{loopback}");
        }
        assert_eq!(rejects(&defaults, "127.0.0.1", false), (true, true), "a node with callers");
        assert_eq!(rejects(&defaults, "192.0.2.1", true), (true, true), "another machine");
        let set = InboundLimits { calls_per_second_per_address: 1999, calls_burst_per_caller: 1999, ..defaults };
        assert_eq!(rejects(&set, "127.0.0.1", true), (true, true), "limits that were set");
    }
}
