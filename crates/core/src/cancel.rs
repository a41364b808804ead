//! Stops a task: its runner is asked first, then told.

use std::sync::Arc;

use chancery_protocol::{CallContext, CancelTask, Error, ErrorKind, Shown, TaskState};

use crate::agents::Agent;
use crate::find::shown;
use crate::live::LiveTask;
use crate::service::Inner;
use crate::tree::CascadeOutcome;

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
        self.cancel_with_all_below(&live).await
    }

    /// What was done for the task ends before it does, the deepest first.
    pub(crate) async fn cancel_with_all_below(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<Shown, Error> {
        let id = &live.record.id;
        if self.govern.trees.below(id).iter().any(|node| node.record.id != *id) {
            Box::pin(self.cascade_below(live)).await;
        }
        let cancelled = self.cancel_live(live).await;
        // Its agent may have called somebody until the last moment.
        if !self.govern.trees.below(id).is_empty() {
            Box::pin(self.cascade_below(live)).await;
        }
        cancelled
    }

    async fn cascade_below(self: &Arc<Self>, live: &LiveTask) {
        let id = &live.record.id;
        for left in self.cascade(id, |node| node.record.id != *id).await {
            if let CascadeOutcome::Refused | CascadeOutcome::Unreachable = left.outcome {
                tracing::warn!(task = %left.task, agent = %left.agent, reason = left.reason, "a task goes on although the one above it was cancelled");
            }
        }
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

pub(crate) fn not_cancelable(state: TaskState) -> Error {
    Error::new(ErrorKind::TaskNotCancelable, format!("the task has ended ({})", state.name()))
}
