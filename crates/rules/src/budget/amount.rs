//! What is counted: dollars, tokens and tasks, and the caps on each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::MicroUsd;

/// One of the things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    Usd,
    Tokens,
    Tasks,
}

impl Dimension {
    pub const ALL: [Self; 3] = [Self::Usd, Self::Tokens, Self::Tasks];
}

/// So much of each. Negative money counts as none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Amount {
    /// The money.
    pub usd: MicroUsd,
    /// The number of tokens.
    pub tokens: u64,
    /// The number of tasks.
    pub tasks: u64,
}

impl Amount {
    /// What one call is charged.
    pub const fn of_task(usd: MicroUsd, tokens: u64) -> Self {
        Self { usd, tokens, tasks: 1 }
    }

    /// The larger of both, in each dimension.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.counts().each(other.counts(), u64::max).amount()
    }

    /// Adds two amounts. A number that would overflow stays at its maximum.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        self.counts().each(other.counts(), u64::saturating_add).amount()
    }

    /// Subtracts an amount. A number that would overflow stays at its limit.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        self.counts().minus(other.counts()).amount()
    }

    pub(super) fn counts(self) -> AmountCounts {
        AmountCounts([u64::try_from(self.usd.0).unwrap_or(0), self.tokens, self.tasks])
    }
}

/// At most so much of each; none is no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// The cap on money, if there is one.
    pub usd: Option<MicroUsd>,
    /// The cap on tokens, if there is one.
    pub tokens: Option<u64>,
    /// The cap on tasks, if there is one.
    pub tasks: Option<u64>,
}

impl Caps {
    /// No cap at all.
    pub const NONE: Self = Self { usd: None, tokens: None, tasks: None };

    /// The smaller of both, in each dimension.
    #[must_use]
    pub fn narrowed(self, other: Self) -> Self {
        Self::of(self.counts().each(other.counts(), u64::min))
    }

    /// `u64::MAX` is no cap: no sum that stops there can pass it.
    pub(super) fn counts(self) -> AmountCounts {
        let usd = self.usd.map_or(u64::MAX, |usd| u64::try_from(usd.0).unwrap_or(0));
        AmountCounts([usd, self.tokens.unwrap_or(u64::MAX), self.tasks.unwrap_or(u64::MAX)])
    }

    pub(super) fn of(AmountCounts([usd, tokens, tasks]): AmountCounts) -> Self {
        let given = |cap: u64| (cap != u64::MAX).then_some(cap);
        Self { usd: given(usd).map(money), tokens: given(tokens), tasks: given(tasks) }
    }
}

/// So much of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    Usd(MicroUsd),
    Tokens(u64),
    Tasks(u64),
}

impl Quantity {
    pub(super) fn new(dimension: Dimension, count: u64) -> Self {
        match dimension {
            Dimension::Usd => Self::Usd(money(count)),
            Dimension::Tokens => Self::Tokens(count),
            Dimension::Tasks => Self::Tasks(count),
        }
    }

    pub fn dimension(self) -> Dimension {
        match self {
            Self::Usd(_) => Dimension::Usd,
            Self::Tokens(_) => Dimension::Tokens,
            Self::Tasks(_) => Dimension::Tasks,
        }
    }
}

/// An amount as the ledger adds it up: one number for each dimension, in its smallest unit. Sums stop at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AmountCounts(pub(super) [u64; 3]);

impl AmountCounts {
    #[inline]
    pub(super) fn each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let (Self([a, b, c]), Self([x, y, z])) = (self, other);
        Self([combine(a, x), combine(b, y), combine(c, z)])
    }

    #[inline]
    pub(super) fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    #[inline]
    pub(super) fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    #[inline]
    pub(super) fn fits(self, caps: Self) -> bool {
        let (Self([a, b, c]), Self([x, y, z])) = (self, caps);
        // All three at once: which of them does not fit is asked later, if at all.
        (a <= x) & (b <= y) & (c <= z)
    }

    pub(super) fn amount(self) -> Amount {
        let Self([usd, tokens, tasks]) = self;
        Amount { usd: money(usd), tokens, tasks }
    }
}

fn money(micros: u64) -> MicroUsd {
    MicroUsd(i64::try_from(micros).unwrap_or(i64::MAX))
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usd => "usd",
            Self::Tokens => "tokens",
            Self::Tasks => "tasks",
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usd(usd) => write!(f, "{usd}"),
            Self::Tokens(count) | Self::Tasks(count) => write!(f, "{count}"),
        }
    }
}
