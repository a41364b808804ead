//! When to ask a peer how it is.

use std::time::Duration;

use chancery_protocol::Timestamp;

use super::config::CheckConfig;

#[derive(Clone, Copy, Debug)]
pub struct CheckFacts {
    pub first_seen: Timestamp,
    /// The last result of a call or a check, success or failure.
    pub last_heard: Option<Timestamp>,
    /// Nothing may pass before; from a breaker that is not closed.
    pub blocked_until: Option<Timestamp>,
    /// Any number, the same for the same peer: it keeps checks of many peers apart.
    pub spread: u64,
}

/// The next check is due when the peer was silent for the interval and up to an eighth more, or when an open
/// breaker wants its probe. New peers are spread over one interval. None if no peer is due.
pub fn next_check(config: &CheckConfig, facts: &CheckFacts) -> Option<Timestamp> {
    let every = Duration::from_millis(config.check_every_ms);
    if every.is_zero() {
        return None;
    }
    if let Some(until) = facts.blocked_until {
        return Some(until);
    }
    Some(match facts.last_heard {
        None => facts.first_seen + part_of(config.check_every_ms, facts.spread),
        Some(heard) => heard + every + part_of(config.check_every_ms / 8, facts.spread),
    })
}

fn part_of(whole_ms: u64, spread: u64) -> Duration {
    Duration::from_millis(((u128::from(whole_ms) * u128::from(spread)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: CheckConfig = CheckConfig { check_every_ms: 8_000 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn facts(spread: u64) -> CheckFacts {
        CheckFacts { first_seen: at(100), last_heard: None, blocked_until: None, spread }
    }

    #[test]
    fn a_new_peer_is_asked_within_one_interval_and_many_are_spread_over_it() {
        assert_eq!(next_check(&EVERY, &facts(0)), Some(at(100)));
        assert_eq!(next_check(&EVERY, &facts(1 << 63)), Some(at(4_100)));
        assert_eq!(next_check(&EVERY, &facts(u64::MAX)), Some(at(8_099)));
    }

    #[test]
    fn a_peer_that_was_heard_of_is_left_in_peace_for_the_interval() {
        let heard = |spread| CheckFacts { last_heard: Some(at(500)), ..facts(spread) };
        assert_eq!(next_check(&EVERY, &heard(0)), Some(at(8_500)));
        assert_eq!(next_check(&EVERY, &heard(u64::MAX)), Some(at(9_499)));
    }

    #[test]
    fn an_open_breaker_is_probed_when_it_may_be_and_not_before() {
        let blocked = CheckFacts { last_heard: Some(at(500)), blocked_until: Some(at(700)), ..facts(9) };
        assert_eq!(next_check(&EVERY, &blocked), Some(at(700)));
    }

    #[test]
    fn an_interval_of_zero_asks_nobody_and_an_endless_one_stays_in_range() {
        let blocked = CheckFacts { blocked_until: Some(at(700)), ..facts(9) };
        assert_eq!(next_check(&CheckConfig { check_every_ms: 0 }, &blocked), None);
        let heard = CheckFacts { last_heard: Some(at(500)), ..facts(u64::MAX) };
        assert_eq!(next_check(&CheckConfig { check_every_ms: u64::MAX }, &heard), Some(Timestamp::from_micros(i64::MAX)));
    }
}
