//! Leaves the nodes that share a store: others go on with what this one worked on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::membership::Membership;
use crate::service::ChanceryInner;

/// How long dropped turns may take to let go of what they have.
const DROPPED_WITHIN: Duration = Duration::from_secs(1);

impl ChanceryInner {
    /// Gives running turns some time, releases the tasks of those that still run, and ends the lease.
    pub(crate) async fn leave(self: &Arc<Self>, member: &Membership, patience: Duration) {
        if member.successor().is_none() {
            if timeout(patience, self.background.wait()).await.is_err() {
                let unfinished: Vec<_> = self.open.all().into_iter().filter(|live| live.is_unfinished_here()).collect();
                tracing::warn!(
                    tasks = unfinished.len(),
                    "turns still run after the time for a shutdown; other nodes go on with them"
                );
                // From here on nothing more is recorded: what another node takes does not move under it.
                self.abandoned.cancel();
                let _ = timeout(DROPPED_WITHIN, self.background.wait()).await;
                for live in unfinished {
                    if let Err(fault) = member.port.release(&live.record.id, true).await {
                        tracing::error!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot release a task; a successor takes it when the lease ends");
                    }
                }
            }
            if let Err(fault) = member.port.leave().await {
                tracing::error!(
                    error = &fault as &dyn std::error::Error,
                    "cannot end the lease of this node; a successor takes its tasks when it ends by itself"
                );
            }
        }
        member.end();
    }
}
