//! The task ids of one caller: shared by all its connections, and separate from those of other callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use chancery_protocol::Caller;
use chancery_wire::swp::Report;
use chancery_wire::swp::codec::{Lifecycle, MessageEffect, Party, Reject, Speakers, SwpLimits, SwpTaskState, a2a};
use tokio::sync::Notify;

use super::follow_ups::FollowUpDedupe;

/// The lifecycles of callers that have a connection open.
#[derive(Debug, Default)]
pub(super) struct TasksByCaller(Mutex<HashMap<Caller, Weak<CallerTasks>>>);

/// The tasks of one caller. When its last connection closes they are forgotten here; the service still knows them.
#[derive(Debug)]
pub(super) struct CallerTasks {
    tasks: Mutex<Tasks>,
    /// Rings when a task has its result, and when its last reporter ended.
    news: Notify,
    caller: Caller,
    scopes: Weak<TasksByCaller>,
}

#[derive(Debug)]
struct Tasks {
    lifecycle: Lifecycle,
    /// How many report on a task, each on its own connection.
    holders: HashMap<Bytes, usize>,
    said: FollowUpDedupe,
}

/// The part that one connection has in a task. When the last one is given up, a task without a result is forgotten here.
#[derive(Debug)]
pub(super) struct TaskShare {
    scope: Arc<CallerTasks>,
    task_id: Bytes,
}

impl TasksByCaller {
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller, limits: &SwpLimits) -> Arc<CallerTasks> {
        let mut scopes = self.lock();
        if let Some(scope) = scopes.get(caller).and_then(Weak::upgrade) {
            return scope;
        }
        // Events and results come from whoever was given the task, and that is this side.
        let lifecycle = Lifecycle::new(limits, Speakers::TheOtherParty);
        let tasks = Mutex::new(Tasks { lifecycle, holders: HashMap::new(), said: FollowUpDedupe::new(limits) });
        let scope = Arc::new(CallerTasks { tasks, news: Notify::new(), caller: caller.clone(), scopes: Arc::downgrade(self) });
        scopes.insert(caller.clone(), Arc::downgrade(&scope));
        scope
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, Weak<CallerTasks>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerTasks {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a task that the peer gives, and a part in it.
    pub(super) fn hold(self: &Arc<Self>, task: &a2a::A2aMessage) -> Result<(MessageEffect, TaskShare), Reject> {
        let mut tasks = self.lock();
        let outcome = tasks.lifecycle.accept(Party::Peer, task)?;
        // A copy, because a slice would keep the whole frame in memory.
        let task_id = task.task_id().map(|task_id| Bytes::copy_from_slice(task_id)).unwrap_or_default();
        *tasks.holders.entry(task_id.clone()).or_default() += 1;
        Ok((outcome, TaskShare { scope: Arc::clone(self), task_id }))
    }

    /// What the lifecycle says to a report of the peer's.
    pub(super) fn judge(&self, report: &a2a::A2aMessage) -> Result<MessageEffect, Reject> {
        self.lock().lifecycle.accept(Party::Peer, report)
    }

    /// Notes a report of ours.
    pub(super) fn note(&self, report: &Report) -> Result<MessageEffect, Reject> {
        let mut tasks = self.lock();
        let outcome = tasks.lifecycle.accept(Party::Us, &report.message)?;
        if let (MessageEffect::Closed, a2a::A2aMessage::Result(result)) = (outcome, &report.message) {
            tasks.said.keep(result, report);
            self.news.notify_waiters();
        }
        Ok(outcome)
    }

    /// Whether a message that goes on with a task was not said before. From now on it was.
    pub(super) fn say(&self, task_id: &[u8]) -> bool {
        self.lock().said.say(task_id)
    }

    pub(super) fn take_back(&self, task_id: &[u8]) {
        self.lock().said.take_back(task_id);
    }

    /// The result of an earlier message, after it was reported; nothing if it will not be. The requester has
    /// no part in the task.
    pub(super) async fn what_came_of(&self, task_id: &[u8]) -> Option<Report> {
        loop {
            let news = self.news.notified();
            {
                let tasks = self.lock();
                match tasks.lifecycle.state(task_id) {
                    Some(SwpTaskState::Open) => {}
                    Some(SwpTaskState::Closed) => return tasks.said.result(task_id),
                    None => return None,
                }
            }
            news.await;
        }
    }
}

impl Drop for TaskShare {
    fn drop(&mut self) {
        let mut tasks = self.scope.lock();
        if let Some(holders) = tasks.holders.get_mut(&self.task_id) {
            *holders -= 1;
            if *holders == 0 {
                tasks.holders.remove(&self.task_id);
                tasks.lifecycle.abandon(&self.task_id);
                self.scope.news.notify_waiters();
            }
        }
    }
}

impl Drop for CallerTasks {
    fn drop(&mut self) {
        let Some(scopes) = self.scopes.upgrade() else { return };
        let mut scopes = scopes.lock();
        // Somebody may have come in again meanwhile.
        if scopes.get(&self.caller).is_some_and(|scope| scope.strong_count() == 0) {
            scopes.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_wire::swp::codec::a2a::{A2aMessage, SwpTaskMessage};

    fn task() -> A2aMessage {
        A2aMessage::Task(SwpTaskMessage { task_id: "1".into(), kind: "k".into(), input: "x".into() })
    }

    #[test]
    fn task_ids_are_the_callers_own_on_all_its_connections_until_the_last_one_closes() {
        let scopes = Arc::new(TasksByCaller::default());
        let limits = SwpLimits::default();
        let enter = |tenant: &str, name: &str| scopes.enter(&Caller::new(tenant, name), &limits);
        let start = |scope: &Arc<CallerTasks>| scope.hold(&task()).unwrap();
        let (first, second) = (enter("t", "a"), enter("t", "a"));
        let (outcome, held) = start(&first);
        assert_eq!(outcome, MessageEffect::Started);
        assert_eq!(start(&second).0, MessageEffect::AlreadyStarted { state: SwpTaskState::Open });
        assert_eq!(start(&enter("t", "b")).0, MessageEffect::Started);
        assert_eq!(start(&enter("u", "a")).0, MessageEffect::Started);
        drop((held, first, second));
        assert!(scopes.lock().is_empty());
        assert_eq!(start(&enter("t", "a")).0, MessageEffect::Started);
    }

    #[tokio::test]
    async fn a_task_is_open_for_as_long_as_anybody_has_a_part_in_it() {
        let scopes = Arc::new(TasksByCaller::default());
        let scope = scopes.enter(&Caller::new("t", "a"), &SwpLimits::default());
        let (first, second) = (scope.hold(&task()).unwrap().1, scope.hold(&task()).unwrap().1);
        drop(second);
        let (outcome, third) = scope.hold(&task()).unwrap();
        assert_eq!(outcome, MessageEffect::AlreadyStarted { state: SwpTaskState::Open });
        drop(first);
        let mut waiting = std::pin::pin!(scope.what_came_of(b"1"));
        tokio::select! {
            biased;
            _ = waiting.as_mut() => panic!("somebody still reports on it"),
            () = std::future::ready(()) => drop(third),
        }
        assert_eq!(waiting.await, None, "nobody does any more");
        assert_eq!(scope.hold(&task()).unwrap().0, MessageEffect::Started);
    }
}
