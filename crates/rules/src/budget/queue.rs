//! The queue of a full scope, first come first served in each scope. The caller of this module does the
//! waiting.
//!
//! A ticket waits in the queue of every scope that refused it. It may try again when it is first in the queue
//! of each scope that it is charged to. So the oldest ticket may always try, and no ticket overtakes another
//! in a scope that both need. A ticket that needs none of those scopes is not delayed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::account::Accounts;
use super::error::BudgetError;
use super::scope::BudgetScope;

#[derive(Debug, Default)]
pub struct BudgetQueue {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    lines: Mutex<Lines>,
    /// How many calls wait, so that no lock is taken while the queue is empty.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Lines {
    next: u64,
    /// By the numbers of tickets, oldest first.
    waiting: BTreeMap<u64, Waiter>,
    lines: HashMap<BudgetScope, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Waiter {
    accounts: Accounts,
    stands_for: Vec<BudgetScope>,
}

/// A place in the queue; dropping it gives it up.
#[derive(Debug)]
pub struct BudgetQueueTicket {
    number: u64,
    shared: Arc<Shared>,
}

impl BudgetQueue {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a call without a ticket may try: only if no ticket waits for any of its scopes.
    pub fn is_clear(&self, accounts: &Accounts) -> bool {
        self.shared.waiting.load(Ordering::Acquire) == 0 || self.shared.lines().may_try(accounts, u64::MAX)
    }

    /// A place behind all who wait for `full`, the scope that had not enough left.
    pub fn enqueue(
        &self,
        accounts: &Accounts,
        full: &BudgetScope,
        max_queue_depth: u32,
    ) -> Result<BudgetQueueTicket, BudgetError> {
        let mut lines = self.shared.lines();
        if lines.length(full) >= max_queue_depth as usize {
            return Err(BudgetError::QueueFull { scope: full.clone(), max_queue_depth });
        }
        let number = lines.next;
        lines.next += 1;
        lines.waiting.insert(number, Waiter { accounts: accounts.clone(), stands_for: Vec::new() });
        lines.stand(number, full);
        self.shared.waiting.store(lines.waiting.len(), Ordering::Release);
        Ok(BudgetQueueTicket { number, shared: self.shared.clone() })
    }

    /// Whether it is the ticket's turn.
    pub fn may_try(&self, ticket: &BudgetQueueTicket) -> bool {
        let lines = self.shared.lines();
        lines.waiting.get(&ticket.number).is_some_and(|waiter| lines.may_try(&waiter.accounts, ticket.number))
    }

    /// It tried and was refused by `full`: it waits for that too, at the place of its own number.
    pub fn refused(&self, ticket: &BudgetQueueTicket, full: &BudgetScope) {
        self.shared.lines().stand(ticket.number, full);
    }

    /// It got what it waited for, or gave up.
    pub fn leave(&self, ticket: BudgetQueueTicket) {
        drop(ticket);
    }

    /// Whose turn it is, oldest first: who to wake when something came free.
    pub fn turns(&self) -> Vec<u64> {
        let lines = self.shared.lines();
        let turn = lines.waiting.iter().filter(|(number, waiter)| lines.may_try(&waiter.accounts, **number));
        turn.map(|(number, _)| *number).collect()
    }

    /// How many wait for a scope.
    pub fn depth(&self, scope: &BudgetScope) -> usize {
        self.shared.lines().length(scope)
    }

    pub fn len(&self) -> usize {
        self.shared.waiting.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BudgetQueueTicket {
    /// Tickets are numbered in the order they were drawn.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for BudgetQueueTicket {
    fn drop(&mut self) {
        let mut lines = self.shared.lines();
        lines.remove(self.number);
        self.shared.waiting.store(lines.waiting.len(), Ordering::Release);
    }
}

impl Shared {
    /// Nothing under the lock panics half way through a change.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn may_try(&self, accounts: &Accounts, number: u64) -> bool {
        let before = |scope: &BudgetScope| self.lines.get(scope).and_then(BTreeSet::first).is_some_and(|first| *first < number);
        !accounts.iter().any(|account| before(account.scope()))
    }

    fn stand(&mut self, number: u64, scope: &BudgetScope) {
        if let Some(waiter) = self.waiting.get_mut(&number)
            && self.lines.entry(scope.clone()).or_default().insert(number)
        {
            waiter.stands_for.push(scope.clone());
        }
    }

    fn remove(&mut self, number: u64) {
        for scope in self.waiting.remove(&number).map(|waiter| waiter.stands_for).unwrap_or_default() {
            if let Some(line) = self.lines.get_mut(&scope) {
                line.remove(&number);
                if line.is_empty() {
                    self.lines.remove(&scope);
                }
            }
        }
    }

    fn length(&self, scope: &BudgetScope) -> usize {
        self.lines.get(scope).map_or(0, BTreeSet::len)
    }
}
