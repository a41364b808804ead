//! All counters of a ledger, in one table behind one lock.
//!
//! One lock, because a reservation takes all its scopes or none and must never be seen half made. With a lock for each scope
//! a call would take as many as it has scopes, in an order, and hold all of them; the time is the lock, not the adding, so
//! that is slower for one thread and no better for many, who meet at the global scope anyway. Counters without locks cannot
//! take several scopes at once: they add first and take back, and a neighbour is refused for what was never spent.
//! `cargo xtask bench --only ledger` shows what it costs.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::amount::Caps;
use super::counters::Counters;
use super::scope::Limit;

/// So often the lock is tried before its thread is put to sleep. It is held for some tens of nanoseconds; sleeping and being
/// woken takes a hundred times as long, and whoever is woken keeps the next ones waiting.
const TRIES: u32 = 200;

#[derive(Debug, Default)]
pub(super) struct Books {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Counters>,
    unused: Vec<usize>,
    /// The time of the last entry: for what ends without anybody saying when.
    latest: i64,
}

impl Books {
    #[inline]
    pub(super) fn open(&self) -> MutexGuard<'_, Table> {
        match self.table.try_lock() {
            Ok(table) => table,
            Err(_) => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, Table> {
        for tried in 1..=TRIES {
            match self.table.try_lock() {
                Ok(table) => return table,
                // Nothing under the lock panics half way through a change.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..tried.min(32)).for_each(|_| std::hint::spin_loop()),
            }
        }
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
}
