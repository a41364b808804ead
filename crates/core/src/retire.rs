//! Whether a node takes calls: a node whose tasks another node has works no more, although its process goes on.

use std::sync::Arc;

use crate::service::Chancery;

impl Chancery {
    /// Ends the work of a node whose tasks another node has. Streams close, with an id to resume from, and turns end where they
    /// are. Calls get UNAVAILABLE, and `check` says why. The process goes on until its operator ends it.
    pub fn retire(&self, why: impl Into<Arc<str>>) {
        let _ = self.0.retired.set(why.into());
        self.abandon();
    }
}
