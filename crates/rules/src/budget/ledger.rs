//! The ledger: reserves, raises, settles and releases in all scopes of a call or in none.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chancery_protocol::Timestamp;
use foldhash::fast::RandomState;

use super::account::{Account, Accounts};
use super::amount::{Amount, AmountCounts, Caps, Dimension, Quantity};
use super::books::{Books, Table};
use super::counters::left;
use super::error::{BudgetError, Shortage};
use super::reservation::{Estimate, Reservation, SettledReservation};
use super::scope::{BudgetScope, Limit};
use super::share::UnknownShare;

/// What is spent and held in each scope. The rules are at the head of this module.
#[derive(Debug, Default)]
pub struct BudgetLedger {
    pub(super) books: Arc<Books>,
    accounts: RwLock<OpenAccounts>,
}

#[derive(Debug, Default)]
struct OpenAccounts {
    by_scope: HashMap<BudgetScope, Account, RandomState>,
    /// With so many accounts, those that are empty are forgotten.
    tidy_at: usize,
}

/// With fewer accounts none is forgotten, however empty it is.
const FEW_ACCOUNTS: usize = 1024;

/// Callers and tenants that no list has get accounts of their own up to this number of accounts.
pub const MOST_ACCOUNTS: usize = 65_536;

/// Where a scope stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetStanding {
    /// The caps and their window.
    pub limit: Limit,
    /// Within the window, as all of them.
    pub settled: Amount,
    /// The amount that open tasks have reserved.
    pub reserved: Amount,
    /// The amount over the caps.
    pub overrun: Amount,
}

impl BudgetLedger {
    pub fn new() -> Self {
        Self::default()
    }

    /// The counters of a scope, made with this limit if they do not exist. Existing counters keep their
    /// limit: see `set_limit`.
    pub fn account(&self, scope: &BudgetScope, limit: Limit) -> Account {
        if let Some(account) = self.find(scope) {
            return account;
        }
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        if accounts.by_scope.len() >= accounts.tidy_at.max(FEW_ACCOUNTS) {
            self.tidy(&mut accounts);
        }
        let account = accounts.by_scope.entry(scope.clone());
        account.or_insert_with_key(|scope| Account::new(&self.books, scope.clone(), limit)).clone()
    }

    /// Forgets the accounts that no call holds and whose window has nothing left in it: names that callers invent leave
    /// nothing behind. The next look waits until there are twice as many, so that an account costs the same however many there are.
    fn tidy(&self, accounts: &mut OpenAccounts) {
        let mut table = self.books.open();
        let now = table.latest();
        let mut is_needed = |account: &Account| !account.is_unused() || !table.row(account.row()).are_empty(now);
        // Dropped without the lock that their rows are given back under.
        let gone: Vec<_> = accounts.by_scope.extract_if(|_, account| !is_needed(account)).collect();
        drop(table);
        drop(gone);
        accounts.tidy_at = 2 * accounts.by_scope.len();
    }

    /// Whether a scope has an account or may be given one of its own.
    pub fn has_room_for(&self, scope: &BudgetScope) -> bool {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.by_scope.len() < MOST_ACCOUNTS || accounts.by_scope.contains_key(scope)
    }

