//! Learns the price of one skill of one agent from the costs at which its calls were settled.
//!
//! The price that is learnt is the largest of the last [`OBSERVED_CALLS`], not a mean: half of all calls cost
//! more than a mean, and what they cost beyond it would pass caps. An agent that reports more than was
//! reserved (an *overrun*) is not believed for a while: its next calls hold the remainder of their caps,
//! until [`CALM_CALLS`] reports in a row stayed within what was reserved for them.

use std::collections::VecDeque;

use super::actual::{Actual, ActualSource};
use super::amount::Amount;
use super::estimate::Price;
use crate::MicroUsd;

/// Of so many settled calls the largest cost is the price that is learnt.
pub const OBSERVED_CALLS: u64 = 100;
/// So many reports in a row have to stay within their reservations after an overrun.
pub const CALM_CALLS: u32 = 20;

/// The costs that calls of one skill of one agent reported, and how far its reports are believed.
#[derive(Clone, Debug, Default)]
pub struct ObservedCost {
    usd: Series,
    tokens: Series,
}

/// The learnt price of one skill of one agent, and whether its reports are believed, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearntCost {
    pub price: Price,
    /// Set by a report above its reservation, until `CALM_CALLS` reports in a row stayed within theirs.
    pub usd_overran: bool,
    pub tokens_overran: bool,
}

impl LearntCost {
    /// Whether the agent is believed less than it was.
    pub fn overran_since(&self, earlier: &Self) -> bool {
        (self.usd_overran && !earlier.usd_overran) || (self.tokens_overran && !earlier.tokens_overran)
    }
}

impl ObservedCost {
    /// Whether a cost teaches something: only a reported or measured one does, an estimate is our own.
    pub fn is_news(actual: &Actual) -> bool {
        is_news(actual.usd_source) || is_news(actual.tokens_source)
    }

    /// Learns from a call that was settled at this cost, `overrun` of it above its reservation.
    pub fn add(&mut self, actual: &Actual, overrun: Amount) {
        if is_news(actual.usd_source) {
            self.usd.add(u64::try_from(actual.usd.0).unwrap_or(0));
            self.usd.trust.note(overrun.usd > MicroUsd::ZERO);
        }
        if is_news(actual.tokens_source) {
            self.tokens.add(actual.tokens);
            self.tokens.trust.note(overrun.tokens > 0);
        }
    }

    /// Adds the overrun of a call of an earlier run, without its price.
    pub fn restore(&mut self, overrun: Amount) {
        self.usd.trust.note(overrun.usd > MicroUsd::ZERO);
        self.tokens.trust.note(overrun.tokens > 0);
    }

    pub fn learnt(&self) -> LearntCost {
        let usd = self.usd.largest().map(|micros| MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX)));
        LearntCost {
            price: Price { usd, tokens: self.tokens.largest() },
            usd_overran: self.usd.trust.is_lost(),
            tokens_overran: self.tokens.trust.is_lost(),
        }
    }
}

fn is_news(source: ActualSource) -> bool {
    matches!(source, ActualSource::Reported | ActualSource::Measured)
}

/// One dimension of what was settled.
#[derive(Clone, Debug, Default)]
struct Series {
    /// The number of costs so far.
    count: u64,
    /// Costs that can still become the largest, each with its number. Every one is larger than all after it.
    peaks: VecDeque<(u64, u64)>,
    trust: Trust,
}

impl Series {
    fn add(&mut self, value: u64) {
        self.count += 1;
        while self.peaks.back().is_some_and(|(_, peak)| *peak <= value) {
            self.peaks.pop_back();
        }
        self.peaks.push_back((self.count, value));
        while self.peaks.front().is_some_and(|(number, _)| self.count - number >= OBSERVED_CALLS) {
            self.peaks.pop_front();
        }
    }

    fn largest(&self) -> Option<u64> {
        self.peaks.front().map(|(_, value)| *value)
    }
}

/// How many more reports have to stay within their reservations.
#[derive(Clone, Copy, Debug, Default)]
struct Trust {
    missing: u32,
}

impl Trust {
    fn note(&mut self, overran: bool) {
        self.missing = if overran { CALM_CALLS } else { self.missing.saturating_sub(1) };
    }

    fn is_lost(self) -> bool {
        self.missing > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(micros: i64) -> Price {
        Price { usd: Some(MicroUsd(micros)), tokens: None }
    }

    fn actual(usd: i64, usd_source: ActualSource) -> Actual {
        Actual { usd: MicroUsd(usd), usd_source, tokens: 10, tokens_source: ActualSource::Estimated, ignored: Vec::new() }
    }

    fn reported(observed: &mut ObservedCost, usd: i64) {
        observed.add(&actual(usd, ActualSource::Reported), Amount::default());
    }

    #[test]
    fn what_we_thought_ourselves_is_no_observation() {
        let mut observed = ObservedCost::default();
        observed.add(&actual(5, ActualSource::Estimated), Amount::default());
        observed.add(&actual(5, ActualSource::Configured), Amount::default());
        assert_eq!(observed.learnt(), LearntCost::default());
        observed.add(&actual(800, ActualSource::Reported), Amount::default());
        observed.add(&actual(0, ActualSource::Measured), Amount::default());
        assert_eq!(observed.learnt().price, usd(800), "the largest, not a mean");
    }

    #[test]
    fn a_large_cost_counts_for_a_hundred_calls_and_no_longer() {
        let mut observed = ObservedCost::default();
        reported(&mut observed, 900);
        for call in 1..OBSERVED_CALLS {
            reported(&mut observed, 5);
            assert_eq!(observed.learnt().price, usd(900), "{call} calls later");
        }
        reported(&mut observed, 4);
        assert_eq!(observed.learnt().price, usd(5), "it is the 101st newest now");
    }

    #[test]
    fn the_largest_is_that_of_a_plain_list_whatever_comes() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        let mut observed = ObservedCost::default();
        let mut all = Vec::new();
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let cost = i64::try_from(seed >> 54).unwrap();
            reported(&mut observed, cost);
            all.push(cost);
            let last = &all[all.len().saturating_sub(OBSERVED_CALLS as usize)..];
            assert_eq!(observed.learnt().price, usd(*last.iter().max().unwrap()));
            assert!(observed.usd.peaks.len() <= OBSERVED_CALLS as usize);
        }
    }

    #[test]
    fn an_overrun_is_forgiven_after_twenty_reports_in_a_row_that_stayed_within() {
        let overrun = Amount { usd: MicroUsd(1), ..Amount::default() };
        let mut observed = ObservedCost::default();
        observed.add(&actual(9, ActualSource::Reported), overrun);
        for _ in 0..CALM_CALLS - 1 {
            reported(&mut observed, 1);
        }
        assert!(observed.learnt().usd_overran, "nineteen");
        observed.add(&actual(9, ActualSource::Reported), overrun);
        for calm in 0..CALM_CALLS {
            assert!(observed.learnt().usd_overran, "begun anew: {calm}");
            assert!(!observed.learnt().tokens_overran, "dollars only");
            observed.add(&actual(1, ActualSource::Configured), Amount::default());
            reported(&mut observed, 1);
        }
        assert!(!observed.learnt().usd_overran);
    }

    #[test]
    fn a_restart_forgets_the_price_and_not_the_overrun() {
        let mut observed = ObservedCost::default();
        observed.restore(Amount { tokens: 7, ..Amount::default() });
        assert_eq!(observed.learnt(), LearntCost { tokens_overran: true, ..LearntCost::default() });
    }
}
