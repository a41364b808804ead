//! Amounts of the last while, kept by sixtieths of it, so that time and memory do not depend on how many there are.

use std::time::Duration;

use super::amount::AmountCounts;

/// Into how many parts a window is cut.
const PARTS: i64 = 60;
/// A part leaves when all of it is out of the window, so one more than those is looked at.
const LIVE: i64 = PARTS + 1;
/// A power of two, so that finding a place takes no division.
const PLACES: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    settled: AmountCounts,
    overrun: AmountCounts,
}

/// An amount counts for at least the window and at most a sixtieth longer: a cap can be met late, never passed.
#[derive(Debug)]
pub(super) struct Sliding {
    part_micros: i64,
    /// The number of the part that is added to now; parts are numbered from 1970 on.
    newest: i64,
    /// From when to when the newest part lasts.
    from: i64,
    until: i64,
    parts: [Part; PLACES],
}

impl Sliding {
    pub(super) fn new(length: Duration) -> Self {
        let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        let part_micros = (micros / PARTS + i64::from(micros % PARTS != 0)).max(1);
        Self { part_micros, newest: i64::MIN, from: 0, until: 0, parts: [Part::default(); PLACES] }
    }

    /// Whether the newest part is still the one of `now`.
    #[inline]
    pub(super) fn is_current(&self, now: i64) -> bool {
        self.from <= now && now < self.until
    }

    /// Drops the parts that are out of the window. A clock that was put back a little stands still until it
    /// has caught up. After a larger step back, all that counted then counts from the new time on: nothing is
    /// forgiven and nothing is permanent.
    pub(super) fn advance(&mut self, now: i64) {
        let number = now.div_euclid(self.part_micros);
        if number < self.newest {
            if self.newest.saturating_sub(number) < LIVE {
                return;
            }
            let (settled, overrun) = self.sums();
            self.parts = [Part::default(); PLACES];
            self.parts[place(number)] = Part { settled, overrun };
        } else {
            let gone = number.saturating_sub(self.newest);
            if gone >= LIVE {
                self.parts = [Part::default(); PLACES];
            } else {
                for left in 0..gone {
                    self.parts[place(self.newest.wrapping_sub(PARTS).wrapping_add(left))] = Part::default();
                }
            }
        }
        self.newest = number;
        self.from = number.saturating_mul(self.part_micros);
        self.until = self.from.saturating_add(self.part_micros);
    }

    /// The amount that counts now: settled and overrun. It is added up again with each part that leaves, so
    /// that a saturated sum comes down again.
    pub(super) fn sums(&self) -> (AmountCounts, AmountCounts) {
        let add = |(settled, overrun): (AmountCounts, AmountCounts), part: &Part| {
            (settled.plus(part.settled), overrun.plus(part.overrun))
        };
        self.parts.iter().fold(Default::default(), add)
    }

    #[inline]
    pub(super) fn add(&mut self, settled: AmountCounts, overrun: AmountCounts) {
        let part = &mut self.parts[place(self.newest)];
        part.settled = part.settled.plus(settled);
        part.overrun = part.overrun.plus(overrun);
    }

    /// Puts an amount to its time, if that still counts.
    pub(super) fn add_at(&mut self, at: i64, settled: AmountCounts, overrun: AmountCounts) {
        let number = at.div_euclid(self.part_micros).min(self.newest);
        if self.newest.saturating_sub(number) < LIVE {
            let part = &mut self.parts[place(number)];
            part.settled = part.settled.plus(settled);
            part.overrun = part.overrun.plus(overrun);
        }
    }

    /// All that counts, oldest first, each with the last moment of its part.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (i64, AmountCounts, AmountCounts)> {
        let oldest = self.newest.saturating_sub(PARTS);
        (oldest..=self.newest).map(|number| {
            let part = &self.parts[place(number)];
            let last = number.saturating_add(1).saturating_mul(self.part_micros).saturating_sub(1);
            (last, part.settled, part.overrun)
        })
    }

    /// How long until no more than `most` of a dimension counts.
    pub(super) fn until_within(&self, dimension: usize, most: u64, now: i64) -> Duration {
        let mut stays = 0_u64;
        for number in (self.newest.saturating_sub(PARTS)..=self.newest).rev() {
            let part = &self.parts[place(number)];
            stays = stays.saturating_add(part.settled.0[dimension]).saturating_add(part.overrun.0[dimension]);
            if stays > most {
                let leaves = number.saturating_add(LIVE).saturating_mul(self.part_micros);
                return Duration::from_micros(u64::try_from(leaves.saturating_sub(now)).unwrap_or(0));
            }
        }
        Duration::ZERO
    }
}

