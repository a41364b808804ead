//! Keeps the folded task at the end of a long turn, so that a read needs no entry before it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chancery_protocol::{Task, TaskId};
use chancery_rules::task_state::task_weight;

use crate::Store;
use crate::live::LiveTask;
use crate::service::ChanceryInner;

/// Fewer entries than this are folded at each read. That costs about as much as reading a snapshot.
pub(crate) const MIN_ENTRIES: u64 = 64;

/// A larger task has no snapshot, because a snapshot is written and read in one piece. Reading such a task costs its own bytes
/// either way.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// While a task goes on, a snapshot follows the last one when the log has grown by this share. So all snapshots of a task
/// together cost a small multiple of its log.
const GROWTH: u64 = 8;

/// A task as it was after entry `seq`.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSnapshot {
    /// The last entry of the log that it covers.
    pub seq: u64,
    /// The task after that entry.
    pub task: Arc<Task>,
}

impl ChanceryInner {
    /// Keeps a snapshot of an open task whose turn has ended, if its log has grown enough since the last one.
    pub(crate) async fn keep_snapshot_of(&self, live: &LiveTask) {
        let Some((task, seq)) = live.task_and_seq() else { return };
        if self.keep_snapshot(&task, seq, live.snapshot_seq.load(Ordering::Relaxed)).await {
            live.snapshot_seq.store(seq, Ordering::Relaxed);
        }
    }

    /// Keeps a snapshot if it is due, and returns whether it did. A fault changes no answer, so it is only logged.
    pub(crate) async fn keep_snapshot(&self, task: &Arc<Task>, seq: u64, last: u64) -> bool {
        if !is_due(task, seq, last) {
            return false;
        }
        let kept = self.store.keep_snapshot(TaskSnapshot { seq, task: Arc::clone(task) }).await;
        if let Err(fault) = &kept {
            tracing::debug!(task = %task.id, error = fault as &dyn std::error::Error, "a snapshot could not be kept");
        }
        kept.is_ok()
    }
}

fn is_due(task: &Task, seq: u64, last: u64) -> bool {
    let state = task.status.state;
    let least = if state.is_terminal() { MIN_ENTRIES } else { MIN_ENTRIES.max(seq / GROWTH) };
    (state.is_terminal() || state.is_interrupted()) && seq.saturating_sub(last) >= least && task_weight(task) <= MAX_BYTES
}

/// Returns the newest snapshot that is not after entry `to`. One that cannot be read is passed over: the log says the same.
pub(crate) async fn latest(store: &dyn Store, task: &TaskId, to: u64, artifacts: bool) -> Option<(u64, Task)> {
    if to < MIN_ENTRIES {
        return None;
    }
    let found = store.snapshot(task, artifacts).await.unwrap_or_else(|fault| {
        tracing::warn!(task = %task, error = &fault as &dyn std::error::Error, "a snapshot could not be read; its log is read");
        None
    });
    found.filter(|snapshot| snapshot.seq <= to).map(|snapshot| (snapshot.seq, Arc::unwrap_or_clone(snapshot.task)))
}

#[cfg(test)]
mod tests {
    use chancery_protocol::{Artifact, Part, TaskState, TaskStatus};

    use super::*;

    fn task(state: TaskState, bytes: usize) -> Task {
        Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus { state, message: None, timestamp: None, unknown: Default::default() },
            artifacts: vec![Arc::new(Artifact::new("a", vec![Part::text("x".repeat(bytes))]))],
            history: Vec::new(),
            metadata: None,
            unknown: Default::default(),
        }
    }

    #[test]
    fn a_snapshot_is_due_at_the_end_of_a_turn_when_the_log_has_grown() {
        let ended = task(TaskState::Completed, 9);
        assert!(!is_due(&ended, 63, 0) && is_due(&ended, 64, 0));
        assert!(!is_due(&ended, 5_063, 5_000) && is_due(&ended, 5_064, 5_000));
        assert!(!is_due(&task(TaskState::Working, 9), 5_000, 0), "a turn works on it");
        let asks = task(TaskState::InputRequired, 9);
        assert!(is_due(&asks, 64, 0) && !is_due(&asks, 5_064, 5_000) && is_due(&asks, 5_720, 5_000));
    }

    #[test]
    fn a_task_that_is_too_large_has_no_snapshot() {
        let fits = MAX_BYTES as usize - 64;
        assert!(is_due(&task(TaskState::Completed, fits), 64, 0) && !is_due(&task(TaskState::Completed, fits + 1), 64, 0));
    }
}
