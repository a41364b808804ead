//! What is held for a turn, where the calls that are made for it can reach it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::Timestamp;
use chancery_rules::budget::{Accounts, Amount, BudgetError, BudgetLedger, Estimate, Reservation};

use super::node::TreeNode;

/// A holder of two of these locks the one further down the tree first.
#[derive(Debug)]
pub(crate) struct HeldBudget(Mutex<Option<Reservation>>);

impl HeldBudget {
    pub(crate) fn new(reservation: Reservation) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(reservation))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reservation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn amount(&self) -> Amount {
        self.lock().as_ref().map_or_else(Amount::default, Reservation::amount)
    }

    pub(crate) fn accounts(&self) -> Accounts {
        self.lock().as_ref().map_or_else(Accounts::default, |reservation| reservation.accounts().clone())
    }

    /// What it can do without.
    pub(crate) fn lendable(&self) -> Amount {
        self.lock().as_ref().map_or_else(Amount::default, Reservation::lendable)
    }

    pub(crate) fn dispatched(&self) {
        if let Some(reservation) = &mut *self.lock() {
            reservation.dispatched();
        }
    }

    /// The reservation, to be ended.
    pub(crate) fn take(&self) -> Option<Reservation> {
        self.lock().take()
    }

    /// Holds up to so much more: of what is free, and of what those further up can do without.
    pub(crate) fn raise(&self, node: &TreeNode, ledger: &BudgetLedger, wanted: Amount, now: Timestamp) -> Amount {
        let mut held = self.lock();
        let Some(reservation) = &mut *held else { return Amount::default() };
        let mut more = ledger.raise(reservation, wanted, now);
        for lender in node.upwards().skip(1).filter_map(TreeNode::held) {
            let missing = wanted.saturating_sub(more);
            if missing == Amount::default() {
                break;
            }
            if let Some(lender) = &mut *lender.lock() {
                more = more.saturating_add(ledger.raise_from(lender, reservation, missing, now));
            }
        }
        more
    }
}

/// Holds an amount for a call out of what the task it is made for, or one further up, can do without.
pub(crate) fn borrow(
    parent: &TreeNode,
    ledger: &BudgetLedger,
    accounts: &Accounts,
    estimate: Estimate,
    now: Timestamp,
) -> Result<Option<Reservation>, BudgetError> {
    let mut refusal = None;
    for lender in parent.upwards().filter_map(TreeNode::held) {
        let mut lender = lender.lock();
        let Some(lender) = lender.as_mut().filter(|lender| lender.lendable() != Amount::default()) else { continue };
        match ledger.reserve_from(lender, accounts, estimate, now) {
            Ok(reservation) => return Ok(Some(reservation)),
            Err(error) => refusal = Some(error),
        }
    }
    refusal.map_or(Ok(None), Err)
}