/// Two's complement keeps the order of negative numbers too.
#[inline]
fn place(number: i64) -> usize {
    number as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn tokens(count: u64) -> AmountCounts {
        AmountCounts([0, count, 0])
    }

    fn counted(window: &mut Sliding, now: i64) -> u64 {
        if !window.is_current(now) {
            window.advance(now);
        }
        window.sums().0.0[1]
    }

    fn add(window: &mut Sliding, count: u64, now: i64) {
        window.advance(now);
        window.add(tokens(count), AmountCounts::default());
    }

    #[test]
    fn an_amount_leaves_when_all_of_its_part_is_out_of_the_window() {
        let mut window = Sliding::new(Duration::from_secs(60));
        add(&mut window, 7, 100 * SECOND);
        add(&mut window, 1, 100 * SECOND + SECOND - 1);
        assert_eq!(counted(&mut window, 160 * SECOND), 8, "the end of its second is within the last minute still");
        assert_eq!(counted(&mut window, 161 * SECOND - 1), 8);
        assert_eq!(counted(&mut window, 161 * SECOND), 0);
    }

    #[test]
    fn a_clock_that_goes_back_forgives_nothing_and_keeps_nothing_for_ever() {
        let mut window = Sliding::new(Duration::from_secs(60));
        add(&mut window, 1, 1_000 * SECOND);
        add(&mut window, 2, 950 * SECOND);
        assert_eq!(counted(&mut window, 940 * SECOND), 3);
        assert_eq!(counted(&mut window, 900 * SECOND), 3, "put back by more than the window");
        assert_eq!(counted(&mut window, 960 * SECOND), 3);
        assert_eq!(counted(&mut window, 961 * SECOND), 0, "a window after the new time");
    }

    #[test]
    fn hostile_times_and_lengths_are_harmless() {
        for length in [Duration::ZERO, Duration::from_micros(61), Duration::MAX] {
            let mut window = Sliding::new(length);
            for micros in [0, i64::MIN, -1, i64::MAX, 0, 1, i64::MAX, i64::MIN] {
                add(&mut window, u64::MAX / 2, micros);
                assert!(counted(&mut window, micros) >= u64::MAX / 2);
                assert!(window.amounts().count() as i64 <= LIVE);
                let _ = window.until_within(1, 1, micros);
            }
        }
    }

    #[test]
    fn a_sum_that_came_to_its_end_comes_down_again() {
        let mut window = Sliding::new(Duration::from_secs(60));
        add(&mut window, u64::MAX, SECOND);
        add(&mut window, u64::MAX, 2 * SECOND);
        add(&mut window, 5, 30 * SECOND);
        assert_eq!(counted(&mut window, 30 * SECOND), u64::MAX);
        assert_eq!(counted(&mut window, 65 * SECOND), 5);
    }

    #[test]
    fn what_is_restored_leaves_at_its_own_time() {
        let mut window = Sliding::new(Duration::from_secs(60));
        window.advance(100 * SECOND);
        window.add_at(50 * SECOND, tokens(1), AmountCounts::default());
        window.add_at(39 * SECOND, tokens(2), AmountCounts::default());
        window.add_at(999 * SECOND, tokens(4), AmountCounts::default());
        assert_eq!(counted(&mut window, 100 * SECOND), 5, "one was too old");
        for (most, seconds) in [(0, 61), (3, 61), (4, 11), (5, 0)] {
            assert_eq!(window.until_within(1, most, 100 * SECOND), Duration::from_secs(seconds), "{most}");
        }
        assert_eq!(counted(&mut window, 111 * SECOND), 4);
    }
}
