//! Where a node keeps its tasks: in its data folder, or in memory for as long as it runs.

use std::sync::Arc;

use chancery_core::push::Outbox;
use chancery_core::{Scribe, Store};
use chancery_evidence::record::Recorder;
use chancery_identity::SealKey;
use chancery_store::{MemoryStore, SqliteOptions, SqliteStore};

use crate::build_error::BuildError;
use crate::data_folder::DataFolder;

/// One store, by both of its ports, with the key that seals what callers are given of it.
pub(crate) struct OpenedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) key: SealKey,
}

impl OpenedStore {
    pub(crate) fn open(
        folder: Option<&DataFolder>,
        options: &SqliteOptions,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<Self, BuildError> {
        let Some(folder) = folder else {
            let store = Arc::new(MemoryStore::new());
            return Ok(Self { store: store.clone(), outbox: store, key: SealKey::new(&SealKey::random_bytes()?)? });
        };
        let scribe = recorder.map(|recorder| recorder as Arc<dyn Scribe>);
        let store = Arc::new(SqliteStore::open_recording(folder.database(), *options, scribe)?);
        Ok(Self { store: store.clone(), outbox: store, key: folder.seal_key()? })
    }
}
