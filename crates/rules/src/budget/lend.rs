//! A call of unknown cost reserves the whole budget, and lends it to the calls that are made for it.
//!
//! Without that, work of unknown price could pass none of its budget to its subtasks. Lent money that is not
//! spent is free again, and the lender may take it when it needs it.

use chancery_protocol::Timestamp;

use super::account::Accounts;
use super::amount::Amount;
use super::books::Table;
use super::error::BudgetError;
use super::ledger::{BudgetLedger, free, hold, hold_more};
use super::reservation::{Estimate, Reservation};

impl BudgetLedger {
    /// As `reserve`, out of what is free and what the lender can do without.
    pub fn reserve_from(
        &self,
        lender: &mut Reservation,
        accounts: &Accounts,
        estimate: Estimate,
        now: Timestamp,
    ) -> Result<Reservation, BudgetError> {
        let mut table = self.open(accounts.iter().chain(lender.accounts().iter()));
        let held = lending(&mut table, lender, now, |table| hold(table, accounts, estimate, now.micros()));
        drop(table);
        held.map(|held| Reservation::new(accounts.clone(), held, estimate.keeps(), false))
    }

    /// As `raise`, out of the same.
    pub fn raise_from(&self, lender: &mut Reservation, reservation: &mut Reservation, wanted: Amount, now: Timestamp) -> Amount {
        let mut table = self.open(lender.accounts().iter());
        lending(&mut table, lender, now, |table| hold_more(table, reservation, wanted.counts(), now.micros())).amount()
    }
}

/// The table is locked meanwhile, so no other call gets the lent money.
fn lending<T>(table: &mut Table, lender: &mut Reservation, now: Timestamp, take: impl FnOnce(&mut Table) -> T) -> T {
    let lent = lender.to_lend();
    let accounts = lender.accounts().clone();
    accounts.iter().for_each(|account| table.row(account.row()).release(lent));
    let taken = take(table);
    let kept = lent.each(free(table, &accounts, now.micros()), u64::min);
    accounts.iter().for_each(|account| table.row(account.row()).reserve(kept));
    lender.lend(lent.minus(kept));
    taken
}
