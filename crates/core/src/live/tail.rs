//! The end of a task's log that is held in memory for readers who keep up.

use std::sync::Arc;

use super::LiveTask;
use crate::LogEntry;

impl LiveTask {
    /// Entries after `after` that are still in memory. `None` when some of them are only in the store.
    pub(crate) fn tail_after(&self, after: u64, limit: usize) -> Option<Vec<Arc<LogEntry>>> {
        let state = self.lock();
        let visible = self.visible.borrow().seq;
        if after >= visible {
            return Some(Vec::new());
        }
        let first = state.tail.front()?.seq;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(state.tail.iter().skip(skip).take(limit).cloned().collect())
    }
}
