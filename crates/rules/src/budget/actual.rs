//! What a call cost after all, and who says so. A peer's report is believed as far as it makes sense.
//!
//! | reported | counts as |
//! |---|---|
//! | nothing (left out, null) | configured price, else measured, else the estimate |
//! | a number up to 9,000,000,000 USD, or as many tokens as 9,000,000,000,000,000 | reported; past a millionth it is rounded up |
//! | zero, where the config has a price above zero | ignored: the price counts |
//! | zero, remote | reported: agents that cost nothing exist |
//! | negative, NaN, infinite, 1e308, text that is no number, anything else | ignored, and the first row |
//!
//! What was held only as a bound (all that remains of a cap, or what a caller's hint added) is no guess at
//! the cost: with nothing else known the actual is zero, and what was held goes back. What is beyond the
//! reservation becomes an overrun in the ledger, not here.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, de};

use super::amount::Dimension;
use super::estimate::{Estimated, Price};
use crate::{MicroUsd, MoneyFault};

/// More tokens than this in one report are a mistake.
pub const MOST_TOKENS: u64 = 9_000_000_000_000_000;

/// Where the actual cost of a task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActualSource {
    /// By the agent.
    Reported,
    /// The price in the config.
    Configured,
    /// Counted by this node.
    Measured,
    /// As it was estimated.
    Estimated,
}

/// A number from a peer. Reading one never fails: what is no number is kept as the reason why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reported<N> {
    #[default]
    Nothing,
    Said(N),
    Nonsense(MoneyFault),
}

impl Reported<u64> {
    /// Both together, such as tokens in and tokens out. If one of them makes no sense, the sum does not either.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nonsense(fault), _) | (_, Self::Nonsense(fault)) => Self::Nonsense(fault),
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (Self::Said(one), Self::Said(two)) if one.saturating_add(two) > MOST_TOKENS => Self::Nonsense(MoneyFault::TooMuch),
            (Self::Said(one), Self::Said(two)) => Self::Said(one + two),
        }
    }
}

/// What a peer said about one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(default)]
pub struct ReportedCost {
    pub usd: Reported<MicroUsd>,
    pub tokens: Reported<u64>,
}

/// What else is known of a task that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActualFacts {
    pub configured: Price,
    pub measured: Price,
    pub estimated: Estimated,
}

/// A number of a report that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ignored {
    pub dimension: Dimension,
    pub why: IgnoredBecause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredBecause {
    Nonsense(MoneyFault),
    /// The config has a price.
    ZeroUnderAPrice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actual {
    pub usd: MicroUsd,
    pub usd_source: ActualSource,
    pub tokens: u64,
    pub tokens_source: ActualSource,
    /// For the record.
    pub ignored: Vec<Ignored>,
}

/// By the table above.
pub fn actual(report: &ReportedCost, facts: &ActualFacts) -> Actual {
    let mut ignored = Vec::new();
    let expected = facts.estimated.estimate.expected;
    let usd = [facts.configured.usd, facts.measured.usd, expected.usd];
    let (usd, usd_source) = settle_on(Dimension::Usd, report.usd, usd, &mut ignored);
    let tokens = [facts.configured.tokens, facts.measured.tokens, expected.tokens];
    let (tokens, tokens_source) = settle_on(Dimension::Tokens, report.tokens, tokens, &mut ignored);
    Actual { usd: usd.max(MicroUsd::ZERO), usd_source, tokens, tokens_source, ignored }
}

fn settle_on<N: Copy + Ord + Default>(
    dimension: Dimension,
    reported: Reported<N>,
    [configured, measured, estimated]: [Option<N>; 3],
    ignored: &mut Vec<Ignored>,
) -> (N, ActualSource) {
    let has_price = configured.is_some_and(|price| price > N::default());
    let reported = match reported {
        Reported::Nothing => None,
        Reported::Said(number) if number <= N::default() && has_price => {
            ignored.push(Ignored { dimension, why: IgnoredBecause::ZeroUnderAPrice });
            None
        }
        Reported::Said(number) => Some(number),
        Reported::Nonsense(fault) => {
            ignored.push(Ignored { dimension, why: IgnoredBecause::Nonsense(fault) });
            None
        }
    };
    let sources = [
        (reported, ActualSource::Reported),
        (configured, ActualSource::Configured),
        (measured, ActualSource::Measured),
        (estimated, ActualSource::Estimated),
    ];
    let found = sources.into_iter().find_map(|(number, source)| Some((number?, source)));
    found.unwrap_or((N::default(), ActualSource::Estimated))
}

/// How a number is read from what a peer wrote.
pub trait Reportable: Sized {
    fn from_text(text: &str) -> Result<Self, MoneyFault>;
    fn from_number(number: f64) -> Result<Self, MoneyFault>;
}

impl Reportable for MicroUsd {
    fn from_text(text: &str) -> Result<Self, MoneyFault> {
        Self::parse_rounding_up(text)
    }

    fn from_number(number: f64) -> Result<Self, MoneyFault> {
        Self::from_f64_rounding_up(number)
    }
}

impl Reportable for u64 {
    fn from_text(text: &str) -> Result<Self, MoneyFault> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MoneyFault::NotANumber);
        }
        if digits.len() < text.len() {
            return Err(MoneyFault::Negative);
        }
        text.parse().ok().filter(|tokens| *tokens <= MOST_TOKENS).ok_or(MoneyFault::TooMuch)
    }

    fn from_number(number: f64) -> Result<Self, MoneyFault> {
        if !number.is_finite() {
            return Err(MoneyFault::NotANumber);
        }
        if number < 0.0 {
            return Err(MoneyFault::Negative);
        }
        if number > MOST_TOKENS as f64 {
            return Err(MoneyFault::TooMuch);
        }
        Ok(number.ceil() as Self)
    }
}

impl<N> From<Result<N, MoneyFault>> for Reported<N> {
    fn from(read: Result<N, MoneyFault>) -> Self {
        read.map_or_else(Self::Nonsense, Self::Said)
    }
}

impl<'de, N: Reportable> Deserialize<'de> for Reported<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Anything(std::marker::PhantomData))
    }
}

struct Anything<N>(std::marker::PhantomData<N>);

impl<'de, N: Reportable> Visitor<'de> for Anything<N> {
    type Value = Reported<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Reported<N>, E> {
        Ok(Reported::Nothing)
    }

    fn visit_none<E: de::Error>(self) -> Result<Reported<N>, E> {
        Ok(Reported::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Reported<N>, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Reported<N>, E> {
        Ok(Reported::Nonsense(MoneyFault::NotANumber))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Reported<N>, E> {
        Ok(N::from_text(&number.to_string()).into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Reported<N>, E> {
        Ok(N::from_text(&number.to_string()).into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Reported<N>, E> {
        Ok(N::from_number(number).into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Reported<N>, E> {
        Ok(N::from_text(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Reported<N>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Reported::Nonsense(MoneyFault::NotANumber))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Reported<N>, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Reported::Nonsense(MoneyFault::NotANumber))
    }
}
