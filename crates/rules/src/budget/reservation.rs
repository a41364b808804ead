//! What is held for a call until it is known what it cost.

use super::account::Accounts;
use super::amount::{Amount, Counts};
use crate::MicroUsd;

/// What a call is thought to take. What is not known is all that remains of the smallest cap on it, or nothing where none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Estimate {
    pub usd: Option<MicroUsd>,
    pub tokens: Option<u64>,
    pub tasks: u64,
}

impl Estimate {
    /// One task of which nothing is known.
    pub const REMAINDER: Self = Self { usd: None, tokens: None, tasks: 1 };

    pub const fn known(amount: Amount) -> Self {
        Self { usd: Some(amount.usd), tokens: Some(amount.tokens), tasks: amount.tasks }
    }

    /// What is held where there is no cap on anything.
    #[inline]
    pub(super) fn without_caps(self) -> Counts {
        Amount { usd: self.usd.unwrap_or_default(), tokens: self.tokens.unwrap_or_default(), tasks: self.tasks }.counts()
    }

    /// What is asked for at least, and of which dimensions more is taken.
    #[inline]
    pub(super) fn parts(self) -> (Counts, [bool; 3]) {
        let usd = self.usd.map_or(1, |usd| u64::try_from(usd.0).unwrap_or(0));
        (Counts([usd, self.tokens.unwrap_or(1), self.tasks]), [self.usd.is_none(), self.tokens.is_none(), false])
    }
}

impl From<Amount> for Estimate {
    fn from(amount: Amount) -> Self {
        Self::known(amount)
    }
}

/// How a reservation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settled {
    /// Never more than was reserved, except of what no scope has a cap on.
    pub settled: Amount,
    /// What it cost beyond that.
    pub overrun: Amount,
}

/// An amount that is held in all scopes of a call. It ends in `BudgetLedger::settle`, `expire` or `release`.
///
/// Dropped without one of them it ends as well: before it was dispatched it is released, as nothing can have been spent; after
/// that all of it counts as spent, because nobody knows better.
#[must_use = "dropped, it is released"]
#[derive(Debug)]
pub struct Reservation {
    accounts: Accounts,
    held: Counts,
    /// Of what all that was left is held, because nobody knows how much is needed.
    remainder: [bool; 3],
    /// What others got of it.
    lent: Counts,
    dispatched: bool,
    open: bool,
}

impl Reservation {
    #[inline]
    pub(super) fn new(accounts: Accounts, held: Counts, remainder: [bool; 3], dispatched: bool) -> Self {
        Self { accounts, held, remainder, lent: Counts::default(), dispatched, open: true }
    }

    /// What is held now.
    pub fn amount(&self) -> Amount {
        self.held.amount()
    }

    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The call is on its way: from now on something may be spent.
    pub fn dispatched(&mut self) {
        self.dispatched = true;
    }

    pub fn is_dispatched(&self) -> bool {
        self.dispatched
    }

    #[inline]
    pub(super) fn held(&self) -> Counts {
        self.held
    }

    #[inline]
    pub(super) fn lent(&self) -> Counts {
        self.lent
    }

    /// The part that nobody asked for: others can have it if they need it.
    pub fn lendable(&self) -> Amount {
        self.to_lend().amount()
    }

    pub(super) fn to_lend(&self) -> Counts {
        let mut lendable = self.held;
        for (count, remainder) in lendable.0.iter_mut().zip(self.remainder) {
            *count = if remainder { *count } else { 0 };
        }
        lendable
    }

    /// It was made as one that holds all there was.
    pub(super) fn can_lend(&mut self) {
        self.remainder = [true, true, false];
    }

    pub(super) fn lend(&mut self, amount: Counts) {
        self.held = self.held.minus(amount);
        self.lent = self.lent.plus(amount);
    }

    #[inline]
    pub(super) fn hold_more(&mut self, more: Counts) {
        self.held = self.held.plus(more);
    }

    /// It has ended; dropping it does nothing more.
    #[inline]
    pub(super) fn close(&mut self) {
        self.open = false;
    }
}

impl Drop for Reservation {
    #[inline]
    fn drop(&mut self) {
        if self.open {
            end(self);
        }
    }
}

#[cold]
fn end(reservation: &mut Reservation) {
    let Some(first) = reservation.accounts.first() else { return };
    let mut table = first.books().open();
    let now = table.latest();
    for account in reservation.accounts.iter() {
        let counters = table.row(account.row());
        counters.release(reservation.held);
        if reservation.dispatched {
            counters.settle(reservation.held, Counts::default(), now);
        }
    }
}
