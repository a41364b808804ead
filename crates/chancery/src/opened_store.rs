//! Where a node keeps its tasks: in its data folder, in a PostgreSQL database, or in memory for as long as it runs.

use std::sync::Arc;

use chancery_core::push::Outbox;
use chancery_core::{Scribe, Store};
use chancery_evidence::record::Recorder;
use chancery_identity::SealKey;
use chancery_store::{MemoryStore, PostgresOptions, SqliteOptions, SqliteStore};

use crate::build_error::BuildError;
use crate::data_folder::DataFolder;
use crate::postgres_node::{self, Takeover};

/// Where a node keeps its tasks.
#[derive(Clone)]
pub(crate) enum StoreChoice {
    /// In the data folder, or in memory for a node without a folder.
    Folder,
    /// In a PostgreSQL database. Keys and secrets stay in the data folder.
    Database(PostgresOptions),
    /// In memory, although there may be a folder.
    Memory,
    /// In a store of the program.
    Own { store: Arc<dyn Store>, outbox: Arc<dyn Outbox> },
}

/// One store, by both of its ports, with the key that seals what callers are given of it.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) key: SealKey,
    /// Tells when another node has taken the store over.
    pub(crate) takeover: Option<Takeover>,
}

impl OpenedStore {
    pub(crate) async fn open(
        choice: &StoreChoice,
        folder: Option<&DataFolder>,
        options: &SqliteOptions,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<Self, BuildError> {
        let random_key = || SealKey::new(&SealKey::random_bytes()?);
        if let StoreChoice::Own { store, outbox } = choice {
            let key = folder.map_or_else(|| random_key().map_err(BuildError::from), |folder| Ok(folder.seal_key()?))?;
            return Ok(Self { store: Arc::clone(store), outbox: Arc::clone(outbox), key, takeover: None });
        }
        let scribe = recorder.map(|recorder| recorder as Arc<dyn Scribe>);
        if let (StoreChoice::Database(options), Some(folder)) = (choice, folder) {
            return postgres_node::open(options.clone(), scribe, folder.seal_key()?).await;
        }
        let Some(folder) = folder.filter(|_| !matches!(choice, StoreChoice::Memory)) else {
            let store = Arc::new(MemoryStore::new());
            return Ok(Self { store: store.clone(), outbox: store, key: random_key()?, takeover: None });
        };
        let store = Arc::new(SqliteStore::open_recording(folder.database(), *options, scribe)?);
        Ok(Self { store: store.clone(), outbox: store, key: folder.seal_key()?, takeover: None })
    }
}
