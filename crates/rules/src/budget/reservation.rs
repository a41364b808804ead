//! What is held for a call until it is known what it cost.

use super::account::Accounts;
use super::amount::{Amount, AmountCounts};
use super::estimate::Price;
use crate::MicroUsd;

/// What a call is thought to take. What is not known is the remainder: all that is left of the smallest cap
/// on it, or nothing where no cap is. Of the cap of a tenant or of the node, a remainder takes no more than
/// the ledger's [`UnknownShare`](super::UnknownShare).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Estimate {
    pub usd: Option<MicroUsd>,
    pub tokens: Option<u64>,
    pub tasks: u64,
    /// What it is expected to cost by all that is known but the caller's hint. A remainder is no less than
    /// that, and a call of which nothing is reported costs that.
    pub expected: Price,
}

impl Estimate {
    /// One task of which nothing is known.
    pub const REMAINDER: Self = Self { usd: None, tokens: None, tasks: 1, expected: Price { usd: None, tokens: None } };

    pub const fn known(amount: Amount) -> Self {
        let (usd, tokens) = (Some(amount.usd), Some(amount.tokens));
        Self { usd, tokens, tasks: amount.tasks, expected: Price { usd, tokens } }
    }

    /// What is held where there is no cap on anything.
    #[inline]
    pub(super) fn without_caps(self) -> AmountCounts {
        Amount { usd: self.usd.unwrap_or_default(), tokens: self.tokens.unwrap_or_default(), tasks: self.tasks }.counts()
    }

    /// The least amount that is requested, and the dimensions in which more is taken.
    #[inline]
    pub(super) fn parts(self) -> (AmountCounts, [bool; 3]) {
        let [least_usd, least_tokens] = self.least();
        let usd = self.usd.map_or(least_usd.max(1), |usd| u64::try_from(usd.0).unwrap_or(0));
        let tokens = self.tokens.unwrap_or(least_tokens.max(1));
        (AmountCounts([usd, tokens, self.tasks]), [self.usd.is_none(), self.tokens.is_none(), false])
    }

    /// What a call keeps of what is held for it when others borrow from it: all of what was asked for.
    #[inline]
    pub(super) fn keeps(self) -> AmountCounts {
        let [usd, tokens] = self.least();
        let of = |known: bool, least: u64| if known { u64::MAX } else { least };
        AmountCounts([of(self.usd.is_some(), usd), of(self.tokens.is_some(), tokens), u64::MAX])
    }

    #[inline]
    fn least(self) -> [u64; 2] {
        let Price { usd, tokens } = self.expected;
        [usd.map_or(0, |usd| u64::try_from(usd.0).unwrap_or(0)), tokens.unwrap_or(0)]
    }
}

impl From<Amount> for Estimate {
    fn from(amount: Amount) -> Self {
        Self::known(amount)
    }
}

/// How a reservation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SettledReservation {
    /// Never more than was reserved, except of what no scope has a cap on.
    pub settled: Amount,
    /// What it cost beyond that.
    pub overrun: Amount,
}

/// An amount that is held in all scopes of a call. It ends in `BudgetLedger::settle`, `expire` or `release`.
///
/// Dropped without one of them it ends as well. Before the dispatch it is released, as nothing can have been
/// spent. After it all of it counts as spent, because the cost is unknown.
#[must_use = "dropped, it is released"]
#[derive(Debug)]
pub struct Reservation {
    accounts: Accounts,
    held: AmountCounts,
    /// The amount that it does not lend. Where all that was left is held because the need is unknown, that is
    /// little or nothing.
    keeps: AmountCounts,
    /// What others got of it.
    lent: AmountCounts,
    dispatched: bool,
    open: bool,
}

impl Reservation {
    #[inline]
    pub(super) fn new(accounts: Accounts, held: AmountCounts, keeps: AmountCounts, dispatched: bool) -> Self {
        Self { accounts, held, keeps, lent: AmountCounts::default(), dispatched, open: true }
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
    pub(super) fn held(&self) -> AmountCounts {
        self.held
    }

    #[inline]
    pub(super) fn lent(&self) -> AmountCounts {
        self.lent
    }

    /// The part beyond the request: other calls can have it if they need it.
    pub fn lendable(&self) -> Amount {
        self.to_lend().amount()
    }

    pub(super) fn to_lend(&self) -> AmountCounts {
        self.held.minus(self.keeps)
    }

    /// It was made as one that holds all there was.
    pub(super) fn can_lend(&mut self) {
        self.keeps = AmountCounts([0, 0, u64::MAX]);
    }

    pub(super) fn lend(&mut self, amount: AmountCounts) {
        self.held = self.held.minus(amount);
        self.lent = self.lent.plus(amount);
    }

    #[inline]
    pub(super) fn hold_more(&mut self, more: AmountCounts) {
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
            counters.settle(reservation.held, AmountCounts::default(), now);
        }
    }
}
