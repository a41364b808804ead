//! Keeps the nonces of signed requests in the node's store, so that a captured request is refused after a restart too.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use chancery_core::{NonceVerdict, SpentNonce, Store};
use chancery_identity::credentials::{NonceBook, NonceDenied, NonceUse};

/// Made with the authenticator, before the store is opened. Until then every signed request is rejected.
#[derive(Debug, Default)]
pub(crate) struct StoredNonces(OnceLock<Arc<dyn Store>>);

impl StoredNonces {
    /// The first store given stays.
    pub(crate) fn keep_in(&self, store: Arc<dyn Store>) {
        let _ = self.0.set(store);
    }
}

#[async_trait]
impl NonceBook for StoredNonces {
    async fn use_once(&self, NonceUse { nonce, until, now, most }: NonceUse) -> Result<(), NonceDenied> {
        let unavailable = |fault: &str| NonceDenied::Unavailable(fault.to_owned());
        let store = self.0.get().ok_or_else(|| unavailable("the store is not open yet"))?;
        match store.spend_nonce(SpentNonce { nonce, until, now, most: most as u64 }).await {
            Ok(NonceVerdict::Fresh) => Ok(()),
            Ok(NonceVerdict::Replayed) => Err(NonceDenied::Replayed),
            Ok(NonceVerdict::Full) => Err(NonceDenied::Full),
            Err(fault) => Err(unavailable(&fault.to_string())),
        }
    }
}
