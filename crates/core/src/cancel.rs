//! Cancels a task: first a request to its runner, then an order.

use std::sync::Arc;

use chancery_protocol::{CallContext, CancelTask, Error, ErrorKind, Reply, TaskState};

use crate::RecordNote;
use crate::agents::Agent;
use crate::find::shown;
use crate::live::{LiveTask, QueuedTurn, Visible};
use crate::service::{Answer, ChanceryInner};
use crate::tree::{CascadeOutcome, Cascaded};

impl ChanceryInner {
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        context: &CallContext,
        agent: &Agent,
        cancel: CancelTask,
    ) -> Result<Answer, Error> {
        let stored = self.find(context, agent, &cancel.id).await?;
        if stored.progress.state.is_terminal() {
            return Err(not_cancelable(stored.progress.state));
        }
        let live = self.open(stored).await?;
        self.cancel_anywhere(&live, format!("{}/{}", context.caller.tenant, context.caller.name).into()).await?;
        let (live, permit) = Box::pin(self.with_room(&context.account(), live)).await?;
        let (task, _) = self.whole(&live).await?;
        Ok(Answer::of(Reply::Task(shown(&live.record, task, None)), permit))
    }

    /// Who asked goes into the record together with what comes of it.
    pub(crate) fn note_cancel(&self, live: &LiveTask, by: impl FnOnce() -> Arc<str>) {
        if let Some(note) = self.noted(|| RecordNote::Cancelled { task: live.record.id.clone(), by: by(), at: self.clock.now() })
        {
            live.note(note);
        }
    }

    /// The subtasks end before the task, the deepest first. Returns the outcome of each; of the task itself
    /// only if its agent may continue remotely.
    pub(crate) async fn cancel_with_all_below(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<Vec<Cascaded>, Error> {
        let id = &live.record.id;
        let mut cascaded = Vec::new();
        if self.govern.trees.below(id).iter().any(|node| node.record.id != *id) {
            cascaded = Box::pin(self.cascade_below(live)).await;
        }
        if self.cluster.is_some() {
            let elsewhere = Box::pin(self.cascade_shared(id, &cascaded, false)).await?;
            cascaded.extend(elsewhere);
        }
        let cancelled = self.cancel_live(live).await;
        // Its agent may have called somebody until the last moment.
        if !self.govern.trees.below(id).is_empty() {
            cascaded.extend(Box::pin(self.cascade_below(live)).await);
        }
        cancelled?;
        if let Some(reason) = live.not_confirmed() {
            let (task, agent) = (id.clone(), live.record.agent.clone());
            let depth = live.node().map_or(0, |node| node.kinship.depth);
            cascaded.push(Cascaded { task, agent, depth, outcome: CascadeOutcome::Unreachable, reason: Some(reason) });
        }
        Ok(cascaded)
    }

    async fn cascade_below(self: &Arc<Self>, live: &LiveTask) -> Vec<Cascaded> {
        let id = &live.record.id;
        let cascaded = self.cascade(id, |node| node.record.id != *id).await;
        for left in &cascaded {
            if let CascadeOutcome::Refused | CascadeOutcome::Unreachable = left.outcome {
                tracing::warn!(task = %left.task, agent = %left.agent, reason = left.reason, "cannot cancel a task below a cancelled one; the agent works on");
            }
        }
        cascaded
    }

    /// The first ending of the task counts: if that is not the cancel, the caller gets the other one.
    pub(crate) async fn cancel_live(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<(), Error> {
        let refused_before = live.visible().cancels_refused;
        if !live.cancel_turn() && !self.call_off(live).await {
            self.end_by_force(live, TaskState::Canceled, None).await;
        }
        // The turn ends by itself or by force, or had ended before: either way an end is taken and becomes visible. An agent
        // elsewhere may also refuse to stop, and then the task goes on.
        let is_over = |visible: &Visible| visible.terminal || visible.broken || visible.cancels_refused > refused_before;
        let _ = live.watch().wait_for(is_over).await;
        match live.stored().progress.state {
            TaskState::Canceled => Ok(()),
            // Some agents answer a cancel with a task that they completed: bare, that is a success.
            state if state.is_terminal() && live.is_cancel_answered() => Ok(()),
            state if state.is_terminal() => Err(not_cancelable(state)),
            _ => Err(live.cancel_refusal().unwrap_or_else(|| live.broken())),
        }
    }

    /// Lets a runner with a remote task cancel it there, although no turn is running. `false` without such a
    /// runner.
    async fn call_off(self: &Arc<Self>, live: &Arc<LiveTask>) -> bool {
        let elsewhere = live.node().and_then(|node| node.link()).is_some_and(|link| link.task.is_some());
        if !elsewhere || live.visible().terminal {
            return false;
        }
        let agent = self.agents.load().get(&live.record.agent).cloned();
        let Some(agent) = agent.filter(|agent| agent.runner.keeps_links()) else { return false };
        let Ok((task, _)) = self.whole(live).await else { return false };
        let Some(said) = QueuedTurn::again(live, &task) else { return false };
        if let Some((said, token)) = live.stop_with(said) {
            drop(self.execute(live, &agent, said, token, true).await);
        }
        true
    }
}

pub(crate) fn not_cancelable(state: TaskState) -> Error {
    Error::new(ErrorKind::TaskNotCancelable, format!("the task has ended ({})", state.name()))
}
