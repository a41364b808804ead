//! What a call is thought to cost before it is made, and where that number comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::observed::LearntCost;
use super::reservation::Estimate;
use crate::MicroUsd;

/// The source of an estimate, in the order of their evaluation. `+hint` is added where the caller's hint
/// raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateSource {
    /// The price in the config.
    Config,
    /// The price in the config, and a hint of the call.
    #[serde(rename = "config+hint")]
    ConfigHint,
    /// The price in the agent's card.
    Card,
    /// The price on the agent's card, and a hint of the call.
    #[serde(rename = "card+hint")]
    CardHint,
    /// The largest that calls of it cost before.
    Observed,
    /// The cost of earlier calls, and a hint of the call.
    #[serde(rename = "observed+hint")]
    ObservedHint,
    /// The most the policy lets it cost. Hints above it are refused, so none raises it.
    Policy,
    /// Nothing is known, or the agent reported more than was reserved before, and there is a cap: all that
    /// remains of it. No hint raises it.
    Remainder,
    /// Nothing is known and nothing needs to be.
    None,
    /// The caller's hint alone. Only in records of versions that let a hint replace a price.
    Hint,
}

/// A hint raises an estimate to at most so many times as much.
pub const HINT_AT_MOST: u64 = 10;

/// What one source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Price {
    /// The money that one call costs.
    pub usd: Option<MicroUsd>,
    /// The tokens that one call costs.
    pub tokens: Option<u64>,
}

/// All that is known of a call before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EstimateFacts {
    /// What the caller expects. It can raise the estimate and never lower it: a caller that says `0` pays
    /// what others pay.
    pub hint: Price,
    pub config: Price,
    pub card: Price,
    pub observed: LearntCost,
    /// `max_cost_usd` and `max_tokens` of the policy.
    pub policy: Price,
    /// What a hint may hold of the caps that others are charged to as well; none is no bound.
    pub hint_at_most: Price,
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

/// The first source that says something counts, for money and for tokens each; the hint comes on top.
pub fn estimate(facts: &EstimateFacts) -> Estimated {
    let usd = of_one(facts, facts.observed.usd_overran, facts.usd_is_capped, |price| {
        price.usd.map(|usd| u64::try_from(usd.0).unwrap_or(0))
    });
    let tokens = of_one(facts, facts.observed.tokens_overran, facts.tokens_are_capped, |price| price.tokens);
    let money = |micros: u64| MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX));
    let expected = Price { usd: usd.expected.map(money), tokens: tokens.expected };
    let estimate = Estimate { usd: usd.held.map(money), tokens: tokens.held, tasks: 1, expected };
    Estimated { estimate, usd: usd.source, tokens: tokens.source }
}

/// One dimension of an estimate.
struct EstimatePart {
    /// None is the remainder.
    held: Option<u64>,
    expected: Option<u64>,
    source: EstimateSource,
}

fn of_one(facts: &EstimateFacts, overran: bool, is_capped: bool, of: impl Fn(Price) -> Option<u64>) -> EstimatePart {
    let policy = of(facts.policy);
    // The policy stops a task that reports more than this, so no more needs to be held for what earlier calls
    // cost.
    let observed = of(facts.observed.price).map(|observed| policy.map_or(observed, |most| observed.min(most)));
    let sources = [
        (of(facts.config), EstimateSource::Config),
        (of(facts.card), EstimateSource::Card),
        (observed, EstimateSource::Observed),
        (policy, EstimateSource::Policy),
    ];
    let found = sources.into_iter().find_map(|(number, source)| Some((number?, source)));
    match found {
        _ if overran && is_capped => {
            EstimatePart { held: None, expected: found.map(|(number, _)| number), source: EstimateSource::Remainder }
        }
        Some((number, source)) => {
            let most = number.saturating_mul(HINT_AT_MOST).min(of(facts.hint_at_most).unwrap_or(u64::MAX));
            match of(facts.hint).map(|hint| hint.min(most)).filter(|hint| *hint > number) {
                Some(raised) => EstimatePart { held: Some(raised), expected: Some(number), source: source.with_hint() },
                None => EstimatePart { held: Some(number), expected: Some(number), source },
            }
        }
        None if is_capped => EstimatePart { held: None, expected: None, source: EstimateSource::Remainder },
        None => EstimatePart { held: Some(0), expected: None, source: EstimateSource::None },
    }
}

