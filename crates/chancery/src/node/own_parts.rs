//! Parts that a program gives a node: where tasks are kept, the clock, and rules of the policy.

use std::path::PathBuf;
use std::sync::Arc;

use chancery_core::push::Outbox;
use chancery_core::{Clock, Store};
use chancery_rules::policy::{Expression, RuleKind};
use chancery_store::PostgresOptions;

use super::NodeBuilder;
use crate::build_error::BuildError;
use crate::node_parts::{OwnRule, StoreWrapper};
use crate::opened_store::StoreChoice;

/// The storage settings of a builder, in any order.
#[derive(Default)]
pub(super) struct Storage {
    own: Option<(Arc<dyn Store>, Arc<dyn Outbox>)>,
    in_memory: bool,
    sqlite: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl Storage {
    /// Returns the data folder, and where tasks are kept. Two answers to one question are an error, also if the config
    /// has one of them.
    pub(super) fn settle(
        self,
        configured: Option<PathBuf>,
        database: Option<PostgresOptions>,
    ) -> Result<(Option<PathBuf>, StoreChoice), BuildError> {
        let Self { own, in_memory, sqlite, data } = self;
        if let (Some(sqlite), Some(data)) = (&sqlite, &data)
            && sqlite != data
        {
            return Err(BuildError::Contradiction("sqlite() and data() name different folders"));
        }
        if let (Some(given), Some(configured)) = (sqlite.as_ref().or(data.as_ref()), &configured)
            && given != configured
        {
            return Err(BuildError::Contradiction("sqlite() or data() names another folder than data of the config"));
        }
        let choice = match (own.is_some(), in_memory, sqlite.is_some()) {
            (true, true, _) => return Err(BuildError::Contradiction("both store() and memory() set the store of tasks")),
            (true, _, true) => return Err(BuildError::Contradiction("both store() and sqlite() set the store of tasks")),
            (_, true, true) => return Err(BuildError::Contradiction("both memory() and sqlite() set the store of tasks")),
            (own, memory, sqlite) if database.is_some() && (own || memory || sqlite) => {
                let both = "store(), memory() or sqlite() sets the store of tasks, and store.url of the config another one";
                return Err(BuildError::Contradiction(both));
            }
            _ => match (own, database) {
                (Some((store, outbox)), _) => StoreChoice::Own { store, outbox },
                (None, _) if in_memory => StoreChoice::Memory,
                (None, Some(database)) => StoreChoice::Database(database),
                (None, None) => StoreChoice::Folder,
            },
        };
        if matches!(choice, StoreChoice::Database(_)) && sqlite.is_none() && data.is_none() && configured.is_none() {
            let homeless = "store.url of the config keeps tasks in a database, and keys and secrets need a folder: call data()";
            return Err(BuildError::Contradiction(homeless));
        }
        Ok((sqlite.or(data).or(configured), choice))
    }

    pub(super) fn folder(&self) -> Option<&PathBuf> {
        self.sqlite.as_ref().or(self.data.as_ref())
    }
}

impl NodeBuilder {
    /// Keeps tasks and webhooks in a store of the program, which implements both ports.
    ///
    /// `memory` or `sqlite` beside it is an error. `data` still names the folder of the node's keys. The node keeps a record of
    /// evidence if [`Store::record`] returns one.
    pub fn store<S: Store + Outbox + 'static>(mut self, store: Arc<S>) -> Self {
        let given = self.storage.own.replace((store.clone(), store));
        self.once("store", given.is_none());
        self
    }

    /// Keeps tasks in memory only.
    pub fn memory(mut self) -> Self {
        self.storage.in_memory = true;
        self
    }

    /// Keeps tasks in a SQLite database in this folder, with the node's keys and the operator's token.
    pub fn sqlite(mut self, folder: impl Into<PathBuf>) -> Self {
        let given = self.storage.sqlite.replace(folder.into());
        self.once("sqlite", given.is_none());
        self
    }

    /// Keeps the node's keys and the operator's token in this folder. Tasks are there too, unless `memory` or `store` is
    /// called, or the config has `store.url`. `data` of the config does the same. Both must name the same folder.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        let given = self.storage.data.replace(folder.into());
        self.once("data", given.is_none());
        self
    }

    /// Puts a store of the program in front of the node's store, for example to count or delay calls. Webhooks use the inner
    /// store directly.
    pub fn wrap_store(mut self, wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        let wrap: StoreWrapper = Arc::new(wrap);
        self.store_wrapper = Some(match self.store_wrapper.take() {
            Some(inner) => Arc::new(move |store| wrap(inner(store))),
            None => wrap,
        });
        self
    }

    /// Takes the time from a clock of the program. Budgets, retention, tokens and timestamps use it; timeouts of
    /// sockets do not.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        let given = self.clock.replace(clock);
        self.once("clock", given.is_none());
        self
    }

    /// Adds a rule of the program to the policy, behind those of the config. It stays after a reload.
    ///
    /// `chancery explain` shows the name. Two rules with one name are an error.
    pub fn policy(mut self, name: impl Into<Arc<str>>, kind: RuleKind, condition: impl Expression + 'static) -> Self {
        self.policies.push(OwnRule { name: name.into(), kind, condition: Arc::new(condition) });
        self
    }
}
