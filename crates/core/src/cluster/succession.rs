//! Takes the tasks that other nodes leave behind: nodes that are gone, and nodes that shut down.

use std::sync::Arc;

use chancery_protocol::{Error, ErrorKind, TaskState};
use futures::StreamExt as _;

use super::holding::GONE;
use super::membership::Membership;
use crate::find::internal;
use crate::recover::BROKEN_OFF;
use crate::service::ChanceryInner;
use crate::{AfterRestart, NodeNumber, StoreError, Stored, TaskHolder};

/// So many tasks are taken at once.
const PAGE: usize = 64;

/// So many of them are taken up at the same time.
const AT_ONCE: usize = 8;

impl ChanceryInner {
    /// Acts on what each renewal of the lease says of other nodes, until the node ends.
    pub(super) async fn succeed_others(self: Arc<Self>) {
        let Some(member) = &self.cluster else { return };
        let mut news = member.news.subscribe();
        news.mark_changed();
        loop {
            tokio::select! {
                biased;
                () = member.ended() => return,
                changed = news.changed() => if changed.is_err() { return },
            }
            let latest = news.borrow_and_update().clone();
            if self.shutdown.is_cancelled() {
                continue;
            }
            self.look_at_authorizing(member).await;
            let left_over = std::mem::take(&mut *member.left_over());
            self.take_up_all(member, left_over).await;
            for node in latest.expired {
                self.succeed(member, node).await;
            }
            for node in latest.inherited {
                self.take_inherited(member, node).await;
            }
            if latest.has_released_tasks {
                self.take_released(member).await;
            }
        }
    }

    async fn succeed(self: &Arc<Self>, member: &Membership, expired: NodeNumber) {
        match member.port.succeed(expired).await {
            Ok(true) => {
                tracing::warn!(node = %expired, "this node succeeds a node whose lease has ended, and takes its tasks");
                self.take_inherited(member, expired).await;
            }
            Ok(false) => {}
            Err(fault) => log(&fault, "cannot succeed a node whose lease has ended"),
        }
    }

    async fn take_inherited(self: &Arc<Self>, member: &Membership, from: NodeNumber) {
        loop {
            match member.port.take_inherited(from, PAGE).await {
                Ok(tasks) if tasks.is_empty() => return,
                Ok(tasks) => self.take_up_all(member, tasks).await,
                Err(fault) => return log(&fault, "cannot take the tasks of a node that is gone; the next renewal tries again"),
            }
        }
    }

    async fn take_released(self: &Arc<Self>, member: &Membership) {
        loop {
            match member.port.take_released(PAGE).await {
                Ok(tasks) if tasks.is_empty() => return,
                Ok(tasks) => self.take_up_all(member, tasks).await,
                Err(fault) => return log(&fault, "cannot take the tasks of nodes that shut down; the next renewal tries again"),
            }
        }
    }

    /// Goes on with tasks that this node holds by now. Those that cannot be read are tried again after the next renewal.
    async fn take_up_all(self: &Arc<Self>, member: &Membership, tasks: Vec<Stored>) {
        let taken_up = futures::stream::iter(tasks).for_each_concurrent(AT_ONCE, |stored| async move {
            let again = stored.clone();
            match Box::pin(self.take_up_inherited(member, stored)).await {
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::TaskNotFound => {}
                Err(error) => {
                    tracing::warn!(task = %again.task.id, %error, "cannot go on with a task of another node; the next renewal tries again");
                    member.left_over().push(again);
                }
            }
        });
        taken_up.await;
    }

    async fn take_up_inherited(self: &Arc<Self>, member: &Membership, stored: Stored) -> Result<(), Error> {
        if stored.progress.state.is_terminal() {
            return Ok(());
        }
        let live = self.open(stored).await?;
        let one_at_a_time = member.lock(&live.record.id).await;
        let guard = self.take_up_held(member, &live, GONE).await?;
        drop(one_at_a_time);
        // If it waits for its caller, it is released now.
        drop(guard);
        Ok(())
    }

    /// Goes on with a task whose turn was broken off because the store failed: if another node has taken it over, it is not this
    /// one's any more.
    pub(crate) async fn end_forsaken_shared(self: &Arc<Self>, member: &Membership, stored: Stored) -> Result<(), Error> {
        let id = stored.task.id.clone();
        if member.port.holder(&id).await.map_err(internal)? != Some(TaskHolder::ThisNode) {
            return Ok(());
        }
        let agent = self.agents.load().get(&stored.task.agent).cloned();
        let resumes = agent.is_some_and(|agent| agent.runner.after_restart() == AfterRestart::Resume);
        let is_unfinished = matches!(stored.progress.state, TaskState::Submitted | TaskState::Working);
        if !is_unfinished || resumes {
            return member.port.release(&id, is_unfinished).await.map_err(internal);
        }
        let live = self.open(stored).await?;
        let _one_at_a_time = member.lock(&id).await;
        drop(self.take_up_held(member, &live, BROKEN_OFF).await?);
        Ok(())
    }
}

fn log(fault: &StoreError, what: &'static str) {
    tracing::warn!(error = fault as &dyn std::error::Error, "{what}");
}
