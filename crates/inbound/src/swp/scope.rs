//! The task ids of one caller: the same on all its connections, and nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use chancery_protocol::Caller;
use chancery_wire::swp::Report;
use chancery_wire::swp::codec::{Lifecycle, Limits, Outcome, Party, Reject, Speakers, TaskState, a2a};
use tokio::sync::Notify;

use super::said::Said;

/// The lifecycles of callers that have a connection open.
#[derive(Debug, Default)]
pub(super) struct Scopes(Mutex<HashMap<Caller, Weak<Scope>>>);

/// The tasks of one caller. When its last connection closes they are forgotten here; the service still knows them.
#[derive(Debug)]
pub(super) struct Scope {
    tasks: Mutex<Tasks>,
    /// Rings when a task has its result, and when nobody reports on one any more.
    news: Notify,
    caller: Caller,
    scopes: Weak<Scopes>,
}

#[derive(Debug)]
struct Tasks {
    lifecycle: Lifecycle,
    /// How many report on a task, each on its own connection.
    holders: HashMap<Bytes, usize>,
    said: Said,
}

/// The part that one connection has in a task. When the last one is given up, a task without a result is forgotten here.
#[derive(Debug)]
pub(super) struct Held {
    scope: Arc<Scope>,
    task_id: Bytes,
}

impl Scopes {
    pub(super) fn enter(self: &Arc<Self>, caller: &Caller, limits: &Limits) -> Arc<Scope> {
        let mut scopes = self.lock();
        if let Some(scope) = scopes.get(caller).and_then(Weak::upgrade) {
            return scope;
        }
        // Events and results come from whoever was given the task, and that is this side.
        let lifecycle = Lifecycle::new(limits, Speakers::TheOtherParty);
        let tasks = Mutex::new(Tasks { lifecycle, holders: HashMap::new(), said: Said::new(limits) });
        let scope = Arc::new(Scope { tasks, news: Notify::new(), caller: caller.clone(), scopes: Arc::downgrade(self) });
        scopes.insert(caller.clone(), Arc::downgrade(&scope));
        scope
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Caller, Weak<Scope>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scope {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a task that the peer gives, and a part in it.
    pub(super) fn hold(self: &Arc<Self>, task: &a2a::Message) -> Result<(Outcome, Held), Reject> {
        let mut tasks = self.lock();
        let outcome = tasks.lifecycle.accept(Party::Peer, task)?;
        // A copy, because a slice would keep the whole frame in memory.
        let task_id = task.task_id().map(|task_id| Bytes::copy_from_slice(task_id)).unwrap_or_default();
        *tasks.holders.entry(task_id.clone()).or_default() += 1;
        Ok((outcome, Held { scope: Arc::clone(self), task_id }))
    }

    /// What the lifecycle says to a report of the peer's.
    pub(super) fn judge(&self, report: &a2a::Message) -> Result<Outcome, Reject> {
        self.lock().lifecycle.accept(Party::Peer, report)
    }

    /// Notes a report of ours.
    pub(super) fn note(&self, report: &Report) -> Result<Outcome, Reject> {
        let mut tasks = self.lock();
        let outcome = tasks.lifecycle.accept(Party::Us, &report.message)?;
        if let (Outcome::Closed, a2a::Message::Result(result)) = (outcome, &report.message) {
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

    /// What came of a message that was said before, once somebody has reported it; nothing if nobody will. Whoever asks has no
    /// part in the task.
    pub(super) async fn what_came_of(&self, task_id: &[u8]) -> Option<Report> {
        loop {
            let news = self.news.notified();
            {
                let tasks = self.lock();
                match tasks.lifecycle.state(task_id) {
                    Some(TaskState::Open) => {}
                    Some(TaskState::Closed) => return tasks.said.result(task_id),
                    None => return None,
                }
            }
            news.await;
        }
    }
}

impl Drop for Held {
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

impl Drop for Scope {
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
    use chancery_wire::swp::codec::a2a::{Message, Task};

    fn task() -> Message {
        Message::Task(Task { task_id: "1".into(), kind: "k".into(), input: "x".into() })
    }

    #[test]
    fn task_ids_are_the_callers_own_on_all_its_connections_until_the_last_one_closes() {
        let scopes = Arc::new(Scopes::default());
        let limits = Limits::default();
        let enter = |tenant: &str, name: &str| scopes.enter(&Caller::new(tenant, name), &limits);
        let start = |scope: &Arc<Scope>| scope.hold(&task()).unwrap();
        let (first, second) = (enter("t", "a"), enter("t", "a"));
        let (outcome, held) = start(&first);
        assert_eq!(outcome, Outcome::Started);
        assert_eq!(start(&second).0, Outcome::AlreadyStarted { state: TaskState::Open });
        assert_eq!(start(&enter("t", "b")).0, Outcome::Started);
        assert_eq!(start(&enter("u", "a")).0, Outcome::Started);
        drop((held, first, second));
        assert!(scopes.lock().is_empty());
        assert_eq!(start(&enter("t", "a")).0, Outcome::Started);
    }

    #[tokio::test]
    async fn a_task_is_open_for_as_long_as_anybody_has_a_part_in_it() {
        let scopes = Arc::new(Scopes::default());
        let scope = scopes.enter(&Caller::new("t", "a"), &Limits::default());
        let (first, second) = (scope.hold(&task()).unwrap().1, scope.hold(&task()).unwrap().1);
        drop(second);
        let (outcome, third) = scope.hold(&task()).unwrap();
        assert_eq!(outcome, Outcome::AlreadyStarted { state: TaskState::Open });
        drop(first);
        let mut waiting = std::pin::pin!(scope.what_came_of(b"1"));
        tokio::select! {
            biased;
            _ = waiting.as_mut() => panic!("somebody still reports on it"),
            () = std::future::ready(()) => drop(third),
        }
        assert_eq!(waiting.await, None, "nobody does any more");
        assert_eq!(scope.hold(&task()).unwrap().0, Outcome::Started);
    }
}
