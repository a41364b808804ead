//! Handles to counters: of one scope, and of all scopes a call is charged to.

use std::ops::Deref;
use std::sync::Arc;

use super::books::Books;
use super::counters::Counters;
use super::scope::{BudgetScope, Limit};

/// The counters of one scope; a clone shares them. They last as long as a holder exists, also after the
/// ledger forgot the scope.
#[derive(Clone, Debug)]
pub struct Account(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    scope: BudgetScope,
    row: usize,
    books: Arc<Books>,
}

impl Account {
    pub(super) fn new(books: &Arc<Books>, scope: BudgetScope, limit: Limit) -> Self {
        let row = books.open().add(Counters::new(limit));
        Self(Arc::new(Entry { scope, row, books: books.clone() }))
    }

    /// Returns what the account counts.
    pub fn scope(&self) -> &BudgetScope {
        &self.0.scope
    }

    #[inline]
    pub(super) fn row(&self) -> usize {
        self.0.row
    }

    /// Whether only its ledger has it.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(super) fn is_in(&self, books: &Arc<Books>) -> bool {
        Arc::ptr_eq(&self.0.books, books)
    }

    pub(super) fn books(&self) -> &Books {
        &self.0.books
    }
}

/// The same counters.
impl PartialEq for Account {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Account {}

impl Drop for Entry {
    fn drop(&mut self) {
        self.books.open().remove(self.row);
    }
}

/// All scopes a call is charged to, each once, in the order of their evaluation. A clone shares the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts(Arc<[Account]>);

impl FromIterator<Account> for Accounts {
    fn from_iter<I: IntoIterator<Item = Account>>(accounts: I) -> Self {
        let mut once: Vec<Account> = Vec::new();
        for account in accounts {
            if !once.contains(&account) {
                once.push(account);
            }
        }
        Self(once.into())
    }
}

impl From<Account> for Accounts {
    fn from(account: Account) -> Self {
        Self(Arc::new([account]))
    }
}

impl Deref for Accounts {
    type Target = [Account];

    fn deref(&self) -> &[Account] {
        &self.0
    }
}
