//! What a call is thought to cost before it is made, and where that number comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::actual::{Actual, ActualSource};
use super::amount::Amount;
use super::reservation::Estimate;
use crate::MicroUsd;
use crate::average::Average;

/// Where an estimate comes from, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSource {
    /// The caller said so; never more than the policy allows.
    Hint,
    /// The price in the config.
    Config,
    /// The price in the agent's card.
    Card,
    /// What it cost before.
    Observed,
    /// The most the policy lets it cost.
    Policy,
    /// Nothing is known and there is a cap: all that remains of it.
    Remainder,
    /// Nothing is known and nothing needs to be.
    None,
}

/// What one source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Price {
    pub usd: Option<MicroUsd>,
    pub tokens: Option<u64>,
}

/// All that is known of a call before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimateFacts {
    pub hint: Price,
    pub config: Price,
    pub card: Price,
    pub observed: Price,
    /// `max_cost_usd` and `max_tokens` of the policy.
    pub policy: Price,
    /// Whether a scope of the call has a cap on USD, and one on tokens.
    pub usd_is_capped: bool,
    pub tokens_are_capped: bool,
}

/// An estimate of one task, and where each of its numbers comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimated {
    pub estimate: Estimate,
    pub usd: EstimateSource,
    pub tokens: EstimateSource,
}

/// The first source that says something counts, for money and for tokens each.
pub fn estimate(facts: &EstimateFacts) -> Estimated {
    let (usd, usd_source) = first(facts, facts.usd_is_capped, |price| price.usd.map(|usd| usd.max(MicroUsd::ZERO)));
    let (tokens, tokens_source) = first(facts, facts.tokens_are_capped, |price| price.tokens);
    Estimated { estimate: Estimate { usd, tokens, tasks: 1 }, usd: usd_source, tokens: tokens_source }
}

fn first<N: Ord + Copy + Default>(
    facts: &EstimateFacts,
    is_capped: bool,
    of: impl Fn(Price) -> Option<N>,
) -> (Option<N>, EstimateSource) {
    let most = of(facts.policy);
    let hint = of(facts.hint).map(|hint| most.map_or(hint, |most| hint.min(most)));
    let sources = [
        (hint, EstimateSource::Hint),
        (of(facts.config), EstimateSource::Config),
        (of(facts.card), EstimateSource::Card),
        (of(facts.observed), EstimateSource::Observed),
        (most, EstimateSource::Policy),
    ];
    let known = sources.into_iter().find(|(number, _)| number.is_some());
    known.unwrap_or(if is_capped { (None, EstimateSource::Remainder) } else { (Some(N::default()), EstimateSource::None) })
}

/// The least that an agent elsewhere has room for, where all that is known is what it cost before.
const LEAST_ROOM_USD: MicroUsd = MicroUsd(10_000);
const LEAST_ROOM_TOKENS: u64 = 1_000;

/// How much more than is held a task at an agent elsewhere is to have, if it is free. What it is told is its cap there, and an average of what
/// was is none: half of all tasks cost more, and one that was free may cost something now.
pub fn room(estimated: &Estimated, held: Amount) -> Amount {
    let observed = |source: EstimateSource| source == EstimateSource::Observed;
    let usd = if observed(estimated.usd) { held.usd.0.max(LEAST_ROOM_USD.0 - held.usd.0) } else { 0 };
    let tokens = if observed(estimated.tokens) { held.tokens.max(LEAST_ROOM_TOKENS.saturating_sub(held.tokens)) } else { 0 };
    Amount { usd: MicroUsd(usd), tokens, tasks: 0 }
}

/// What calls of one skill of one agent cost before: a moving average, of which the newest is an eighth.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedCost {
    micro_usd: Average,
    tokens: Average,
}

impl ObservedCost {
    /// Only what was reported or measured is; the rest is what we thought ourselves.
    pub fn is_news(actual: &Actual) -> bool {
        is_news(actual.usd_source) || is_news(actual.tokens_source)
    }

    pub fn add(&mut self, actual: &Actual) {
        if is_news(actual.usd_source) {
            self.micro_usd.add(u64::try_from(actual.usd.0).unwrap_or(0));
        }
        if is_news(actual.tokens_source) {
            self.tokens.add(actual.tokens);
        }
    }

    pub fn price(&self) -> Price {
        let usd = self.micro_usd.get().map(|micros| MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX)));
        Price { usd, tokens: self.tokens.get() }
    }
}

