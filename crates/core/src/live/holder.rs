//! Whether this node works on an open task, or follows what another node records of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chancery_protocol::{TaskEvent, TaskState};
use chancery_rules::budget::Amount;
use chancery_rules::task_state::{self, TaskHead};

use super::body::TaskBody;
use super::{LiveTask, State};
use crate::limits::TaskLimits;
use crate::{LogEntry, Progress};

impl State {
    /// Whether nothing of this node needs the task: it waits for its caller, and no call here is about to change that.
    fn is_idle(&self) -> bool {
        let is_busy = self.turn.is_some() || !self.queued.is_empty() || self.arriving > 0 || self.holds > 0;
        let is_recording = self.recording || !self.pending.is_empty() || self.spend.is_some();
        !is_busy && !is_recording && !self.visible.broken && self.task.status.state.is_interrupted()
    }
}

impl LiveTask {
    /// Makes it a task whose entries are read from the store.
    pub(crate) fn following(mut self) -> Self {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.following = true;
        if state.task.status.state == TaskState::AuthRequired {
            // If the agent goes on by itself, the turn that asks is not over. The end of the turn before it is not known here.
            state.settled_before = 0;
        }
        self
    }

    /// Whether its entries are read from the store.
    pub(crate) fn is_following(&self) -> bool {
        self.lock().following
    }

    /// Whether it follows another node without wake-ups.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.unwatched.load(Ordering::Acquire)
    }

    /// Wake-ups come from now on.
    pub(crate) fn set_watched(&self) {
        self.unwatched.store(false, Ordering::Release);
    }

    /// Whether a reader waits for its next entry.
    pub(crate) fn has_watchers(&self) -> bool {
        self.lock().watchers.as_ref().is_some_and(|watchers| watchers.receiver_count() > 0)
    }

    /// Keeps this node the holder until `end_hold`. `false` if it is not the holder.
    pub(crate) fn begin_hold(&self) -> bool {
        let mut state = self.lock();
        if state.following || state.visible.broken {
            return false;
        }
        state.holds += 1;
        true
    }

    pub(crate) fn end_hold(&self) {
        self.lock().holds -= 1;
    }

    /// Whether an update waits for the store: what is visible of the task is not its last state.
    pub(crate) fn is_recorded_now(&self) -> bool {
        let state = self.lock();
        state.recording || !state.pending.is_empty()
    }

    /// Whether this node holds it and has nothing to do with it.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        !state.following && state.is_idle()
    }

    /// Begins to follow a task that this node has nothing to do with. `false` if it has, or follows already.
    pub(crate) fn begin_release(&self) -> bool {
        let mut state = self.lock();
        if state.following || !state.is_idle() {
            return false;
        }
        state.following = true;
        self.unwatched.store(true, Ordering::Release);
        true
    }

    /// The task was not released after all.
    pub(crate) fn undo_release(&self) {
        self.lock().following = false;
        self.unwatched.store(false, Ordering::Release);
    }

    /// This node works on it from now on, and has shown all its entries. `false` if it worked on it already, or if entries are
    /// missing.
    pub(crate) fn become_held(&self, progress: Progress) -> bool {
        let mut state = self.lock();
        if !state.following || state.visible.seq != progress.seq {
            return false;
        }
        state.following = false;
        self.unwatched.store(false, Ordering::Release);
        state.head = TaskHead::of(&state.task);
        state.projected = progress;
        state.settled_before = state.visible.settled;
        state.last_word = None;
        // Another node may have settled turns meanwhile.
        (state.spent, state.promised) = (None, Amount::default());
        state.publish(|visible| visible.authorizing = false);
        true
    }

    /// A task that this node has just made, and that another flow of this node opened before its maker did.
    pub(crate) fn hold_created(&self) {
        let mut state = self.lock();
        state.following = false;
        self.unwatched.store(false, Ordering::Release);
    }

    /// Shows entries that another node made durable, those that are not shown yet. A gap ends them: the rest is read again.
    pub(crate) fn show_followed(&self, entries: &[Arc<LogEntry>], limits: &TaskLimits) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if !state.following {
            return;
        }
        let mut visible = state.visible;
        let first = visible.seq + 1;
        let mut settled_before = state.settled_before;
        let mut shown = Vec::new();
        let mut weight = 0;
        let task = Arc::make_mut(&mut state.task);
        for entry in entries.iter().filter(|entry| entry.seq >= first) {
            if entry.seq != visible.seq + 1 {
                break;
            }
            let before = task.status.state;
            task_state::apply(task, &entry.event);
            visible.seq = entry.seq;
            weight += task_state::weight(&entry.event);
            visible.message_only |= matches!(entry.event, TaskEvent::Replied(_));
            if let TaskEvent::Status(_) | TaskEvent::Replied(_) = entry.event {
                let now = task.status.state;
                visible.terminal = now.is_terminal();
                // Whether the agent goes on by itself shows in who holds the task: until that is known, it may.
                visible.authorizing = now == TaskState::AuthRequired;
                if visible.authorizing && before != TaskState::AuthRequired {
                    settled_before = visible.settled;
                }
                if now.is_terminal() || now.is_interrupted() {
                    visible.settled = entry.seq;
                } else if before == TaskState::AuthRequired {
                    // The agent asked and went on by itself: its turn is not over after all.
                    visible.settled = visible.settled.min(settled_before);
                }
            }
            shown.push(Arc::clone(entry));
        }
        if shown.is_empty() {
            return;
        }
        state.head = TaskHead::of(&state.task);
        state.settled_before = settled_before;
        state.projected.seq = visible.seq;
        state.projected.bytes += weight;
        state.projected.state = state.task.status.state;
        state.projected.message_only = visible.message_only;
        state.keep_outline();
        state.tail.extend(&shown, limits);
        state.publish(|seen| *seen = visible);
    }

    /// The node that worked on a task whose agent waits for an authorization has let go of it: the agent does not go on.
    pub(crate) fn stop_authorizing(&self) {
        let mut state = self.lock();
        if state.following {
            state.publish(|visible| visible.authorizing = false);
        }
    }

    /// The node that works on a task whose agent waits for an authorization still holds it: the agent may go on.
    pub(crate) fn go_on_authorizing(&self) {
        let mut state = self.lock();
        if state.following && state.task.status.state == TaskState::AuthRequired {
            state.publish(|visible| visible.authorizing = true);
        }
    }

    /// Whether the last word about it is that its agent waits for an authorization.
    pub(crate) fn asks_for_authorization(&self) -> bool {
        self.lock().task.status.state == TaskState::AuthRequired
    }

    /// Whether a turn works on it that no node could go on with if this one let go of it now.
    pub(crate) fn is_unfinished_here(&self) -> bool {
        let state = self.lock();
        let is_begun = matches!(state.task.status.state, TaskState::Submitted | TaskState::Working);
        !state.following && !state.head.state.is_terminal() && (state.turn.is_some() || is_begun)
    }
}

impl State {
    /// A task whose content was let go of stays an outline.
    fn keep_outline(&mut self) {
        if matches!(self.body, TaskBody::Stored(..)) {
            self.task = Arc::new(super::body::outline_of(&self.task));
        }
    }
}

#[cfg(test)]
mod tests;
