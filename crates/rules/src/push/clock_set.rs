//! The clock was set: what is planned goes on by the new time as it would have by the old one.

use chancery_protocol::Timestamp;

use super::lane::Cursor;

/// A change of the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSet {
    /// The time that the clock would show if it had not been set.
    pub was: Timestamp,
    /// The time after the change.
    pub is: Timestamp,
}

impl ClockSet {
    /// Returns the size of the change.
    pub fn by_micros(self) -> i64 {
        self.is.micros().saturating_sub(self.was.micros())
    }

    /// The same moment by the new time.
    pub fn moved(self, at: Timestamp) -> Timestamp {
        Timestamp::from_micros(at.micros().saturating_add(self.by_micros()))
    }

    /// What is still to come stays as far away; what was due stays due.
    pub fn wait(self, until: Timestamp) -> Timestamp {
        if until > self.was { self.moved(until) } else { until.min(self.is) }
    }
}

impl Cursor {
    /// A lease keeps its length, and so does the wait after a failure. A lane without a failure does not
    /// wait. The clock itself writes the due time of a lane, so that time may already be in the new clock.
    pub fn clock_set(&mut self, set: ClockSet) {
        if self.is_held() {
            // No moment is the one that means nobody.
            self.lease_until = set.moved(self.lease_until).max(Timestamp::from_micros(1));
        }
        self.next_at = if self.attempt > 0 { set.wait(self.next_at) } else { self.next_at.min(set.is) };
        self.first_fail_at = self.first_fail_at.map(|at| set.moved(at));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::lane::LaneAction;
    use super::super::span::Span;
    use super::*;

    const LEASE: Duration = Duration::from_secs(20);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn leases_and_waits_stay_as_long_as_they_were_whichever_way_the_clock_goes() {
        for is in [at(10), at(100_000 - 3_600), at(100_000 + 3_600), at(200_000)] {
            let set = ClockSet { was: at(100_000), is };
            let mut held = Cursor::new(0, 3, at(99_990));
            let claim = held.claim(at(99_995), LEASE).unwrap();
            held.clock_set(set);
            assert_eq!(held.lease_until, is + Duration::from_secs(15));
            assert_eq!(held.claim(is, LEASE), None, "it is still held");
            held.settle(claim.epoch, LaneAction::Retry { span: Span::single(1), next_at: is + Duration::from_secs(30) }, is)
                .unwrap();

            let mut failing = held;
            failing.next_at = at(100_030);
            failing.first_fail_at = Some(at(99_000));
            failing.clock_set(set);
            assert_eq!(failing.next_at, is + Duration::from_secs(30));
            assert_eq!(failing.first_fail_at.map(|first| is.micros() - first.micros()), Some(1_000_000_000));
        }
    }

    #[test]
    fn what_is_due_stays_due_also_if_it_became_so_by_the_new_time() {
        for is in [at(100_000 - 86_400), at(100_000 + 86_400)] {
            for since in [at(99_999), is] {
                let mut due = Cursor::new(0, 1, since);
                due.clock_set(ClockSet { was: at(100_000), is });
                assert!(due.is_due(is), "{since} {is}");
            }
        }
    }
}
