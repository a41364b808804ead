//! A task that comes to nothing: its agent refused the first message, or the store refused an entry.

use chancery_protocol::Error;

use super::{LiveTask, NotTaken};

/// Whether a task can be withdrawn, as if it had never been made, when its agent refuses the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Withdrawal {
    #[default]
    Possible,
    Begun,
    /// The caller has the head of an answer already: a refusal ends the task instead.
    Excluded,
}

impl LiveTask {
    /// Begins to withdraw the task. `false` if something has happened to it, or its caller was promised an answer.
    pub(crate) fn begin_withdrawal(&self) -> bool {
        let mut state = self.lock();
        if state.projected.seq != 1 || state.withdrawal == Withdrawal::Excluded {
            return false;
        }
        state.withdrawal = Withdrawal::Begun;
        true
    }

    /// Makes the task one that is never withdrawn. `false` if a withdrawal has begun.
    pub(crate) fn keep_from_withdrawal(&self) -> bool {
        let mut state = self.lock();
        if state.withdrawal == Withdrawal::Begun {
            return false;
        }
        state.withdrawal = Withdrawal::Excluded;
        true
    }

    /// Shows the task although nothing was said of it, and keeps it from then on. `false` if a withdrawal has begun.
    pub(crate) fn show_task(&self) -> bool {
        let is_kept = self.keep_from_withdrawal();
        if is_kept {
            self.lock().publish(|visible| visible.accepted = true);
        }
        is_kept
    }

    /// Why the first message was not taken, if it was not.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.lock().refusal.clone()
    }

    /// The error for readers that wait for an event that will not come.
    pub(crate) fn broken(&self) -> Error {
        self.refusal().unwrap_or_else(|| NotTaken::Broken.into())
    }

    /// The store refused, or the agent did: waiting readers are released.
    pub(crate) fn break_off(&self, refusal: Option<Error>) {
        let mut state = self.lock();
        state.refusal = refusal;
        state.queued.clear();
        state.pending.clear();
        state.recording = false;
        if let Some(turn) = &state.turn {
            turn.cancel();
        }
        state.publish(|visible| visible.broken = true);
    }
}
