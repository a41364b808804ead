//! Whether a node takes calls: a node whose tasks another node has works no more, although its process goes on.

use std::sync::Arc;

use chancery_protocol::{Error, ErrorKind};

use crate::StoreError;
use crate::find::come_back;
use crate::service::{Chancery, ChanceryInner};

impl Chancery {
    /// Ends the work of a node whose tasks another node has. Streams close, with an id to resume from, and turns end where they
    /// are. Calls get UNAVAILABLE, and `check` says why. The process goes on until its operator ends it.
    pub fn retire(&self, why: impl Into<Arc<str>>) {
        let _ = self.0.retired.set(why.into());
        self.abandon();
    }

    /// Whether the node can take calls.
    pub async fn check(&self) -> Result<(), StoreError> {
        if self.0.shutdown.is_cancelled() {
            return Err(StoreError::new(self.0.retired.get().map_or("shutting down", |why| &**why)));
        }
        self.0.store.check().await
    }
}

impl ChanceryInner {
    /// The answer to a call of a node that works no more.
    pub(crate) fn stopped(&self) -> Error {
        match self.retired.get() {
            Some(_) => come_back("another node has the tasks of this node now; call that one"),
            None => Error::new(ErrorKind::Unavailable, "the node is shutting down"),
        }
    }
}
