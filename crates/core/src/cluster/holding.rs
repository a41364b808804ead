//! Takes a task that no node works on, keeps it while a call needs it, and releases it when it waits for its caller.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::{Error, TaskState};

use super::membership::Membership;
use crate::find::internal;
use crate::govern::allot::Allotment;
use crate::govern::report::CostReport;
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::{NodeNumber, TaskHolder};

/// The pause before a task is taken again that was released at the moment it was to be taken.
const AFTER_RELEASE: Duration = Duration::from_millis(5);

/// Why a task fails whose turn cannot be resumed.
pub(super) const GONE: &str = "the node that worked on this task is gone; send the message again";

/// Where a call that changes a task has to be made.
#[derive(Debug)]
pub(crate) enum Holding {
    Here(HoldGuard),
    Elsewhere(NodeNumber),
    /// The task has ended.
    Ended,
}

/// Keeps a task with this node. When the last one is dropped, the task is released if it waits for its caller.
#[derive(Debug)]
pub(crate) struct HoldGuard {
    inner: Arc<ChanceryInner>,
    live: Arc<LiveTask>,
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.live.end_hold();
        if self.live.is_idle() && tokio::runtime::Handle::try_current().is_ok() {
            let (inner, live) = (Arc::clone(&self.inner), Arc::clone(&self.live));
            self.inner.in_background("releasing a task", async move { inner.release_if_idle(&live).await });
        }
    }
}

impl ChanceryInner {
    /// Makes this node the one that works on a task, unless another one does.
    pub(crate) async fn hold_task(self: &Arc<Self>, member: &Membership, live: &Arc<LiveTask>) -> Result<Holding, Error> {
        if let Some(guard) = self.begin_hold(live) {
            return Ok(Holding::Here(guard));
        }
        if live.visible().broken {
            return Err(live.broken());
        }
        let id = &live.record.id;
        let _one_at_a_time = member.lock(id).await;
        if let Some(guard) = self.begin_hold(live) {
            return Ok(Holding::Here(guard));
        }
        loop {
            match member.port.take(id).await.map_err(internal)? {
                None => return Err(Error::task_not_found()),
                Some(TaskHolder::OtherNode(node)) => return Ok(Holding::Elsewhere(node)),
                Some(TaskHolder::ThisNode) => {
                    let guard = self.take_up_held(member, live, GONE).await?;
                    return Ok(if live.visible().terminal { Holding::Ended } else { Holding::Here(guard) });
                }
                Some(TaskHolder::Nobody) => {
                    self.catch_up(member, live, None).await?;
                    if live.visible().terminal {
                        return Ok(Holding::Ended);
                    }
                    // The node that had it released it between the attempt and the look at its holder.
                    tokio::time::sleep(AFTER_RELEASE).await;
                }
            }
        }
    }

    /// Goes on with a task that the store says this node holds. To be called with the task locked: no message joins a turn
    /// that is still to be resumed. A turn that cannot be resumed fails with `reason`.
    pub(super) async fn take_up_held(
        self: &Arc<Self>,
        member: &Membership,
        live: &Arc<LiveTask>,
        reason: &str,
    ) -> Result<HoldGuard, Error> {
        // One that could not be resumed at once is held already.
        let allotment = if live.is_following() { self.become_holder(member, live).await? } else { None };
        // With it, what the turn does meanwhile does not release the task.
        let guard = self.begin_hold(live).ok_or_else(|| live.broken())?;
        let state = live.stored().progress.state;
        if live.is_worked_on() || live.is_recorded_now() {
            return Ok(guard);
        }
        if matches!(state, TaskState::Submitted | TaskState::Working) {
            self.resume_or_fail(live, allotment, reason).await?;
        } else if let Some(allotment) = allotment {
            // It waits for its caller. A turn that had ended may miss only its bill.
            let closed = allotment.close(&CostReport::default(), self.clock.now());
            self.store.settle(&live.record.id, closed.spend).await.map_err(internal)?;
        }
        Ok(guard)
    }

    fn begin_hold(self: &Arc<Self>, live: &Arc<LiveTask>) -> Option<HoldGuard> {
        live.begin_hold().then(|| HoldGuard { inner: Arc::clone(self), live: Arc::clone(live) })
    }

    /// Brings a task that the store says this node holds up to date, and works on it from then on. Answers what its turn was given.
    async fn become_holder(self: &Arc<Self>, member: &Membership, live: &Arc<LiveTask>) -> Result<Option<Box<Allotment>>, Error> {
        let stored = self.store.find_any(live.record.id.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)?;
        self.catch_up(member, live, Some(stored.progress.seq)).await?;
        let allotment = self.find_place(live, &stored).await?;
        // Nobody else can have added an entry since, and no flow of this node begins to before this.
        if live.become_held(stored.progress) || !live.is_following() { Ok(allotment) } else { Err(live.broken()) }
    }

    /// Lets go of a task that waits for its caller, so that any node can go on with it. Called whenever the last thing this node had
    /// to do with it may be done.
    pub(crate) async fn release_if_idle(self: &Arc<Self>, live: &Arc<LiveTask>) {
        let Some(member) = &self.cluster else { return };
        if !live.is_idle() {
            return;
        }
        let _one_at_a_time = member.lock(&live.record.id).await;
        if !live.begin_release() {
            return;
        }
        // Its streams follow it from now on. Whoever comes later asks for wake-ups first.
        if live.has_watchers()
            && let Err(error) = self.watch_from_now(live).await
        {
            tracing::warn!(task = %live.record.id, %error, "cannot release a task: its streams could not follow it");
            live.undo_release();
            return;
        }
        if let Some(node) = live.node() {
            node.withdraw();
        }
        if let Err(fault) = member.port.release(&live.record.id, false).await {
            // The next call takes it again, here or by a call forwarded to here.
            tracing::warn!(task = %live.record.id, error = &fault as &dyn std::error::Error, "cannot release a task");
        }
    }
}
