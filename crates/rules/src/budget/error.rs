//! Why nothing could be reserved, with the numbers.

use std::fmt;
use std::time::Duration;

use super::amount::{Dimension, Quantity};
use super::scope::{BudgetScope, BudgetWindow};
use crate::MicroUsd;

/// A refusal. The first three are those of the whole node, whose window is a minute.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetError {
    RateLimitUsd {
        /// Settled, reserved and overrun.
        observed_per_min: MicroUsd,
        cap: MicroUsd,
        shortage: Box<Shortage>,
    },
    RateLimitTokens {
        observed_per_min: u64,
        cap: u64,
        shortage: Box<Shortage>,
    },
    RateLimitTasks {
        observed_per_min: u64,
        cap: u64,
        shortage: Box<Shortage>,
    },
    /// Any other scope has not enough left.
    Exhausted(Box<Shortage>),
    /// As many wait for the scope as may.
    QueueFull {
        scope: BudgetScope,
        max_queue_depth: u32,
    },
}

/// The first scope and dimension that had not enough left. All quantities are of that dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub scope: BudgetScope,
    pub window: BudgetWindow,
    pub limit: Quantity,
    pub settled: Quantity,
    pub reserved: Quantity,
    pub overrun: Quantity,
    /// Of what is not known beforehand, the least there is: one millionth, one token.
    pub requested: Quantity,
    /// When it would fit into every scope if nothing else happened; none if never.
    pub retry_after: Option<Duration>,
}

impl Shortage {
    pub fn dimension(&self) -> Dimension {
        self.limit.dimension()
    }
}

impl BudgetError {
    /// `observed` is all that is taken of what `shortage` is about.
    pub(super) fn new(shortage: Shortage, observed: Quantity) -> Self {
        let shortage = Box::new(shortage);
        if shortage.scope != BudgetScope::Global || shortage.window != BudgetWindow::MINUTE {
            return Self::Exhausted(shortage);
        }
        match (observed, shortage.limit) {
            (Quantity::Usd(observed_per_min), Quantity::Usd(cap)) => Self::RateLimitUsd { observed_per_min, cap, shortage },
            (Quantity::Tokens(observed_per_min), Quantity::Tokens(cap)) => {
                Self::RateLimitTokens { observed_per_min, cap, shortage }
            }
            (Quantity::Tasks(observed_per_min), Quantity::Tasks(cap)) => Self::RateLimitTasks { observed_per_min, cap, shortage },
            _ => Self::Exhausted(shortage),
        }
    }

    /// None when it was not an amount that was missing but a place to wait.
    pub fn shortage(&self) -> Option<&Shortage> {
        match self {
            Self::RateLimitUsd { shortage, .. }
            | Self::RateLimitTokens { shortage, .. }
            | Self::RateLimitTasks { shortage, .. }
            | Self::Exhausted(shortage) => Some(shortage),
            Self::QueueFull { .. } => None,
        }
    }

    pub fn scope(&self) -> &BudgetScope {
        match self {
            Self::RateLimitUsd { shortage, .. }
            | Self::RateLimitTokens { shortage, .. }
            | Self::RateLimitTasks { shortage, .. }
            | Self::Exhausted(shortage) => &shortage.scope,
            Self::QueueFull { scope, .. } => scope,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.shortage().and_then(|shortage| shortage.retry_after)
    }

    /// The code callers see.
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueueFull { .. } => "BUDGET_QUEUE_FULL",
            _ => "BUDGET_EXHAUSTED",
        }
    }
}

/// `tree=t1`, or `global` alone.
struct Assigned<'a>(&'a BudgetScope);

impl fmt::Display for Assigned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind())?;
        if *self.0 != BudgetScope::Global {
            f.write_str("=")?;
        }
        self.0.write_name(f)
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Assigned(&self.scope))?;
        if let BudgetWindow::Sliding(_) = self.window {
            write!(f, " window={}", self.window)?;
        }
        if self.dimension() != Dimension::Usd {
            write!(f, " of={}", self.dimension())?;
        }
        write!(f, " limit={} spent={} reserved={}", self.limit, self.settled, self.reserved)?;
        if !matches!(self.overrun, Quantity::Usd(MicroUsd(0)) | Quantity::Tokens(0) | Quantity::Tasks(0)) {
            write!(f, " overrun={}", self.overrun)?;
        }
        write!(f, " requested={}", self.requested)
    }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())?;
        match self {
            Self::QueueFull { scope, max_queue_depth } => write!(f, " {} max_queue_depth={max_queue_depth}", Assigned(scope)),
            _ => self.shortage().map_or(Ok(()), |shortage| write!(f, " {shortage}")),
        }
    }
}

impl std::error::Error for BudgetError {}
