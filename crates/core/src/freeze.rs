//! The stop button: nothing new is admitted to what is frozen, from the moment the call that froze it returns.

use std::sync::Arc;

use chancery_protocol::Error;

use crate::find::internal;
use crate::service::Chancery;
use crate::{Freeze, FreezeScope, Note};

impl Chancery {
    /// Waits for the calls that are being admitted at this moment. What runs goes on; cancel it to stop it.
    pub async fn freeze(&self, scope: FreezeScope, by: &str, why: Option<&str>) -> Result<Freeze, Error> {
        let inner = &self.0;
        let freeze = Freeze { scope, by: by.into(), at: inner.clock.now(), why: why.map(Arc::from) };
        let change = inner.govern.freezes.change().await;
        inner.store.freeze(freeze.clone()).await.map_err(internal)?;
        change.apply(|frozen| frozen.insert(freeze.scope.clone(), freeze.clone())).await;
        tracing::warn!(scope = %freeze.scope, by, why, "frozen");
        Ok(freeze)
    }

    /// Answers whether it was frozen.
    pub async fn thaw(&self, scope: &FreezeScope, by: &str) -> Result<bool, Error> {
        let inner = &self.0;
        let change = inner.govern.freezes.change().await;
        let note = inner.noted(|| Note::Thawed { scope: scope.clone(), by: by.into(), at: inner.clock.now() });
        let stored = inner.store.thaw(scope, note).await.map_err(internal)?;
        let known = change.apply(|frozen| frozen.remove(scope)).await.is_some();
        tracing::warn!(%scope, by, "thawed");
        Ok(stored || known)
    }

    pub async fn freezes(&self) -> Vec<Freeze> {
        self.0.govern.freezes.list()
    }
}
