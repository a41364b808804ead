//! What readers see of a task: it changes when the store has made entries durable, and wakes the readers that wait.

use std::sync::Arc;

use chancery_protocol::{Error, Task, TaskEvent, TaskState};
use chancery_rules::task_state;
use tokio::sync::watch;

use super::{LiveTask, State};
use crate::LogEntry;
use crate::limits::TaskLimits;

/// The progress of a task, for waiting readers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Visible {
    pub(crate) seq: u64,
    /// The last entry that ended a turn: the task is then done or waits for its caller.
    pub(crate) settled: u64,
    pub(crate) terminal: bool,
    /// The task is auth-required and its agent's turn goes on, so that the agent may yet say more by itself.
    pub(crate) authorizing: bool,
    /// The agent answered with a message; there is no task to show.
    pub(crate) message_only: bool,
    /// The store refused; what is visible is still true, but nothing more will come from here.
    pub(crate) broken: bool,
    /// How often the agent refused to stop.
    pub(crate) cancels_refused: u32,
    /// The agent has the task, though it has said nothing of it.
    pub(crate) accepted: bool,
    /// Messages that wait for the end of the running turn.
    pub(crate) queued: usize,
}

/// A task as its sender gets it.
#[derive(Debug)]
pub(crate) struct ShownTask {
    /// Nothing if only its outline is in memory.
    pub(crate) task: Option<Arc<Task>>,
    /// Its agent answered with a message instead.
    pub(crate) message_only: bool,
}

impl Visible {
    /// Whether it is decided that there is a task, or a message in its place.
    pub(crate) fn is_decided(&self) -> bool {
        self.seq >= 2 || self.accepted || self.terminal || self.broken
    }

    /// Whether the turn after entry `before` is over, or nothing more of it will be seen.
    pub(crate) fn is_over(&self, before: u64) -> bool {
        self.settled > before || self.terminal || self.broken
    }
}

impl State {
    /// Changes what readers see, and wakes them if it changed.
    pub(super) fn publish(&mut self, change: impl FnOnce(&mut Visible)) {
        let before = self.visible;
        change(&mut self.visible);
        if let Some(watchers) = self.watchers.as_ref().filter(|_| self.visible != before) {
            watchers.send_replace(self.visible);
        }
    }
}

impl LiveTask {
    /// The task for the answer of a send, or the agent's refusal of it.
    pub(crate) fn shown(&self) -> Result<ShownTask, Error> {
        let state = self.lock();
        match &state.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(ShownTask { task: state.task_here(), message_only: state.visible.message_only }),
        }
    }

    pub(crate) fn visible(&self) -> Visible {
        self.lock().visible
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Visible> {
        let mut state = self.lock();
        let visible = state.visible;
        state.watchers.get_or_insert_with(|| watch::Sender::new(visible)).subscribe()
    }

    /// Shows entries that the store has made durable.
    pub(crate) fn show(&self, entries: &[Arc<LogEntry>], limits: &TaskLimits) -> Visible {
        let mut state = self.lock();
        let mut visible = state.visible;
        let (in_turn, last_word, settled_before) = (state.turn.is_some(), state.last_word, state.settled_before);
        let task = Arc::make_mut(&mut state.task);
        for entry in entries {
            task_state::apply(task, &entry.event);
            visible.seq = entry.seq;
            visible.message_only |= matches!(entry.event, TaskEvent::Replied(_));
            if let TaskEvent::Status(_) | TaskEvent::Replied(_) = entry.event {
                visible.terminal = task.status.state.is_terminal();
                let goes_on = in_turn && last_word != Some(entry.seq);
                visible.authorizing = goes_on && task.status.state == TaskState::AuthRequired;
                if visible.terminal || task.status.state.is_interrupted() {
                    visible.settled = entry.seq;
                } else if in_turn {
                    // The agent asked and went on by itself: its turn is not over after all.
                    visible.settled = visible.settled.min(settled_before);
                }
            }
        }
        state.tail.extend(entries, limits);
        state.publish(|shown| *shown = visible);
        visible
    }
}
