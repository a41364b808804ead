//! Token buckets by key, kept as one number each: the time at which the bucket would be full again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;

const SHARDS: usize = 16;
/// A shard with more keys than this is rid of full buckets before it takes another.
const KEYS_PER_SHARD: usize = 1024;

#[derive(Debug)]
pub(crate) struct Buckets<K> {
    /// Time one call is worth.
    interval: Duration,
    /// Time a whole burst is worth.
    burst: Duration,
    hasher: RandomState,
    shards: [Mutex<HashMap<K, Duration, RandomState>>; SHARDS],
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    /// `None` when there is no limit.
    pub(crate) fn new(per_second: u32, burst: u32) -> Option<Self> {
        let interval = Duration::from_secs(1).checked_div(per_second)?;
        Some(Self { interval, burst: interval * burst.max(1), hasher: RandomState::default(), shards: Default::default() })
    }

    /// Takes one token at `now`, a time since some fixed start; or says how long to wait for it.
    pub(crate) fn take(&self, key: &K, now: Duration) -> Result<(), Duration> {
        let shard = self.hasher.hash_one(key) as usize % SHARDS;
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = match shard.get_mut(key) {
            Some(full_at) => full_at,
            None => {
                if shard.len() >= KEYS_PER_SHARD {
                    shard.retain(|_, full_at| *full_at > now);
                }
                shard.entry(key.clone()).or_default()
            }
        };
        let next = (*full_at).max(now) + self.interval;
        let empty_until = next.saturating_sub(self.burst);
        if empty_until > now {
            return Err(empty_until - now);
        }
        *full_at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let buckets = Buckets::new(10, 3).unwrap();
        let mut now = Duration::from_secs(100);
        for _ in 0..3 {
            assert_eq!(buckets.take(&"a", now), Ok(()));
        }
        assert_eq!(buckets.take(&"a", now), Err(Duration::from_millis(100)));
        assert_eq!(buckets.take(&"b", now), Ok(()));
        now += Duration::from_millis(100);
        assert_eq!(buckets.take(&"a", now), Ok(()));
        assert_eq!(buckets.take(&"a", now), Err(Duration::from_millis(100)));
    }

    #[test]
    fn no_rate_means_no_limit() {
        assert!(Buckets::<u8>::new(0, 5).is_none());
    }

    #[test]
    fn keys_that_went_away_are_forgotten() {
        let buckets = Buckets::new(1000, 1).unwrap();
        for key in 0..200_000_u64 {
            let _ = buckets.take(&key, Duration::from_millis(key));
        }
        let kept: usize = buckets.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(kept <= SHARDS * KEYS_PER_SHARD, "{kept}");
    }
}
