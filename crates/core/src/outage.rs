//! Waits out a store that is away: a turn that runs goes on, and its updates are recorded when the store is back.

use std::time::Duration;

use chancery_protocol::TaskId;

use crate::service::ChanceryInner;
use crate::{Append, Appended, StoreError, StoreTrouble};

/// The first wait before an append is tried again; each next is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

impl ChanceryInner {
    /// Makes the append of a running turn again until the store is back, or the node stops. Meanwhile the updates of the turn wait
    /// in memory, within the limits of tasks, and streams stay open.
    pub(crate) async fn append_later(
        &self,
        append: &(dyn Fn() -> Append + Send + Sync),
        mut fault: StoreError,
    ) -> Result<Appended, StoreError> {
        let task = append().task;
        tracing::warn!(task = %task.id, %fault, "the store is away: the turn goes on, and its updates wait for the store");
        let mut wait = FIRST_WAIT;
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(fault),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(LONGEST_WAIT);
            match self.append_again(append()).await {
                Err(again) if again.trouble == StoreTrouble::Away => fault = again,
                appended => {
                    tracing::info!(task = %task.id, recorded = appended.is_ok(), "the store is back");
                    return appended;
                }
            }
        }
    }

    /// The answer to an append that was made may be lost, so the log is looked at before the append is made again, and after it was
    /// refused: the store may have come to it in between.
    async fn append_again(&self, append: Append) -> Result<Appended, StoreError> {
        let (id, seq) = (append.task.id.clone(), append.progress.seq);
        if self.has(&id, seq).await? {
            return Ok(Appended::RecordedToTell);
        }
        match self.append(append).await {
            Err(fault) if fault.trouble == StoreTrouble::None && self.has(&id, seq).await? => Ok(Appended::RecordedToTell),
            appended => appended,
        }
    }

    /// Whether the log of a task reaches so far.
    async fn has(&self, task: &TaskId, seq: u64) -> Result<bool, StoreError> {
        let stored = self.store.find_any(task.as_str()).await?;
        Ok(stored.is_some_and(|stored| stored.progress.seq >= seq))
    }
}
