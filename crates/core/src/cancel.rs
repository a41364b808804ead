//! Stops a task: its runner is asked first, then told.

use std::sync::Arc;

use chancery_protocol::{CallContext, CancelTask, Error, ErrorKind, Shown, TaskState};

use crate::agents::Agent;
use crate::find::shown;
use crate::live::LiveTask;
use crate::service::Inner;

impl Inner {
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Agent,
        cancel: CancelTask,
    ) -> Result<Shown, Error> {
        let stored = self.find(context, agent, &cancel.id).await?;
        if stored.progress.state.is_terminal() {
            return Err(not_cancelable(stored.progress.state));
        }
        let live = self.open(stored).await?;
        self.cancel_live(&live).await
    }

    /// Whatever ends the task first is its end: if that is not the cancel, the caller is told so.
    pub(crate) async fn cancel_live(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<Shown, Error> {
        if !live.cancel_turn() {
            self.end_by_force(live, TaskState::Canceled, None).await;
        }
        // The turn ends by itself or by force, or had ended before: either way an end is taken and becomes visible.
        let _ = live.watch().wait_for(|visible| visible.terminal || visible.broken).await;
        let task = live.task();
        match task.status.state {
            TaskState::Canceled => Ok(shown(&live.record, task, None)),
            state if state.is_terminal() => Err(not_cancelable(state)),
            _ => Err(live.broken()),
        }
    }
}

fn not_cancelable(state: TaskState) -> Error {
    Error::new(ErrorKind::TaskNotCancelable, format!("the task has ended ({})", state.name()))
}
