//! The stop button: nothing new is admitted to what is frozen, from the moment the call that froze it returns.

use std::sync::Arc;

use chancery_protocol::Error;

use crate::carry_on::CarryOn;
use crate::check::plain_text;
use crate::find::internal;
use crate::service::{Chancery, ChanceryInner};
use crate::{Freeze, FreezeScope, RecordNote};

impl Chancery {
    /// Waits for the calls that are being admitted at this moment. Running turns continue; cancel them to
    /// stop them. A caller that disconnects leaves nothing half done: the scope is frozen all the same.
    pub async fn freeze(&self, scope: FreezeScope, by: &str, why: Option<&str>) -> Result<Freeze, Error> {
        if let Some(name) = scope.name() {
            plain_text("name", name)?;
        }
        let inner = Arc::clone(&self.0);
        let freeze = Freeze { scope, by: by.into(), at: inner.clock.now(), why: why.map(Arc::from) };
        CarryOn::new(async move { inner.freeze(freeze).await }, &self.0.background).await
    }

    /// Answers whether it was frozen.
    pub async fn thaw(&self, scope: &FreezeScope, by: &str) -> Result<bool, Error> {
        let (inner, scope, by) = (Arc::clone(&self.0), scope.clone(), Arc::from(by));
        CarryOn::new(async move { inner.thaw(scope, by).await }, &self.0.background).await
    }

    /// Returns all freezes.
    pub async fn freezes(&self) -> Vec<Freeze> {
        self.0.govern.freezes.list()
    }
}

impl ChanceryInner {
    async fn freeze(&self, freeze: Freeze) -> Result<Freeze, Error> {
        let change = self.govern.freezes.change().await;
        self.store.freeze(freeze.clone()).await.map_err(internal)?;
        change.apply(|frozen| frozen.insert(freeze.scope.clone(), freeze.clone())).await;
        tracing::warn!(scope = %freeze.scope, by = &*freeze.by, why = freeze.why.as_deref(), "an operator froze a scope");
        Ok(freeze)
    }

    async fn thaw(&self, scope: FreezeScope, by: Arc<str>) -> Result<bool, Error> {
        let change = self.govern.freezes.change().await;
        let note = self.noted(|| RecordNote::Thawed { scope: scope.clone(), by: Arc::clone(&by), at: self.clock.now() });
        let stored = self.store.thaw(&scope, note).await.map_err(internal)?;
        let known = change.apply(|frozen| frozen.remove(&scope)).await.is_some();
        tracing::warn!(%scope, by = &*by, "an operator thawed a scope");
        Ok(stored || known)
    }
}
