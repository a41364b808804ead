//! What is known of the writer's connection: whether writes are refused at once, and whether a trial write is due.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_core::StoreError;
use tokio::time::Instant;

use super::fault::{FaultScope, PostgresFault};

/// What the last batch showed.
#[derive(Clone, Debug, Default)]
enum WriterStanding {
    #[default]
    Works,
    /// The last batch failed, and the next one may not.
    Failed,
    /// The database refuses every batch of this node.
    Ended(PostgresFault),
}

/// The writer's standing, shared with all who ask for writes.
#[derive(Debug, Default)]
pub(super) struct WriterHealth {
    standing: Mutex<WriterStanding>,
    /// Since when the writer works on the batch that it has.
    busy_since: Mutex<Option<Instant>>,
}

/// The writer works on a batch as long as this is kept.
#[derive(Debug)]
pub(super) struct BusyWriter(Arc<WriterHealth>);

impl Drop for BusyWriter {
    fn drop(&mut self) {
        *self.0.busy_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What a look at the health says is to be done.
pub(super) enum HealthAdvice {
    Fine,
    /// A trial write tells more.
    TryWrite,
    Unwell(StoreError),
}

impl WriterHealth {
    pub(super) fn begin(self: &Arc<Self>) -> BusyWriter {
        *self.busy_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        BusyWriter(Arc::clone(self))
    }

    /// Whether the writer has worked on one batch for longer than that.
    pub(super) fn hangs_for(&self, long: Duration) -> bool {
        self.busy_since.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|since| since.elapsed() > long)
    }

    pub(super) fn wrote(&self) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*standing, WriterStanding::Ended(_)) {
            *standing = WriterStanding::Works;
        }
    }

    pub(super) fn note(&self, fault: &PostgresFault) {
        let ends = matches!(fault, PostgresFault::Fenced | PostgresFault::Succeeded | PostgresFault::LostCommits(_));
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*standing, WriterStanding::Ended(_)) {
            return;
        }
        if ends {
            *standing = WriterStanding::Ended(fault.clone());
        } else if fault.scope() != FaultScope::OneWrite {
            *standing = WriterStanding::Failed;
        }
    }

    /// Refuses at once where no write can succeed any more.
    pub(super) fn may_write(&self) -> Result<(), StoreError> {
        match &*self.standing.lock().unwrap_or_else(PoisonError::into_inner) {
            WriterStanding::Ended(fault) => Err(fault.clone().while_doing("writing")),
            WriterStanding::Works | WriterStanding::Failed => Ok(()),
        }
    }

    pub(super) fn advice(&self) -> HealthAdvice {
        match &*self.standing.lock().unwrap_or_else(PoisonError::into_inner) {
            WriterStanding::Works => HealthAdvice::Fine,
            WriterStanding::Failed => HealthAdvice::TryWrite,
            WriterStanding::Ended(fault) => HealthAdvice::Unwell(fault.clone().while_doing("writing")),
        }
    }
}
