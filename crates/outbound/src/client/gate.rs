//! How many calls one agent gets from us, at once and in a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ClientError;
use super::limits::{ClientLimits, RateLimit};

/// Shared by all clones of a client.
#[derive(Debug)]
pub(super) struct CallGate {
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    bucket: Option<Bucket>,
    queue: Duration,
}

/// A place held until it is dropped.
#[derive(Debug)]
pub(super) struct CallPermit(#[expect(dead_code, reason = "held for its end")] OwnedSemaphorePermit);

impl CallGate {
    pub(super) fn new(limits: &ClientLimits) -> Self {
        let places = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: places(limits.calls_in_flight),
            streams: places(limits.streams),
            bucket: Bucket::new(limits.rate_limit),
            queue: limits.queue(),
        }
    }

    /// Waits for this call's turn, but not past `until`.
    pub(super) async fn enter(&self, until: Instant) -> Result<CallPermit, ClientError> {
        let until = until.min(Instant::now() + self.queue);
        let place = place(&self.calls, until, "calls_in_flight").await?;
        if let Some(bucket) = &self.bucket {
            let now = Instant::now();
            let busy = |wait| ClientError::Busy { limit: "rate_limit", retry_after: Some(wait) };
            let at = bucket.take(now, until).map_err(busy)?;
            // Even the shortest sleep lasts until the timer's next tick, a millisecond away.
            if at > now {
                sleep_until(at).await;
            }
        }
        Ok(place)
    }

    pub(super) async fn open_stream(&self, until: Instant) -> Result<CallPermit, ClientError> {
        place(&self.streams, until.min(Instant::now() + self.queue), "streams").await
    }
}

async fn place(places: &Arc<Semaphore>, until: Instant, limit: &'static str) -> Result<CallPermit, ClientError> {
    match timeout_at(until, places.clone().acquire_owned()).await {
        Ok(Ok(permit)) => Ok(CallPermit(permit)),
        // The semaphore is never closed, so this is the wait that was too long.
        _ => Err(ClientError::Busy { limit, retry_after: None }),
    }
}

/// A token bucket, kept as the time at which it would be full again.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    burst: Duration,
    full_at: Mutex<Instant>,
}

impl Bucket {
    fn new(limit: RateLimit) -> Option<Self> {
        let interval = Duration::from_secs(1).checked_div(limit.per_second)?;
        let burst = interval.saturating_mul(limit.burst.max(1));
        Some(Self { interval, burst, full_at: Mutex::new(Instant::now()) })
    }

    /// When the caller may go, its token taken; or how much too late that would be to take one.
    fn take(&self, now: Instant, until: Instant) -> Result<Instant, Duration> {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = (*full_at).max(now) + self.interval;
        let at = next.checked_sub(self.burst).map_or(now, |at| at.max(now));
        if at > now && at > until {
            return Err(at - now);
        }
        *full_at = next;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(calls: usize, per_second: u32, burst: u32) -> ClientLimits {
        let rate_limit = RateLimit { per_second, burst };
        ClientLimits { calls_in_flight: calls, streams: 1, queue_ms: 1_000, rate_limit, ..ClientLimits::default() }
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_at_once_and_the_next_call_waits_for_its_token() {
        let gate = CallGate::new(&limits(100, 10, 3));
        let start = Instant::now();
        for _ in 0..3 {
            gate.enter(later()).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        gate.enter(later()).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_longer_than_the_queue_lasts_is_turned_away_and_told_when_to_come() {
        let gate = CallGate::new(&limits(100, 1, 1));
        gate.enter(later()).await.unwrap();
        gate.enter(later()).await.unwrap();
        let ClientError::Busy { limit, retry_after } = gate.enter(Instant::now()).await.unwrap_err() else { panic!() };
        assert_eq!((limit, retry_after), ("rate_limit", Some(Duration::from_secs(1))));
        gate.enter(later()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_limit_wait_for_a_place_and_streams_have_their_own() {
        let gate = CallGate::new(&limits(1, 0, 0));
        let first = gate.enter(later()).await.unwrap();
        let stream = gate.open_stream(later()).await.unwrap();
        let start = Instant::now();
        assert!(matches!(gate.enter(later()).await, Err(ClientError::Busy { limit: "calls_in_flight", .. })));
        assert!(matches!(gate.open_stream(later()).await, Err(ClientError::Busy { limit: "streams", .. })));
        assert_eq!(start.elapsed(), Duration::from_secs(2), "each waits as long as the queue lasts");
        drop((first, stream));
        gate.enter(later()).await.unwrap();
        gate.open_stream(later()).await.unwrap();
    }
}
