//! What is counted: for operators, without anything that names a receiver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper ends of what a [`Times`] sorts into, in milliseconds.
pub const TIME_BOUNDS_MS: [u64; 14] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 15_000, 60_000];

/// A histogram of times.
#[derive(Debug, Default)]
pub struct Times {
    buckets: [AtomicU64; TIME_BOUNDS_MS.len() + 1],
    micros: AtomicU64,
}

impl Times {
    pub(super) fn add(&self, time: Duration) {
        let millis = time.as_micros().div_ceil(1_000);
        let bucket = TIME_BOUNDS_MS.iter().position(|bound| millis <= u128::from(*bound)).unwrap_or(TIME_BOUNDS_MS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How many there are in each, the last one without an upper end; and the sum of all times.
    pub fn read(&self) -> ([u64; TIME_BOUNDS_MS.len() + 1], Duration) {
        let counts = std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed));
        (counts, Duration::from_micros(self.micros.load(Ordering::Relaxed)))
    }
}

/// Counts by words that come from a small, closed list.
#[derive(Debug, Default)]
pub struct LabelledCounts<const N: usize>(Mutex<BTreeMap<[&'static str; N], u64>>);

impl<const N: usize> LabelledCounts<N> {
    pub(super) fn add(&self, of: [&'static str; N]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(of).or_default() += 1;
    }

    /// Returns each count by its labels.
    pub fn read(&self) -> BTreeMap<[&'static str; N], u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A count that only rises.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of deliveries since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By outcome and profile.
    pub deliveries: LabelledCounts<2>,
    /// By reason.
    pub dead: LabelledCounts<1>,
    /// By what was wrong with the address.
    pub blocked: LabelledCounts<1>,
    /// One exchange.
    pub attempt: Times,
    /// From an entry's recording to its delivery.
    pub lag: Times,
    /// From an entry's recording to the beginning of its first attempt.
    pub first_attempt: Times,
    /// How long answers waited for first attempts.
    pub barrier: Times,
    /// Settlements that came too late and changed nothing.
    pub fenced: Count,
    /// Entries that went out as part of a delivery that stands for several.
    pub compacted: Count,
    /// Receipts that were stored.
    pub receipts: Count,
    /// Dead letters that were sent again.
    pub replays: Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_by_their_upper_end() {
        let times = Times::default();
        for micros in [0, 1_000, 1_001, 60_000_000, 60_000_001] {
            times.add(Duration::from_micros(micros));
        }
        let (counts, sum) = times.read();
        assert_eq!((counts[0], counts[1], counts[13], counts[14]), (2, 1, 1, 1));
        assert_eq!(sum, Duration::from_micros(120_002_002));
    }
}
