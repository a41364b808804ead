//! Results of the last while, counted in slots so that it takes the same memory however many there are.

use std::time::Duration;

use chancery_protocol::Timestamp;

use super::share::Share;

const SLOTS: i64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Which stretch of time it counts; stretches are numbered from 1970 on.
    number: i64,
    good: u32,
    bad: u32,
}

/// A slot leaves as a whole, so a result counts for at least nine tenths of the window and at most all of it.
#[derive(Clone, Debug)]
pub struct HealthWindow {
    slot_micros: i64,
    slots: [Slot; SLOTS as usize],
    /// The number of the slot last counted in.
    newest: i64,
}

impl HealthWindow {
    pub fn new(length: Duration) -> Self {
        let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
        Self { slot_micros: (micros / SLOTS).max(1), slots: Default::default(), newest: i64::MIN }
    }

    pub fn add(&mut self, good: bool, now: Timestamp) {
        if self.is_of_another_time(now) {
            self.clear();
        }
        let number = self.number(now);
        self.newest = number;
        // The remainder is never negative and less than the number of slots.
        let slot = &mut self.slots[number.rem_euclid(SLOTS) as usize];
        if slot.number != number {
            *slot = Slot { number, good: 0, bad: 0 };
        }
        let count = if good { &mut slot.good } else { &mut slot.bad };
        *count = count.saturating_add(1);
    }

    /// How many results there were, and the share of the bad ones.
    pub fn results(&self, now: Timestamp) -> (u32, Share) {
        if self.is_of_another_time(now) {
            return (0, Share::NONE);
        }
        let oldest = self.number(now).saturating_sub(SLOTS - 1);
        let counted = self.slots.iter().filter(|slot| slot.number >= oldest);
        let (good, bad) =
            counted.fold((0_u32, 0_u32), |(good, bad), slot| (good.saturating_add(slot.good), bad.saturating_add(slot.bad)));
        (good.saturating_add(bad), Share::of(bad.into(), u64::from(good) + u64::from(bad)))
    }

    pub fn clear(&mut self) {
        self.slots = Default::default();
        self.newest = i64::MIN;
    }

    /// A clock that is put back a little does not make what was counted a matter of the future.
    fn number(&self, now: Timestamp) -> i64 {
        now.micros().div_euclid(self.slot_micros).max(self.newest)
    }

    /// Without this, a clock put back by more than the window would keep the counts permanently.
    fn is_of_another_time(&self, now: Timestamp) -> bool {
        now.micros().div_euclid(self.slot_micros).saturating_add(SLOTS) < self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn results_leave_when_the_window_has_passed() {
        let mut window = HealthWindow::new(Duration::from_secs(10));
        window.add(false, at(100));
        window.add(true, at(105));
        assert_eq!(window.results(at(105)), (2, Share::percent(50)));
        assert_eq!(window.results(at(109)), (2, Share::percent(50)), "still inside");
        assert_eq!(window.results(at(110)), (1, Share::NONE), "the first has left");
        assert_eq!(window.results(at(115)), (0, Share::NONE));
    }

    #[test]
    fn a_clock_that_is_put_back_loses_nothing_and_one_put_back_far_starts_anew() {
        let mut window = HealthWindow::new(Duration::from_secs(10));
        window.add(false, at(100));
        window.add(false, at(90));
        assert_eq!(window.results(at(90)), (2, Share::ALL));
        assert_eq!(window.results(at(89)), (0, Share::NONE));
        window.add(true, at(3));
        assert_eq!(window.results(at(3)), (1, Share::NONE));
        assert_eq!(window.results(at(13)), (0, Share::NONE));
    }

    #[test]
    fn hostile_times_and_lengths_are_harmless() {
        for length in [Duration::ZERO, Duration::MAX] {
            let mut window = HealthWindow::new(length);
            for micros in [i64::MIN, -1, 0, 1, i64::MAX] {
                window.add(false, Timestamp::from_micros(micros));
                let (results, share) = window.results(Timestamp::from_micros(micros));
                assert!(results >= 1 && share == Share::ALL);
            }
            window.clear();
            assert_eq!(window.results(Timestamp::from_micros(i64::MAX)), (0, Share::NONE));
        }
    }
}