/// The least room for a remote agent, where only its earlier cost is known.
const LEAST_ROOM_USD: MicroUsd = MicroUsd(10_000);
const LEAST_ROOM_TOKENS: u64 = 1_000;

/// How much more than is held a task at a remote agent gets, if it is free. The amount that the agent
/// receives is its cap there. The largest earlier cost is not a cap: the next task may cost more, and one
/// that was free may cost something now.
pub fn room(estimated: &Estimated, held: Amount) -> Amount {
    let observed = |source: EstimateSource| source == EstimateSource::Observed;
    let usd = if observed(estimated.usd) { held.usd.0.max(LEAST_ROOM_USD.0 - held.usd.0) } else { 0 };
    let tokens = if observed(estimated.tokens) { held.tokens.max(LEAST_ROOM_TOKENS.saturating_sub(held.tokens)) } else { 0 };
    Amount { usd: MicroUsd(usd), tokens, tasks: 0 }
}

impl EstimateSource {
    /// Returns the name of the source.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::ConfigHint => "config+hint",
            Self::Card => "card",
            Self::CardHint => "card+hint",
            Self::Observed => "observed",
            Self::ObservedHint => "observed+hint",
            Self::Policy => "policy",
            Self::Remainder => "remainder",
            Self::None => "none",
            Self::Hint => "hint",
        }
    }

    /// The same, raised by the caller's hint.
    const fn with_hint(self) -> Self {
        match self {
            Self::Config => Self::ConfigHint,
            Self::Card => Self::CardHint,
            Self::Observed => Self::ObservedHint,
            other => other,
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

    fn learnt(price: Price) -> LearntCost {
        LearntCost { price, ..LearntCost::default() }
    }

    fn seen(facts: &EstimateFacts) -> (Option<i64>, String) {
        let seen = estimate(facts);
        (seen.estimate.usd.map(|usd| usd.0), seen.usd.to_string())
    }

    #[test]
    fn the_first_source_that_says_something_counts() {
        let mut facts = EstimateFacts {
            config: usd(2),
            card: usd(3),
            observed: learnt(usd(4)),
            policy: usd(5),
            usd_is_capped: true,
            ..EstimateFacts::default()
        };
        assert_eq!(seen(&facts), (Some(2), "config".to_owned()));
        facts.config = Price::default();
        assert_eq!(seen(&facts), (Some(3), "card".to_owned()));
        facts.card = Price::default();
        assert_eq!(seen(&facts), (Some(4), "observed".to_owned()));
        facts.observed = learnt(usd(6));
        assert_eq!(seen(&facts), (Some(5), "observed".to_owned()), "the policy stops it there");
        facts.observed = LearntCost::default();
        assert_eq!(seen(&facts), (Some(5), "policy".to_owned()));
        facts.policy = Price::default();
        assert_eq!(seen(&facts), (None, "remainder".to_owned()));
        facts.usd_is_capped = false;
        assert_eq!(seen(&facts), (Some(0), "none".to_owned()));
        assert_eq!(estimate(&facts).estimate.tasks, 1);
    }

    #[test]
    fn a_hint_raises_a_price_up_to_ten_times_and_never_lowers_it() {
        let priced =
            |hint: i64| EstimateFacts { hint: usd(hint), config: usd(50), usd_is_capped: true, ..EstimateFacts::default() };
        for hint in [i64::MIN, -900, 0, 1, 49, 50] {
            assert_eq!(seen(&priced(hint)), (Some(50), "config".to_owned()), "{hint}");
        }
        for (hint, held) in [(51, 51), (499, 499), (500, 500), (501, 500), (i64::MAX, 500)] {
            assert_eq!(seen(&priced(hint)), (Some(held), "config+hint".to_owned()), "{hint}");
            assert_eq!(estimate(&priced(hint)).estimate.expected.usd, Some(MicroUsd(50)), "and costs what it costs");
        }
        for (facts, source) in [
            (EstimateFacts { card: usd(7), ..EstimateFacts::default() }, "card+hint"),
            (EstimateFacts { observed: learnt(usd(7)), ..EstimateFacts::default() }, "observed+hint"),
        ] {
            assert_eq!(seen(&EstimateFacts { hint: usd(9), ..facts }), (Some(9), source.to_owned()));
        }
        let free = EstimateFacts { hint: usd(900), config: usd(0), ..EstimateFacts::default() };
        assert_eq!(seen(&free), (Some(0), "config".to_owned()), "ten times nothing");
        let tokens = |tokens| Price { usd: None, tokens: Some(tokens) };
        let facts =
            EstimateFacts { hint: tokens(u64::MAX), card: tokens(8), tokens_are_capped: true, ..EstimateFacts::default() };
        assert_eq!((estimate(&facts).estimate.tokens, estimate(&facts).tokens), (Some(80), EstimateSource::CardHint));
        let dear = EstimateFacts { card: tokens(u64::MAX / 2), ..facts };
        assert_eq!(estimate(&dear).estimate.tokens, Some(u64::MAX), "the product stops at the end");
    }

    #[test]
    fn a_hint_holds_no_more_than_a_share_of_what_others_are_charged_to_and_a_price_does() {
        let facts = EstimateFacts { hint: usd(900), config: usd(100), hint_at_most: usd(250), ..EstimateFacts::default() };
        assert_eq!(seen(&facts), (Some(250), "config+hint".to_owned()));
        let dear = EstimateFacts { config: usd(300), ..facts };
        assert_eq!(seen(&dear), (Some(300), "config".to_owned()));
    }

    #[test]
    fn a_hint_changes_nothing_where_no_price_is_known() {
        for hint in [0, 1, i64::MAX] {
            let capped = EstimateFacts { hint: usd(hint), usd_is_capped: true, ..EstimateFacts::default() };
            assert_eq!(seen(&capped), (None, "remainder".to_owned()), "{hint}");
            assert_eq!(seen(&EstimateFacts { usd_is_capped: false, ..capped }), (Some(0), "none".to_owned()), "{hint}");
        }
    }

    #[test]
    fn an_agent_that_overran_holds_the_remainder_and_no_less_than_its_price() {
        let overran = LearntCost { price: usd(9), usd_overran: true, tokens_overran: false };
        let facts = EstimateFacts { observed: overran, usd_is_capped: true, ..EstimateFacts::default() };
        for (config, least) in [(Price::default(), 9), (usd(4), 4)] {
            let seen = estimate(&EstimateFacts { config, ..facts });
            assert_eq!((seen.estimate.usd, seen.estimate.expected.usd), (None, Some(MicroUsd(least))));
            assert_eq!(seen.usd, EstimateSource::Remainder);
        }
        let free = EstimateFacts { usd_is_capped: false, ..facts };
        assert_eq!(seen(&free), (Some(9), "observed".to_owned()), "without a cap nothing can be passed");
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
        for said in [EstimateSource::Config, EstimateSource::ObservedHint] {
            assert_eq!(room(&estimated(said, EstimateSource::Remainder), held(0, 0)), Amount::default());
        }
    }

    #[test]
    fn money_and_tokens_are_looked_for_on_their_own() {
        let tokens = Price { usd: None, tokens: Some(7) };
        let facts = EstimateFacts { card: tokens, observed: learnt(usd(3)), tokens_are_capped: true, ..EstimateFacts::default() };
        let seen = estimate(&facts);
        assert_eq!(seen.estimate, Estimate::known(Amount::of_task(MicroUsd(3), 7)));
        assert_eq!((seen.usd, seen.tokens), (EstimateSource::Observed, EstimateSource::Card));
    }
}
