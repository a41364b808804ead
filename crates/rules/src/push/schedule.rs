//! When a delivery that failed is tried again.

use std::time::Duration;

use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

/// What the receiver asks for is heeded up to here, unless the schedule itself waits longer.
pub const MOST_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
const MOST_STEPS: usize = 64;
const LONGEST_STEP: u64 = 7 * 24 * 60 * 60;

/// The waits before each attempt, in seconds. The first attempt is made at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Schedule(Vec<u64>);

/// Why a schedule of retries cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleFault {
    /// The schedule has no attempt.
    Empty,
    /// The schedule has too many attempts.
    TooManySteps,
    /// The first attempt has a delay.
    NotAtOnce,
    /// A wait between two attempts is too long.
    TooLong,
}

impl std::fmt::Display for ScheduleFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("a schedule has at least one attempt"),
            Self::TooManySteps => write!(f, "a schedule has at most {MOST_STEPS} attempts"),
            Self::NotAtOnce => f.write_str("the first attempt is made at once: begin with 0"),
            Self::TooLong => write!(f, "no wait is longer than {LONGEST_STEP} seconds"),
        }
    }
}

impl std::error::Error for ScheduleFault {}

/// What a receiver said about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// A time from now on.
    In(Duration),
    /// A point in time.
    At(Timestamp),
}

impl RetryAfter {
    /// A date that has passed is no wait at all.
    pub fn wait(self, now: Timestamp) -> Duration {
        match self {
            Self::In(wait) => wait,
            Self::At(time) => Duration::from_micros(u64::try_from(time.micros().saturating_sub(now.micros())).unwrap_or(0)),
        }
    }
}

impl Schedule {
    /// Makes a schedule of the delays of attempts, in seconds.
    pub fn new(seconds: Vec<u64>) -> Result<Self, ScheduleFault> {
        match seconds.first() {
            None => Err(ScheduleFault::Empty),
            Some(first) if *first != 0 => Err(ScheduleFault::NotAtOnce),
            _ if seconds.len() > MOST_STEPS => Err(ScheduleFault::TooManySteps),
            _ if seconds.iter().any(|wait| *wait > LONGEST_STEP) => Err(ScheduleFault::TooLong),
            _ => Ok(Self(seconds)),
        }
    }

    /// Returns the number of attempts.
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// From the first attempt to the last, without jitter.
    pub fn span(&self) -> Duration {
        Duration::from_secs(self.0.iter().sum())
    }

    /// How long to wait after so many failed attempts; none if that was the last. `random` is any number: it moves the wait by up to
    /// a fifth either way, so that lanes that failed together do not come back together.
    pub fn wait(&self, failed: u32, random: u64) -> Option<Duration> {
        let seconds = *self.0.get(usize::try_from(failed).ok()?)?;
        let micros = u128::from(seconds) * 1_000_000;
        // Four fifths, and up to two fifths more.
        let spread = (micros * 2 / 5 * u128::from(random)) >> 64;
        Some(Duration::from_micros(u64::try_from(micros * 4 / 5 + spread).unwrap_or(u64::MAX)))
    }

    /// The same with what the receiver asked for: never sooner than the schedule says, and no later than in an hour for its sake.
    pub fn wait_as_asked(&self, failed: u32, random: u64, asked: Option<RetryAfter>, now: Timestamp) -> Option<Duration> {
        let wait = self.wait(failed, random)?;
        Some(asked.map_or(wait, |asked| wait.max(asked.wait(now).min(MOST_RETRY_AFTER))))
    }
}

impl Default for Schedule {
    /// 13 attempts over 75.7 hours: agents wait for these, so the start is quick.
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        Self(vec![
            0,
            1,
            5,
            30,
            2 * MINUTE,
            10 * MINUTE,
            30 * MINUTE,
            2 * HOUR,
            5 * HOUR,
            10 * HOUR,
            14 * HOUR,
            20 * HOUR,
            24 * HOUR,
        ])
    }
}

impl TryFrom<Vec<u64>> for Schedule {
    type Error = ScheduleFault;

    fn try_from(seconds: Vec<u64>) -> Result<Self, ScheduleFault> {
        Self::new(seconds)
    }
}

impl From<Schedule> for Vec<u64> {
    fn from(schedule: Schedule) -> Self {
        schedule.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn thirteen_attempts_are_made_over_three_days() {
        let schedule = Schedule::default();
        assert_eq!(schedule.attempts(), 13);
        assert_eq!(schedule.span(), seconds(272_556), "75.7 hours");
        assert_eq!(schedule.wait(0, 7), Some(Duration::ZERO));
        assert!(schedule.wait(12, 0).is_some());
        assert_eq!(schedule.wait(13, 0), None, "the thirteenth failure was the last");
        assert_eq!(schedule.wait(u32::MAX, 0), None);
    }

    #[test]
    fn jitter_stays_within_a_fifth_either_way() {
        let schedule = Schedule::new(vec![0, 100]).unwrap();
        assert_eq!(schedule.wait(1, 0), Some(seconds(80)));
        assert_eq!(schedule.wait(1, 1 << 63), Some(seconds(100)));
        let most = schedule.wait(1, u64::MAX).unwrap();
        assert!(most < seconds(120) && most > seconds(119), "{most:?}");
        let longest = Schedule::new(vec![0, LONGEST_STEP]).unwrap();
        assert!(longest.wait(1, u64::MAX).unwrap() < seconds(LONGEST_STEP * 6 / 5));
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_less_and_not_for_ever() {
        let (schedule, now) = (Schedule::new(vec![0, 100, 7_200]).unwrap(), Timestamp::from_micros(5_000_000));
        let asked = |failed, asked| schedule.wait_as_asked(failed, 1 << 63, Some(asked), now).unwrap();
        assert_eq!(asked(1, RetryAfter::In(seconds(10))), seconds(100));
        assert_eq!(asked(1, RetryAfter::In(seconds(300))), seconds(300));
        assert_eq!(asked(1, RetryAfter::In(seconds(86_400))), MOST_RETRY_AFTER);
        assert_eq!(asked(1, RetryAfter::At(now + seconds(400))), seconds(400));
        assert_eq!(asked(1, RetryAfter::At(Timestamp::from_micros(1))), seconds(100), "a date that has passed");
        assert_eq!(asked(1, RetryAfter::At(Timestamp::from_micros(i64::MIN))), seconds(100));
        assert_eq!(asked(2, RetryAfter::In(seconds(86_400))), seconds(7_200), "the schedule waits longer anyway");
        assert_eq!(schedule.wait_as_asked(3, 0, Some(RetryAfter::In(seconds(1))), now), None);
    }

    #[test]
    fn a_schedule_nobody_can_mean_is_refused() {
        assert_eq!(Schedule::new(vec![]), Err(ScheduleFault::Empty));
        assert_eq!(Schedule::new(vec![1]), Err(ScheduleFault::NotAtOnce));
        assert_eq!(Schedule::new(vec![0; MOST_STEPS + 1]), Err(ScheduleFault::TooManySteps));
        assert_eq!(Schedule::new(vec![0, LONGEST_STEP + 1]), Err(ScheduleFault::TooLong));
        assert!(serde_json::from_str::<Schedule>("[0, 1, 5]").is_ok());
        assert!(serde_json::from_str::<Schedule>("[5]").is_err());
        assert_eq!(serde_json::to_string(&Schedule::new(vec![0, 3]).unwrap()).unwrap(), "[0,3]");
    }
}
