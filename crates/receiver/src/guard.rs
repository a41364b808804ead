//! What remembers the messages that were taken: in memory, or wherever several receivers can share it.

use std::fmt;

use async_trait::async_trait;
use chancery_identity::webhook::{ReplayCheck, ReplayMemory};
use chancery_protocol::Timestamp;

/// It could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("what remembers messages cannot be asked: {0}")]
pub struct GuardFault(pub String);

/// An id is remembered for at least ten minutes: so long can a copy pass for fresh.
#[async_trait]
pub trait ReplayGuard: Send + Sync + fmt::Debug {
    /// Whether the message of that id is new. If it is, the caller works on it from now on.
    async fn begin(&self, id: &str, now: Timestamp) -> Result<ReplayCheck, GuardFault>;

    /// It was taken.
    async fn taken(&self, id: &str, now: Timestamp) -> Result<(), GuardFault>;

    /// Notes that the work on it ended without success. Called in places that cannot wait.
    fn dropped(&self, id: &str);
}

#[async_trait]
impl ReplayGuard for ReplayMemory {
    async fn begin(&self, id: &str, now: Timestamp) -> Result<ReplayCheck, GuardFault> {
        Ok(Self::begin(self, id, now))
    }

    async fn taken(&self, id: &str, now: Timestamp) -> Result<(), GuardFault> {
        Self::taken(self, id, now);
        Ok(())
    }

    fn dropped(&self, id: &str) {
        Self::dropped(self, id);
    }
}
