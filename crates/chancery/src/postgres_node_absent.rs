//! Stands in for a PostgreSQL database in a build without the feature `postgres`: a config with `store.url` is refused.

use std::convert::Infallible;
use std::sync::Arc;

use chancery_core::{Chancery, Scribe, StoreError};
use chancery_identity::SealKey;
use chancery_store::PostgresOptions;

use crate::build_error::BuildError;
use crate::opened_store::OpenedStore;

/// No database can be opened, so no other node can take one over.
#[derive(Clone, Debug)]
pub(crate) struct Takeover(Infallible);

pub(crate) async fn open(_: PostgresOptions, _: Option<Arc<dyn Scribe>>, _: SealKey) -> Result<OpenedStore, BuildError> {
    Err(BuildError::Feature { key: "store.url".to_owned(), feature: "postgres" })
}

/// The config was refused before: nothing is left to say.
pub(crate) async fn probe(_: PostgresOptions) -> Result<(), StoreError> {
    Ok(())
}

impl Takeover {
    pub(crate) fn watch(self, _: &Chancery) {
        match self.0 {}
    }
}
