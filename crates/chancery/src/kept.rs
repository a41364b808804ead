//! Where a node keeps its tasks and webhooks, and the key of its seals: in a data folder, or for as long as it runs.

use std::sync::Arc;

use chancery_core::push::Outbox;
use chancery_core::{Scribe, Store};
use chancery_identity::SealKey;
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};

use crate::build_error::BuildError;
use crate::data_folder::DataFolder;

pub(crate) struct Kept {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, as webhooks see it.
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) key: SealKey,
}

impl Kept {
    pub(crate) fn open(
        folder: Option<&DataFolder>,
        options: SqliteOptions,
        scribe: Option<Arc<dyn Scribe>>,
    ) -> Result<Self, BuildError> {
        let Some(folder) = folder else {
            let store = Arc::new(MemoryStore::new());
            let key = SealKey::new(&SealKey::random_bytes()?)?;
            return Ok(Self { store: store.clone(), outbox: store, key });
        };
        let store = Arc::new(SqliteStore::open_recording(folder.database(), options, scribe)?);
        Ok(Self { store: store.clone(), outbox: store, key: folder.seal_key()? })
    }
}
