//! From a verdict to the step that is settled: wait and try again, go on, or give up.

use std::time::Duration;

use chancery_protocol::Timestamp;

use super::lane::{Cursor, LaneAction};
use super::outcome::{DeliveryVerdict, DisableReason};
use super::schedule::Schedule;
use super::span::Span;

/// After so many refused credentials in a row, the receiver will refuse the next ones too.
pub const MOST_REFUSALS: u32 = 3;
/// A receiver that has failed for so long is given up, even if the schedule has attempts left.
pub const MOST_FAILING: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// How often and how long a receiver is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPatience {
    pub schedule: Schedule,
    pub most_failing: Duration,
}

impl Default for RetryPatience {
    fn default() -> Self {
        Self { schedule: Schedule::default(), most_failing: MOST_FAILING }
    }
}

impl RetryPatience {
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
pub struct TriedAttempt {
    pub span: Span,
    /// When the entry at the head was recorded.
    pub oldest: Timestamp,
    /// How long the holder wants the lane, if it has time for more.
    pub keep: Option<Timestamp>,
    /// Any number; see [`Schedule::wait`].
    pub random: u64,
}

/// The step that follows from the answer.
pub fn after(
    verdict: DeliveryVerdict,
    tried: TriedAttempt,
    lane: &Cursor,
    patience: &RetryPatience,
    now: Timestamp,
) -> LaneAction {
    let TriedAttempt { span, oldest, keep, random } = tried;
    match verdict {
        DeliveryVerdict::Ack => LaneAction::Ack { span, keep },
        DeliveryVerdict::Retry { asked } => {
            match patience.schedule.wait_as_asked(lane.attempt.saturating_add(1), random, asked, now) {
                None => LaneAction::GiveUp { reason: DisableReason::Exhausted, to: lane.tail },
                Some(wait) => match patience.is_over(lane, oldest, now) {
                    Some(reason) => LaneAction::GiveUp { reason, to: lane.tail },
                    None => LaneAction::Retry { span, next_at: now + wait },
                },
            }
        }
        DeliveryVerdict::Reject { reason, unauthorized } => {
            let off = unauthorized && lane.refusals.saturating_add(1) >= MOST_REFUSALS;
            let disable = off.then_some(DisableReason::AuthRejected);
            LaneAction::Reject { span, reason, unauthorized, disable, keep: keep.filter(|_| !off) }
        }
        DeliveryVerdict::Gone => LaneAction::Gone { to: lane.tail },
        DeliveryVerdict::Disable { reason } => LaneAction::Disable { reason },
        DeliveryVerdict::Release => LaneAction::Release { span: Some(span), next_at: now },
    }
}

/// The step for a lane whose origin is left alone until `until`. That costs it no attempt, but not all the time of the world either.
pub fn park(lane: &Cursor, until: Timestamp, oldest: Timestamp, patience: &RetryPatience, now: Timestamp) -> LaneAction {
    match patience.is_over(lane, oldest, now) {
        Some(reason) => LaneAction::GiveUp { reason, to: lane.tail },
        None => LaneAction::Park { next_at: until },
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::DeadReason;
    use super::super::schedule::RetryAfter;
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000_000);

    fn step(verdict: DeliveryVerdict, lane: &Cursor, oldest: Timestamp) -> LaneAction {
        let tried = TriedAttempt { span: Span::single(1), oldest, keep: None, random: 1 << 63 };
        after(verdict, tried, lane, &RetryPatience::default(), NOW)
    }

    fn back(duration: Duration) -> Timestamp {
        Timestamp::from_micros(NOW.micros() - i64::try_from(duration.as_micros()).unwrap())
    }

    #[test]
    fn each_failure_waits_longer_and_the_thirteenth_gives_up() {
        let mut lane = Cursor::new(0, 1, NOW);
        let retry = DeliveryVerdict::Retry { asked: None };
        assert_eq!(step(retry, &lane, NOW), LaneAction::Retry { span: Span::single(1), next_at: NOW + Duration::from_secs(1) });
        lane.attempt = 11;
        assert!(
            matches!(step(retry, &lane, NOW), LaneAction::Retry { next_at, .. } if next_at == NOW + Duration::from_secs(86_400))
        );
        lane.attempt = 12;
        assert_eq!(step(retry, &lane, NOW), LaneAction::GiveUp { reason: DisableReason::Exhausted, to: 1 });
        lane.attempt = u32::MAX;
        assert_eq!(step(retry, &lane, NOW), LaneAction::GiveUp { reason: DisableReason::Exhausted, to: 1 });
    }

    #[test]
    fn five_days_are_enough_by_age_or_by_failing_and_not_a_moment_less() {
        let mut lane = Cursor::new(0, 1, NOW);
        let retry = DeliveryVerdict::Retry { asked: Some(RetryAfter::In(Duration::from_secs(60))) };
        let almost = MOST_FAILING - Duration::from_micros(1);
        assert!(matches!(step(retry, &lane, back(almost)), LaneAction::Retry { .. }));
        assert_eq!(step(retry, &lane, back(MOST_FAILING)), LaneAction::GiveUp { reason: DisableReason::Exhausted, to: 1 });
        lane.first_fail_at = Some(back(almost));
        assert!(matches!(step(retry, &lane, NOW), LaneAction::Retry { .. }));
        lane.first_fail_at = Some(back(MOST_FAILING));
        assert_eq!(step(retry, &lane, NOW), LaneAction::GiveUp { reason: DisableReason::Failing, to: 1 });
        assert_eq!(
            park(&lane, NOW, NOW, &RetryPatience::default(), NOW),
            LaneAction::GiveUp { reason: DisableReason::Failing, to: 1 },
            "also while the origin is left alone"
        );
        lane.first_fail_at = None;
        assert_eq!(park(&lane, NOW, NOW, &RetryPatience::default(), NOW), LaneAction::Park { next_at: NOW });
    }

    #[test]
    fn the_third_refusal_of_our_credentials_in_a_row_turns_the_lane_off() {
        let mut lane = Cursor::new(0, 9, NOW);
        let refused = DeliveryVerdict::Reject { reason: DeadReason::Rejected, unauthorized: true };
        let keep = Some(NOW + Duration::from_secs(20));
        let settle = |lane: &mut Cursor, verdict| {
            let claim = lane.claim(NOW, Duration::from_secs(20)).unwrap();
            let tried = TriedAttempt { span: Span::single(claim.head), oldest: NOW, keep, random: 0 };
            let step = after(verdict, tried, lane, &RetryPatience::default(), NOW);
            let change = lane.settle(claim.epoch, step, NOW).unwrap();
            if change.goes_on {
                lane.settle(claim.epoch, LaneAction::Release { span: None, next_at: NOW }, NOW).unwrap();
            }
            change.dead.map(|dead| (dead.from, dead.to))
        };
        assert_eq!(settle(&mut lane, refused), Some((1, 1)));
        assert_eq!(settle(&mut lane, refused), Some((2, 2)));
        assert_eq!(settle(&mut lane, DeliveryVerdict::Ack), None, "one that is taken in between starts the count again");
        for seq in 4..=6 {
            assert_eq!(lane.state, super::super::LaneState::Active);
            assert_eq!(settle(&mut lane, refused), Some((seq, seq)));
        }
        assert_eq!(lane.state, super::super::LaneState::Disabled(DisableReason::AuthRejected));
        assert_eq!((lane.head, lane.tail, lane.is_held()), (7, 9, false), "what is pending stays");
    }
}
