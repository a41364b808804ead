//! How a node finds out that another one has taken its database over, also while it writes nothing.

use std::time::Duration;

use chancery_core::StoreError;

use super::PostgresStore;
use super::fault::PostgresFault;
use super::fence::FenceRow;
use super::health::HealthAdvice;
use super::readers::read;

/// How often a node without writes looks whether it still has its database.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a look may take. It is longer than reads wait for a session under load, so that a busy node logs no outage.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

impl PostgresStore {
    /// Waits until the database refuses this store permanently, and says why: another node has opened it since, or it lost commits
    /// that it had confirmed. Meanwhile it logs when the database goes away and comes back.
    pub async fn refused(&self) -> StoreError {
        let mut is_away = false;
        loop {
            match (self.look_at_fence(LOOK_PATIENCE).await, self.health.advice()) {
                (_, HealthAdvice::Unwell(reason)) => return reason,
                (Err(error), _) if !is_away => {
                    is_away = true;
                    tracing::error!(
                        %error,
                        "the database is away: calls wait for it for up to store.patience_ms, then callers get UNAVAILABLE; \
                         the node works on by itself when it is back"
                    );
                }
                (Ok(()), _) if is_away => {
                    is_away = false;
                    tracing::info!("the database is back");
                }
                _ => {}
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reads this node's row of the fence. One that is closed or gone ends the store's writes.
    pub(super) async fn look_at_fence(&self, patience: Duration) -> Result<(), StoreError> {
        let readers = self.readers.with_patience(patience);
        let row = read!(readers, "looking whether the database is still this node's", |db| self.identity.row(db))?;
        match row {
            Some(FenceRow { closed: false, .. }) => Ok(()),
            Some(FenceRow { closed: true, .. }) | None => {
                self.health.note(&PostgresFault::Fenced);
                Err(PostgresFault::Fenced.while_doing("looking whether the database is still this node's"))
            }
        }
    }
}
