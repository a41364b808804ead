//! Recovers tasks without a runner: after a restart they resume or fail, and after a store fault they fail.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Error, TaskId, TaskState};

use crate::Stored;
use crate::find::internal;
use crate::govern::allot::Allotment;
use crate::live::{LiveTask, QueuedTurn};
use crate::restored_parts::restored_message;
use crate::runner::AfterRestart;
use crate::service::{Chancery, ChanceryInner};

/// The pause before another attempt at a store that failed.
const AFTER_FAULT: Duration = Duration::from_secs(5);

/// Why a task fails whose updates the store did not keep.
pub(crate) const BROKEN_OFF: &str = "what this task did could not be kept, so it was broken off; send the message again";

/// What a start found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The tasks that failed because of the restart.
    pub failed: usize,
    /// The tasks whose last turn runs again.
    pub resumed: usize,
}

impl Chancery {
    /// To be called once, before the first call is taken. Where nodes share the store, tasks of this node's earlier runs are found
    /// later: a node takes them when the lease of that run ends.
    pub async fn recover(&self) -> Result<Recovered, Error> {
        if let Some(member) = &self.0.cluster {
            self.0.join(member).await?;
            return Ok(Recovered::default());
        }
        let mut recovered = Recovered::default();
        let mut allotments = self.0.restore().await?;
        for stored in self.0.store.unfinished().await.map_err(internal)? {
            let allotment = allotments.remove(&stored.task.id);
            match self.0.take_up(stored, allotment).await? {
                AfterRestart::Fail => recovered.failed += 1,
                AfterRestart::Resume => recovered.resumed += 1,
            }
        }
        Ok(recovered)
    }
}

impl ChanceryInner {
    async fn take_up(self: &Arc<Self>, stored: Stored, allotment: Option<Box<Allotment>>) -> Result<AfterRestart, Error> {
        let live = self.open(stored).await?;
        self.resume_or_fail(&live, allotment, "the node restarted while this task was being worked on; send the message again")
            .await
    }

    /// Goes on with the turn of a task, or ends the task with the reason why that cannot be.
    pub(crate) async fn resume_or_fail(
        self: &Arc<Self>,
        live: &Arc<LiveTask>,
        allotment: Option<Box<Allotment>>,
        reason: &str,
    ) -> Result<AfterRestart, Error> {
        let agent = self.agents.load().get(&live.record.agent).cloned();
        let agent = agent.filter(|agent| agent.runner.after_restart() == AfterRestart::Resume);
        let (task, _) = self.whole(live).await?;
        if let (Some(agent), Some(queued_turn)) = (agent, QueuedTurn::again(live, &task)) {
            let message = match self.offloading_part_store() {
                Some(part_store) => restored_message(part_store, &live.record.id, &queued_turn.message).await?,
                None => Arc::clone(&queued_turn.message),
            };
            if let Some((queued_turn, token)) = live.begin_turn(QueuedTurn { allotment, message, ..queued_turn }) {
                drop(self.execute(live, &agent, queued_turn, token, true).await);
            }
            return Ok(AfterRestart::Resume);
        }
        if let Some(allotment) = allotment {
            live.give(allotment);
        }
        self.end_by_force(live, TaskState::Failed, Some(reason.to_owned())).await;
        Ok(AfterRestart::Fail)
    }

    /// The store could not keep the updates of a task, and its turn was broken off. Waiting callers and
    /// webhooks get an ending as soon as the store can keep it. A task that its agent resumes after a restart
    /// is left for that.
    pub(crate) fn end_later(self: &Arc<Self>, task: TaskId) {
        let inner = Arc::clone(self);
        self.in_background("ending a broken task", async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(AFTER_FAULT) => {}
                    () = inner.shutdown.cancelled() => return,
                }
                // If this end cannot be kept either, it comes back here by itself.
                if inner.end_forsaken(&task).await.is_ok() {
                    return;
                }
            }
        });
    }

    async fn end_forsaken(self: &Arc<Self>, task: &TaskId) -> Result<(), Error> {
        let Some(stored) = self.store.find_any(task.as_str()).await.map_err(internal)? else { return Ok(()) };
        if let Some(member) = &self.cluster {
            return self.end_forsaken_shared(member, stored).await;
        }
        let agent = self.agents.load().get(&stored.task.agent).cloned();
        let unfinished = matches!(stored.progress.state, TaskState::Submitted | TaskState::Working);
        if !unfinished || agent.is_some_and(|agent| agent.runner.after_restart() == AfterRestart::Resume) {
            return Ok(());
        }
        let live = self.open(stored).await?;
        if !live.is_worked_on() {
            self.end_by_force(&live, TaskState::Failed, Some(BROKEN_OFF.to_owned())).await;
        }
        Ok(())
    }
}
