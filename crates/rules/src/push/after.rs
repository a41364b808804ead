//! From a verdict to the step that is settled: wait and try again, go on, or give up.

use std::time::Duration;

use chancery_protocol::Timestamp;

use super::lane::{Cursor, Step};
use super::outcome::{DisableReason, Verdict};
use super::schedule::Schedule;
use super::span::Span;

/// So many refused credentials in a row, and nobody will take the next ones either.
pub const MOST_REFUSALS: u32 = 3;
/// A receiver that has failed for so long is given up, whatever the schedule has left.
pub const MOST_FAILING: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// How often and how long a receiver is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    pub schedule: Schedule,
    pub most_failing: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { schedule: Schedule::default(), most_failing: MOST_FAILING }
    }
}

impl Patience {
    /// Why a lane that cannot be served now never will be. `oldest` is when the entry at its head was recorded.
    fn is_over(&self, lane: &Cursor, oldest: Timestamp, now: Timestamp) -> Option<DisableReason> {
        if lane.first_fail_at.is_some_and(|first| first + self.most_failing <= now) {
            return Some(DisableReason::Failing);
        }
        (oldest + self.most_failing <= now).then_some(DisableReason::Exhausted)
    }
}

/// An attempt, as far as it matters for what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    pub span: Span,
    /// When the entry at the head was recorded.
    pub oldest: Timestamp,
    /// How long the holder wants the lane, if it has time for more.
    pub keep: Option<Timestamp>,
    /// Any number; see [`Schedule::wait`].
    pub random: u64,
}

/// The step that follows from the answer.
pub fn after(verdict: Verdict, tried: Tried, lane: &Cursor, patience: &Patience, now: Timestamp) -> Step {
    let Tried { span, oldest, keep, random } = tried;
    match verdict {
        Verdict::Ack => Step::Ack { span, keep },
        Verdict::Retry { asked } => match patience.schedule.wait_as_asked(lane.attempt.saturating_add(1), random, asked, now) {
            None => Step::GiveUp { reason: DisableReason::Exhausted, to: lane.tail },
            Some(wait) => match patience.is_over(lane, oldest, now) {
                Some(reason) => Step::GiveUp { reason, to: lane.tail },
                None => Step::Retry { span, next_at: now + wait },
            },
        },
        Verdict::Reject { reason, unauthorized } => {
            let off = unauthorized && lane.refusals.saturating_add(1) >= MOST_REFUSALS;
            let disable = off.then_some(DisableReason::AuthRejected);
            Step::Reject { span, reason, unauthorized, disable, keep: keep.filter(|_| !off) }
        }
        Verdict::Gone => Step::Gone { to: lane.tail },
        Verdict::Disable { reason } => Step::Disable { reason },
        Verdict::Release => Step::Release { span: Some(span), next_at: now },
    }
}

/// The step for a lane whose origin is left alone until `until`. That costs it no attempt, but not all the time of the world either.
pub fn park(lane: &Cursor, until: Timestamp, oldest: Timestamp, patience: &Patience, now: Timestamp) -> Step {
    match patience.is_over(lane, oldest, now) {
        Some(reason) => Step::GiveUp { reason, to: lane.tail },
        None => Step::Park { next_at: until },
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::DeadReason;
    use super::super::schedule::RetryAfter;
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000_000);

    fn step(verdict: Verdict, lane: &Cursor, oldest: Timestamp) -> Step {
        let tried = Tried { span: Span::single(1), oldest, keep: None, random: 1 << 63 };
        after(verdict, tried, lane, &Patience::default(), NOW)
    }

    fn back(duration: Duration) -> Timestamp {
        Timestamp::from_micros(NOW.micros() - i64::try_from(duration.as_micros()).unwrap())
    }

    #[test]
    fn each_failure_waits_longer_and_the_thirteenth_gives_up() {
        let mut lane = Cursor::new(0, 1, NOW);
        let retry = Verdict::Retry { asked: None };
        assert_eq!(step(retry, &lane, NOW), Step::Retry { span: Span::single(1), next_at: NOW + Duration::from_secs(1) });
        lane.attempt = 11;
        assert!(matches!(step(retry, &lane, NOW), Step::Retry { next_at, .. } if next_at == NOW + Duration::from_secs(86_400)));
        lane.attempt = 12;
        assert_eq!(step(retry, &lane, NOW), Step::GiveUp { reason: DisableReason::Exhausted, to: 1 });
        lane.attempt = u32::MAX;
        assert_eq!(step(retry, &lane, NOW), Step::GiveUp { reason: DisableReason::Exhausted, to: 1 });
    }

    #[test]
    fn five_days_are_enough_by_age_or_by_failing_and_not_a_moment_less() {
        let mut lane = Cursor::new(0, 1, NOW);
        let retry = Verdict::Retry { asked: Some(RetryAfter::In(Duration::from_secs(60))) };
        let almost = MOST_FAILING - Duration::from_micros(1);
        assert!(matches!(step(retry, &lane, back(almost)), Step::Retry { .. }));
        assert_eq!(step(retry, &lane, back(MOST_FAILING)), Step::GiveUp { reason: DisableReason::Exhausted, to: 1 });
        lane.first_fail_at = Some(back(almost));
        assert!(matches!(step(retry, &lane, NOW), Step::Retry { .. }));
        lane.first_fail_at = Some(back(MOST_FAILING));
        assert_eq!(step(retry, &lane, NOW), Step::GiveUp { reason: DisableReason::Failing, to: 1 });
        assert_eq!(
            park(&lane, NOW, NOW, &Patience::default(), NOW),
            Step::GiveUp { reason: DisableReason::Failing, to: 1 },
            "also while the origin is left alone"
        );
        lane.first_fail_at = None;
        assert_eq!(park(&lane, NOW, NOW, &Patience::default(), NOW), Step::Park { next_at: NOW });
    }

    #[test]
    fn the_third_refusal_of_our_credentials_in_a_row_turns_the_lane_off() {
        let mut lane = Cursor::new(0, 9, NOW);
        let refused = Verdict::Reject { reason: DeadReason::Rejected, unauthorized: true };
        let keep = Some(NOW + Duration::from_secs(20));
        let settle = |lane: &mut Cursor, verdict| {
            let claim = lane.claim(NOW, Duration::from_secs(20)).unwrap();
            let tried = Tried { span: Span::single(claim.head), oldest: NOW, keep, random: 0 };
            let step = after(verdict, tried, lane, &Patience::default(), NOW);
            let change = lane.settle(claim.epoch, step, NOW).unwrap();
            if change.goes_on {
                lane.settle(claim.epoch, Step::Release { span: None, next_at: NOW }, NOW).unwrap();
            }
            change.dead.map(|dead| (dead.from, dead.to))
        };
        assert_eq!(settle(&mut lane, refused), Some((1, 1)));
        assert_eq!(settle(&mut lane, refused), Some((2, 2)));
        assert_eq!(settle(&mut lane, Verdict::Ack), None, "one that is taken in between starts the count again");
        for seq in 4..=6 {
            assert_eq!(lane.state, super::super::LaneState::Active);
            assert_eq!(settle(&mut lane, refused), Some((seq, seq)));
        }
        assert_eq!(lane.state, super::super::LaneState::Disabled(DisableReason::AuthRejected));
        assert_eq!((lane.head, lane.tail, lane.is_held()), (7, 9, false), "what is pending stays");
    }
}
