//! Budgets that are not overshot: what a call may cost is held in all its scopes before it is made, and settled when it ended.
//!
//! | step | effect in every scope of the call |
//! |---|---|
//! | reserve | refused, and nothing changed, unless `settled + reserved + overrun + estimate ≤ cap` in all of them |
//! | raise | as much more is held as is free in all of them |
//! | settle | what was held is let go; the actual cost is settled up to what was held, the rest is overrun |
//! | expire | settled at what was held or last reported, whichever is more |
//! | release | what was held is let go |
//! | lend | who holds all there was gives of it to the calls made for it, and may take what comes back |
//! | remainder | of unknown cost, all that is left is held; of what others are charged to as well, at most `budget.unknown_share` |
//!
//! So settled and reserved together never pass a cap. An overrun stands beside them and blocks later reservations until it is
//! absorbed: in a sliding window it leaves as a settled amount of the same moment would, in a tree it stays as long as the tree.
//!
//! A window slides by sixtieths, and a sixtieth counts until all of it is out, so a burst across a minute's
//! end cannot double a cap. Nothing here reads a clock. Every `now` comes from a monotonic clock, so that
//! setting the wall clock frees nothing. Should it go back all the same, it forgives nothing (`sliding.rs`).

mod account;
mod actual;
mod amount;
mod books;
mod config;
mod counters;
mod error;
mod estimate;
mod ledger;
mod lend;
mod observed;
mod queue;
mod reservation;
mod restore;
mod scope;
mod share;
mod sliding;

pub use self::account::{Account, Accounts};
pub use self::actual::{
    Actual, ActualFacts, ActualSource, Ignored, IgnoredBecause, MOST_TOKENS, Reportable, Reported, ReportedCost, actual,
};
pub use self::amount::{Amount, Caps, Dimension, Quantity};
pub use self::config::{BudgetConfig, EVERYBODY_ELSE, GlobalBudget, OverflowPolicy, ScopeBudget, TreeBudget};
pub use self::error::{BudgetError, Shortage};
pub use self::estimate::{EstimateFacts, EstimateSource, Estimated, HINT_AT_MOST, Price, estimate, room};
pub use self::ledger::{BudgetLedger, BudgetStanding, MOST_ACCOUNTS};
pub use self::observed::{CALM_CALLS, LearntCost, OBSERVED_CALLS, ObservedCost};
pub use self::queue::{BudgetQueue, BudgetQueueTicket};
pub use self::reservation::{Estimate, Reservation, SettledReservation};
pub use self::scope::{BudgetScope, BudgetWindow, Limit};
pub use self::share::UnknownShare;