    pub fn find(&self, scope: &BudgetScope) -> Option<Account> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).by_scope.get(scope).cloned()
    }

    /// All that are not forgotten, by scope.
    pub fn all(&self) -> Vec<Account> {
        let mut all: Vec<_> = self.accounts.read().unwrap_or_else(PoisonError::into_inner).by_scope.values().cloned().collect();
        all.sort_by(|one, other| one.scope().cmp(other.scope()));
        all
    }

    /// Counters stay as they are. Under a smaller cap, what is too much is not taken back: nothing more is reserved until it fits.
    pub fn set_limit(&self, account: &Account, limit: Limit, now: Timestamp) {
        self.open([account]).row(account.row()).set_limit(limit, now.micros());
    }

    /// A scope that is over, such as a tree. Reservations in it end as they would have.
    pub fn forget(&self, scope: &BudgetScope) {
        let forgotten = self.accounts.write().unwrap_or_else(PoisonError::into_inner).by_scope.remove(scope);
        drop(forgotten);
    }

    /// Holds an amount in every one of the scopes, or in none and says which was the first that has not enough left.
    pub fn reserve(&self, accounts: &Accounts, estimate: Estimate, now: Timestamp) -> Result<Reservation, BudgetError> {
        if accounts.is_empty() {
            return Ok(Reservation::new(accounts.clone(), estimate.without_caps(), estimate.keeps(), false));
        }
        let mut table = self.open(accounts.iter());
        let held = hold(&mut table, accounts, estimate, now.micros())?;
        drop(table);
        Ok(Reservation::new(accounts.clone(), held, estimate.keeps(), false))
    }

    /// Holds up to so much more, as far as it is free in every scope now, and says how much that was.
    pub fn raise(&self, reservation: &mut Reservation, wanted: Amount, now: Timestamp) -> Amount {
        let mut table = self.open(reservation.accounts().iter());
        hold_more(&mut table, reservation, wanted.counts(), now.micros()).amount()
    }

    /// What it cost, now that this is known. Beyond what was held it is an overrun. Tasks count as they were reserved.
    pub fn settle(&self, mut reservation: Reservation, actual: Amount, now: Timestamp) -> SettledReservation {
        let held = reservation.held();
        let mut actual = actual.counts();
        actual.0[Dimension::Tasks as usize] = held.0[Dimension::Tasks as usize];
        if reservation.accounts().is_empty() {
            return SettledReservation { settled: actual.amount(), overrun: Amount::default() };
        }
        let mut table = self.open(reservation.accounts().iter());
        table.note(now.micros());
        let mut caps = AmountCounts([u64::MAX; 3]);
        for account in reservation.accounts().iter() {
            caps = caps.each(table.row(account.row()).caps(), u64::min);
        }
        let mut settled = actual.each(held, u64::min);
        for at in Dimension::ALL.map(|dimension| dimension as usize) {
            if caps.0[at] == u64::MAX {
                // Where there is no cap nothing needs to be held, and nothing can be overrun.
                settled.0[at] = actual.0[at];
            } else if reservation.lent().0[at] > 0 {
                // What it lent and came back is its own again.
                let back = free(&mut table, reservation.accounts(), now.micros()).0[at].min(reservation.lent().0[at]);
                settled.0[at] = actual.0[at].min(held.0[at].saturating_add(back));
            }
        }
        let overrun = actual.minus(settled);
        for account in reservation.accounts().iter() {
            let counters = table.row(account.row());
            counters.release(held);
            counters.settle(settled, overrun, now.micros());
        }
        drop(table);
        reservation.close();
        SettledReservation { settled: settled.amount(), overrun: overrun.amount() }
    }

    /// A call of which nothing more will be heard costs what was held for it, or what it said last if that is more.
    pub fn expire(&self, reservation: Reservation, last_reported: Amount, now: Timestamp) -> SettledReservation {
        let actual = reservation.amount().max(last_reported);
        self.settle(reservation, actual, now)
    }

    /// Nothing was spent: refused later, never dispatched, or failed before any work.
    pub fn release(&self, mut reservation: Reservation) {
        let held = reservation.held();
        let mut table = self.open(reservation.accounts().iter());
        for account in reservation.accounts().iter() {
            table.row(account.row()).release(held);
        }
        drop(table);
        reservation.close();
    }

    /// What is left of the smallest cap in each dimension; none where no scope has one.
    pub fn remaining(&self, accounts: &Accounts, now: Timestamp) -> Caps {
        if accounts.is_empty() {
            return Caps::NONE;
        }
        let mut table = self.open(accounts.iter());
        accounts.iter().map(|account| table.row(account.row()).free(now.micros())).fold(Caps::NONE, Caps::narrowed)
    }

    /// How much of a cap that callers have in common one call of unknown cost may hold, from now on.
    pub fn set_unknown_share(&self, share: UnknownShare) {
        self.books.open().set_unknown_share(share);
    }

    /// The most that one call of unknown cost may hold in any of these scopes, or a call whose hint raised
    /// its estimate.
    pub fn most_unknown(&self, accounts: &Accounts) -> Caps {
        Caps::of(most_unknown(&mut self.open(accounts.iter()), accounts))
    }

    pub fn standing(&self, account: &Account, now: Timestamp) -> BudgetStanding {
        let mut table = self.open([account]);
        let counters = table.row(account.row());
        counters.taken(now.micros());
        BudgetStanding {
            limit: counters.limit(),
            settled: counters.settled().amount(),
            reserved: counters.reserved().amount(),
            overrun: counters.overrun().amount(),
        }
    }

    /// Accounts of another ledger have other rows.
    #[inline]
    pub(super) fn open<'a>(&self, accounts: impl IntoIterator<Item = &'a Account>) -> std::sync::MutexGuard<'_, Table> {
        debug_assert!(accounts.into_iter().all(|account| account.is_in(&self.books)), "accounts of this ledger");
        self.books.open()
    }
}

