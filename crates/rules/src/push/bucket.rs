//! A token bucket: limits the requests per second to one receiver.

use std::time::Duration;

use chancery_protocol::Timestamp;

/// One token, in the millionths in which they come back.
const TOKEN: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Tokens a second.
    rate: u32,
    /// In millionths of a token; full are as many as come back in a second.
    left: u64,
    at: Timestamp,
}

impl TokenBucket {
    /// A full bucket. A rate of zero means no limit.
    pub fn new(rate: u32, now: Timestamp) -> Self {
        Self { rate, left: u64::from(rate) * TOKEN, at: now }
    }

    /// Takes a token, or says when there is one.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        if self.rate == 0 {
            return Ok(());
        }
        self.refill(now);
        match self.left.checked_sub(TOKEN) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(now + Duration::from_micros((TOKEN - self.left).div_ceil(u64::from(self.rate)))),
        }
    }

    /// A full bucket remembers nothing and can be forgotten.
    pub fn is_full(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        self.left == self.most()
    }

    fn most(&self) -> u64 {
        u64::from(self.rate) * TOKEN
    }

    /// A clock that was put back gives nothing, and takes nothing away.
    fn refill(&mut self, now: Timestamp) {
        let passed = u64::try_from(now.micros().saturating_sub(self.at.micros())).unwrap_or(0);
        self.left = self.left.saturating_add(passed.saturating_mul(u64::from(self.rate))).min(self.most());
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    #[test]
    fn a_second_has_as_many_tokens_as_the_rate_and_says_when_the_next_one_comes() {
        let mut bucket = TokenBucket::new(50, at(0));
        assert!((0..50).all(|_| bucket.take(at(0)).is_ok()));
        assert_eq!(bucket.take(at(0)), Err(at(20)));
        assert_eq!(bucket.take(at(19)), Err(at(20)));
        assert_eq!(bucket.take(at(20)), Ok(()));
        assert_eq!(bucket.take(at(20)), Err(at(40)));
        assert!(!bucket.is_full(at(1_019)) && bucket.is_full(at(1_020)));
    }

    #[test]
    fn no_more_than_a_second_is_saved_up() {
        let mut bucket = TokenBucket::new(3, at(0));
        assert_eq!((0..9).filter(|_| bucket.take(at(3_600_000)).is_ok()).count(), 3);
    }

    #[test]
    fn a_clock_that_goes_back_neither_fills_nor_blocks_the_bucket() {
        let mut bucket = TokenBucket::new(1, at(10_000));
        assert_eq!(bucket.take(at(10_000)), Ok(()));
        assert_eq!(bucket.take(at(5_000)), Err(at(6_000)));
        assert_eq!(bucket.take(at(6_000)), Ok(()));
        assert!((0..99).all(|_| TokenBucket::new(0, at(0)).take(at(0)).is_ok()), "a rate of zero is no limit");
    }
}
