//! The counters of one scope: what is settled, reserved and overrun, under which caps.

use std::time::Duration;

use super::amount::{AmountCounts, Caps};
use super::scope::{BudgetWindow, Limit};
use super::sliding::Sliding;

/// Promise: as long as its caps are not lowered and nothing is restored past them, settled and reserved together are
/// within them at every moment.
#[derive(Debug)]
pub(super) struct Counters {
    caps: AmountCounts,
    reserved: AmountCounts,
    /// Within the window.
    settled: AmountCounts,
    /// Within the window too: an overrun is absorbed when it leaves the window, as if it had been settled.
    overrun: AmountCounts,
    /// None for what lasts as long as the scope.
    sliding: Option<Box<Sliding>>,
    limit: Limit,
}

impl Counters {
    pub(super) fn new(limit: Limit) -> Self {
        let zero = AmountCounts::default();
        let sliding = sliding(limit.window);
        Self { caps: limit.caps.counts(), reserved: zero, settled: zero, overrun: zero, sliding, limit }
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    #[inline]
    pub(super) fn caps(&self) -> AmountCounts {
        self.caps
    }

    pub(super) fn settled(&self) -> AmountCounts {
        self.settled
    }

    pub(super) fn reserved(&self) -> AmountCounts {
        self.reserved
    }

    pub(super) fn overrun(&self) -> AmountCounts {
        self.overrun
    }

    /// What is taken at `now`, however.
    #[inline]
    pub(super) fn taken(&mut self, now: i64) -> AmountCounts {
        self.slide(now);
        self.settled.plus(self.reserved).plus(self.overrun)
    }

    /// Whether new counters would be the same.
    pub(super) fn are_empty(&mut self, now: i64) -> bool {
        self.taken(now) == AmountCounts::default()
    }

    #[inline]
    fn slide(&mut self, now: i64) {
        if let Some(sliding) = &mut self.sliding
            && !sliding.is_current(now)
        {
            sliding.advance(now);
            (self.settled, self.overrun) = sliding.sums();
        }
    }

    /// How long until `wanted` of a dimension fits if nothing is released; none if it never does.
    pub(super) fn until_fits(&self, dimension: usize, wanted: u64, now: i64) -> Option<Duration> {
        let most = self.caps.0[dimension].checked_sub(self.reserved.0[dimension])?.checked_sub(wanted)?;
        Some(self.sliding.as_ref()?.until_within(dimension, most, now))
    }

    #[inline]
    pub(super) fn reserve(&mut self, amount: AmountCounts) {
        self.reserved = self.reserved.plus(amount);
    }

    #[inline]
    pub(super) fn release(&mut self, amount: AmountCounts) {
        self.reserved = self.reserved.minus(amount);
    }

    #[inline]
    pub(super) fn settle(&mut self, settled: AmountCounts, overrun: AmountCounts, now: i64) {
        self.slide(now);
        self.settled = self.settled.plus(settled);
        self.overrun = self.overrun.plus(overrun);
        if let Some(sliding) = &mut self.sliding {
            sliding.add(settled, overrun);
        }
    }

    /// The same for what was settled at an earlier time.
    pub(super) fn restore(&mut self, settled: AmountCounts, overrun: AmountCounts, at: i64, now: i64) {
        self.slide(now);
        match &mut self.sliding {
            None => {
                self.settled = self.settled.plus(settled);
                self.overrun = self.overrun.plus(overrun);
            }
            Some(sliding) => {
                sliding.add_at(at.min(now), settled, overrun);
                (self.settled, self.overrun) = sliding.sums();
            }
        }
    }

    /// Counters stay. What a shorter window had let go does not come back with a longer one.
    pub(super) fn set_limit(&mut self, limit: Limit, now: i64) {
        self.slide(now);
        if limit.window != self.limit.window {
            let mut other = sliding(limit.window);
            if let Some(other) = &mut other {
                other.advance(now);
                match &self.sliding {
                    None => other.add(self.settled, self.overrun),
                    Some(sliding) => {
                        sliding.amounts().for_each(|(last, settled, overrun)| other.add_at(last.min(now), settled, overrun));
                    }
                }
                (self.settled, self.overrun) = other.sums();
            }
            self.sliding = other;
        }
        self.caps = limit.caps.counts();
        self.limit = limit;
    }

    /// What is left of each cap.
    pub(super) fn free(&mut self, now: i64) -> Caps {
        let taken = self.taken(now);
        Caps::of(self.caps.each(taken, left))
    }
}

/// What is left of a cap; of none there is always enough.
#[inline]
pub(super) fn left(cap: u64, taken: u64) -> u64 {
    if cap == u64::MAX { cap } else { cap.saturating_sub(taken) }
}

fn sliding(window: BudgetWindow) -> Option<Box<Sliding>> {
    match window {
        BudgetWindow::Sliding(length) => Some(Box::new(Sliding::new(length))),
        BudgetWindow::Tree => None,
    }
}
