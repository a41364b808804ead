//! After a restart: what the store kept is put back. Caps are not asked; they were when it happened.

use chancery_protocol::Timestamp;

use super::account::Accounts;
use super::amount::{Amount, AmountCounts};
use super::ledger::BudgetLedger;
use super::reservation::{Reservation, SettledReservation};

impl BudgetLedger {
    /// What was settled at `at`, with its overrun. What is out of a scope's window by now is left out of that scope.
    pub fn restore_settled(&self, accounts: &Accounts, was: SettledReservation, at: Timestamp, now: Timestamp) {
        let mut table = self.open(accounts.iter());
        for account in accounts.iter() {
            let counters = table.row(account.row());
            counters.restore(was.settled.counts(), was.overrun.counts(), at.micros(), now.micros());
        }
        table.note(now.micros());
    }

    /// A reservation that was open. It counts as dispatched: what it spent is not known.
    pub fn restore_reservation(&self, accounts: &Accounts, held: Amount) -> Reservation {
        let held = held.counts();
        let mut table = self.open(accounts.iter());
        accounts.iter().for_each(|account| table.row(account.row()).reserve(held));
        drop(table);
        Reservation::new(accounts.clone(), held, AmountCounts([u64::MAX; 3]), true)
    }

    /// The same for one that held all there was and may have lent it: it gets what the others have left of that. To be called
    /// after all others.
    pub fn restore_remainder(&self, accounts: &Accounts, held: Amount, now: Timestamp) -> Reservation {
        let tasks = Amount { tasks: held.tasks, ..Amount::default() };
        let mut reservation = self.restore_reservation(accounts, tasks);
        self.raise(&mut reservation, Amount { tasks: 0, ..held }, now);
        reservation.can_lend();
        reservation
    }
}
