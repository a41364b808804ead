//! All counters of a ledger, in one table behind one lock.
//!
//! The books have one lock, because a reservation takes all its scopes or none and must never be seen half
//! made. A lock for each scope, taken in an order and all held, has half the rate: measured with six scopes
//! on one thread. Threads meet at the global scope anyway. Trying several times before a thread sleeps gained
//! nothing over the standard lock. Counters without locks cannot take several scopes at once. They add first
//! and take back, and a neighbour is refused for what was never spent. `cargo xtask bench --only ledger`
//! shows what it costs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::amount::Caps;
use super::counters::Counters;
use super::scope::Limit;
use super::share::UnknownShare;

#[derive(Debug, Default)]
pub(super) struct Books {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Counters>,
    unused: Vec<usize>,
    /// The time of the last entry: for reservations that end without a time.
    latest: i64,
    unknown_share: UnknownShare,
}

impl Books {
    /// Nothing under the lock panics half way through a change.
    #[inline]
    pub(super) fn open(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    pub(super) fn add(&mut self, counters: Counters) -> usize {
        if let Some(row) = self.unused.pop() {
            self.rows[row] = counters;
            return row;
        }
        self.rows.push(counters);
        self.rows.len() - 1
    }

    pub(super) fn remove(&mut self, row: usize) {
        self.rows[row] = Counters::new(Limit::of_tree(Caps::NONE));
        self.unused.push(row);
    }

    /// A row is there as long as its account is.
    #[inline]
    pub(super) fn row(&mut self, row: usize) -> &mut Counters {
        &mut self.rows[row]
    }

    #[inline]
    pub(super) fn note(&mut self, now: i64) {
        self.latest = now;
    }

    pub(super) fn latest(&self) -> i64 {
        self.latest
    }

    pub(super) fn unknown_share(&self) -> UnknownShare {
        self.unknown_share
    }

    pub(super) fn set_unknown_share(&mut self, share: UnknownShare) {
        self.unknown_share = share;
    }
}