fn is_news(source: ActualSource) -> bool {
    matches!(source, ActualSource::Reported | ActualSource::Measured)
}

impl EstimateSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Config => "config",
            Self::Card => "card",
            Self::Observed => "observed",
            Self::Policy => "policy",
            Self::Remainder => "remainder",
            Self::None => "none",
        }
    }
}

impl fmt::Display for EstimateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(micros: i64) -> Price {
        Price { usd: Some(MicroUsd(micros)), tokens: None }
    }

    #[test]
    fn the_first_source_that_says_something_counts() {
        let mut facts = EstimateFacts {
            hint: usd(1),
            config: usd(2),
            card: usd(3),
            observed: usd(4),
            policy: usd(5),
            usd_is_capped: true,
            tokens_are_capped: false,
        };
        let seen = |facts: &EstimateFacts| {
            let seen = estimate(facts);
            (seen.estimate.usd.map(|usd| usd.0), seen.usd.to_string())
        };
        assert_eq!(seen(&facts), (Some(1), "hint".to_owned()));
        facts.hint = Price::default();
        assert_eq!(seen(&facts), (Some(2), "config".to_owned()));
        facts.config = Price::default();
        assert_eq!(seen(&facts), (Some(3), "card".to_owned()));
        facts.card = Price::default();
        assert_eq!(seen(&facts), (Some(4), "observed".to_owned()));
        facts.observed = Price::default();
        assert_eq!(seen(&facts), (Some(5), "policy".to_owned()));
        facts.policy = Price::default();
        assert_eq!(seen(&facts), (None, "remainder".to_owned()));
        facts.usd_is_capped = false;
        assert_eq!(seen(&facts), (Some(0), "none".to_owned()));
        assert_eq!(estimate(&facts).estimate.tasks, 1);
    }

    #[test]
    fn a_hint_holds_no_more_than_the_policy_allows() {
        let facts = EstimateFacts { hint: usd(900), policy: usd(50), ..EstimateFacts::default() };
        let seen = estimate(&facts);
        assert_eq!((seen.estimate.usd, seen.usd), (Some(MicroUsd(50)), EstimateSource::Hint));
        let negative = EstimateFacts { hint: usd(-900), ..EstimateFacts::default() };
        assert_eq!(estimate(&negative).estimate.usd, Some(MicroUsd(0)));
    }

    #[test]
    fn what_was_only_observed_leaves_room_for_more_and_what_was_said_does_not() {
        let estimated = |usd, tokens| Estimated { estimate: Estimate::REMAINDER, usd, tokens };
        let held = |usd, tokens| Amount { usd: MicroUsd(usd), tokens, tasks: 1 };
        let seen = estimated(EstimateSource::Observed, EstimateSource::Observed);
        for ((usd, tokens), (more_usd, more_tokens)) in
            [((0, 0), (10_000, 1_000)), ((4_000, 900), (6_000, 900)), ((50_000, 7_000), (50_000, 7_000))]
        {
            assert_eq!(room(&seen, held(usd, tokens)), Amount { usd: MicroUsd(more_usd), tokens: more_tokens, tasks: 0 });
        }
        let said = estimated(EstimateSource::Config, EstimateSource::Remainder);
        assert_eq!(room(&said, held(0, 0)), Amount::default());
    }

    #[test]
    fn money_and_tokens_are_looked_for_on_their_own() {
        let tokens = Price { usd: None, tokens: Some(7) };
        let facts = EstimateFacts { card: tokens, observed: usd(3), tokens_are_capped: true, ..EstimateFacts::default() };
        let seen = estimate(&facts);
        assert_eq!(seen.estimate, Estimate { usd: Some(MicroUsd(3)), tokens: Some(7), tasks: 1 });
        assert_eq!((seen.usd, seen.tokens), (EstimateSource::Observed, EstimateSource::Card));
    }

    #[test]
    fn what_we_thought_ourselves_is_no_observation() {
        let mut observed = ObservedCost::default();
        let actual = |usd, usd_source| Actual {
            usd: MicroUsd(usd),
            usd_source,
            tokens: 10,
            tokens_source: ActualSource::Estimated,
            ignored: Vec::new(),
        };
        observed.add(&actual(5, ActualSource::Estimated));
        observed.add(&actual(5, ActualSource::Configured));
        assert_eq!(observed.price(), Price::default());
        observed.add(&actual(800, ActualSource::Reported));
        observed.add(&actual(0, ActualSource::Measured));
        assert_eq!(observed.price(), usd(700));
    }
}