/// Holds an estimate in every account, or in none. Answers what it came to.
#[inline]
pub(super) fn hold(table: &mut Table, accounts: &Accounts, estimate: Estimate, now: i64) -> Result<AmountCounts, BudgetError> {
    let (mut held, unknown) = estimate.parts();
    table.note(now);
    let mut free = AmountCounts([u64::MAX; 3]);
    let mut fits = true;
    for account in accounts.iter() {
        let counters = table.row(account.row());
        let (taken, caps) = (counters.taken(now), counters.caps());
        fits &= taken.plus(held).fits(caps);
        free = free.each(caps.each(taken, left), u64::min);
    }
    if !fits && let Some(refused) = shortage(table, accounts, held, now) {
        return Err(refused);
    }
    if unknown != [false; 3] {
        let most = free.each(most_unknown(table, accounts), u64::min);
        for at in Dimension::ALL.map(|dimension| dimension as usize).into_iter().filter(|at| unknown[*at]) {
            // Where there is no cap, nothing needs to be held.
            held.0[at] = if free.0[at] == u64::MAX { 0 } else { held.0[at].max(most.0[at]) };
        }
    }
    for account in accounts.iter() {
        table.row(account.row()).reserve(held);
    }
    Ok(held)
}

/// What one call of unknown cost may hold: a share of each cap that callers have in common.
fn most_unknown(table: &mut Table, accounts: &Accounts) -> AmountCounts {
    let share = table.unknown_share();
    let mut most = AmountCounts([u64::MAX; 3]);
    for account in accounts.iter().filter(|account| account.scope().is_shared()) {
        let caps = table.row(account.row()).caps();
        most = most.each(AmountCounts(caps.0.map(|cap| share.of(cap))), u64::min);
    }
    most
}

/// Holds as much of what is wanted as is free in every account.
pub(super) fn hold_more(table: &mut Table, reservation: &mut Reservation, wanted: AmountCounts, now: i64) -> AmountCounts {
    let accounts = reservation.accounts().clone();
    table.note(now);
    let granted = wanted.each(free(table, &accounts, now), u64::min);
    for account in accounts.iter() {
        table.row(account.row()).reserve(granted);
    }
    reservation.hold_more(granted);
    granted
}

/// What is left in every account.
pub(super) fn free(table: &mut Table, accounts: &Accounts, now: i64) -> AmountCounts {
    let mut free = AmountCounts([u64::MAX; 3]);
    for account in accounts.iter() {
        let counters = table.row(account.row());
        let taken = counters.taken(now);
        free = free.each(counters.caps().each(taken, left), u64::min);
    }
    free
}

/// Why `wanted` does not fit: the first scope in the order they were given, and in it the first dimension.
#[cold]
fn shortage(table: &mut Table, accounts: &Accounts, wanted: AmountCounts, now: i64) -> Option<BudgetError> {
    let mut first = None;
    let mut retry_after = Some(std::time::Duration::ZERO);
    for account in accounts.iter() {
        let counters = table.row(account.row());
        let (taken, caps) = (counters.taken(now), counters.caps());
        for dimension in Dimension::ALL {
            let at = dimension as usize;
            let (taken, cap, wanted) = (taken.0[at], caps.0[at], wanted.0[at]);
            // Sums stop at the end, and there is no cap there.
            if taken.saturating_add(wanted) <= cap {
                continue;
            }
            // It fits when it fits everywhere.
            retry_after = retry_after.and_then(|longest| Some(longest.max(counters.until_fits(at, wanted, now)?)));
            let quantity = |count| Quantity::new(dimension, count);
            first.get_or_insert_with(|| {
                let shortage = Shortage {
                    scope: account.scope().clone(),
                    window: counters.limit().window,
                    limit: quantity(cap),
                    settled: quantity(counters.settled().0[at]),
                    reserved: quantity(counters.reserved().0[at]),
                    overrun: quantity(counters.overrun().0[at]),
                    requested: quantity(wanted),
                    retry_after: None,
                };
                (shortage, quantity(taken))
            });
        }
    }
    first.map(|(shortage, observed)| BudgetError::new(Shortage { retry_after, ..shortage }, observed))
}
