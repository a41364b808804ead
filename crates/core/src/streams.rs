//! Counts open streams per caller, task and node, and gives each one's place back when it closes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{Binding, CallAccount, CallContext, Error, ErrorKind, Request, TaskId};

use crate::agents::Agent;
use crate::limits::TaskLimits;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    node: usize,
    /// By account, across connections.
    callers: HashMap<CallAccount, usize>,
    tasks: HashMap<TaskId, usize>,
}

/// Rejects a stream of an agent whose card says that it does not stream. A task over SWP is no stream in this sense: its events are
/// part of every task.
pub(crate) fn streams_offered(context: &CallContext, agent: &Agent, request: &Request) -> Result<(), Error> {
    let refuses = agent.card.capabilities.streaming == Some(false);
    if refuses && request.operation().streams() && context.binding != Binding::Swp {
        let message = format!("agent {} does not stream according to its card; send the message without streaming", agent.name);
        return Err(Error::new(ErrorKind::UnsupportedOperation, message));
    }
    Ok(())
}

/// A place among the open streams. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    account: CallAccount,
    /// None while the task is still to be made.
    task: Option<TaskId>,
}

impl Streams {
    pub(crate) fn enter(
        self: &Arc<Self>,
        account: &CallAccount,
        task: &TaskId,
        limits: &TaskLimits,
    ) -> Result<StreamPermit, Error> {
        let mut permit = self.reserve(account, limits)?;
        permit.watch(task, limits)?;
        Ok(permit)
    }

    /// A place for a stream whose task is not known yet. With it in hand a message can be taken: it will be watched.
    pub(crate) fn reserve(self: &Arc<Self>, account: &CallAccount, limits: &TaskLimits) -> Result<StreamPermit, Error> {
        let (mut open, of_all) = (self.lock(), account.across_connections());
        let of_caller = open.callers.get(&of_all).copied().unwrap_or(0);
        within("limits.streams_per_node", open.node, limits.streams_per_node)?;
        within("limits.streams_per_caller", of_caller, limits.streams_per_caller)?;
        open.node += 1;
        *open.callers.entry(of_all).or_default() += 1;
        Ok(StreamPermit { streams: Arc::clone(self), account: account.clone(), task: None })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stream of the task has a reader.
    pub(crate) fn is_watched(&self, task: &TaskId) -> bool {
        self.lock().tasks.contains_key(task)
    }

    pub(crate) fn open(&self) -> usize {
        self.lock().node
    }
}

impl StreamPermit {
    pub(crate) fn account(&self) -> &CallAccount {
        &self.account
    }

    /// The task this stream is of, unless too many are of it already.
    pub(crate) fn watch(&mut self, task: &TaskId, limits: &TaskLimits) -> Result<(), Error> {
        if self.task.as_ref() == Some(task) {
            return Ok(());
        }
        let mut open = self.streams.lock();
        within("limits.streams_per_task", open.tasks.get(task).copied().unwrap_or(0), limits.streams_per_task)?;
        *open.tasks.entry(task.clone()).or_default() += 1;
        if let Some(other) = self.task.replace(task.clone()) {
            leave(&mut open.tasks, &other);
        }
        Ok(())
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.node -= 1;
        leave(&mut open.callers, &self.account.across_connections());
        if let Some(task) = &self.task {
            leave(&mut open.tasks, task);
        }
    }
}

fn within(name: &'static str, used: usize, limit: usize) -> Result<(), Error> {
    if used < limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitReached, format!("{name} = {limit} streams are open")).with_fact("limit", name))
}

fn leave<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use chancery_protocol::{Caller, PeerConnection};

    use super::*;

    fn caller(name: &str) -> CallAccount {
        CallAccount::Caller(Caller::new("t", name))
    }

    #[test]
    fn each_limit_holds_at_its_edge_and_frees_on_close() {
        let limits = TaskLimits { streams_per_node: 3, streams_per_caller: 2, streams_per_task: 2, ..TaskLimits::default() };
        let streams = Arc::new(Streams::default());
        let (a, b) = (caller("a"), caller("b"));
        let first = streams.enter(&a, &"1".into(), &limits).unwrap();
        let _second = streams.enter(&a, &"1".into(), &limits).unwrap();
        let by_caller = streams.enter(&a, &"2".into(), &limits).unwrap_err();
        assert_eq!(by_caller.facts, [("limit", "limits.streams_per_caller".to_owned())]);
        let by_task = streams.enter(&b, &"1".into(), &limits).unwrap_err();
        assert_eq!(by_task.facts, [("limit", "limits.streams_per_task".to_owned())]);
        let _third = streams.enter(&b, &"2".into(), &limits).unwrap();
        let by_node = streams.enter(&b, &"3".into(), &limits).unwrap_err();
        assert_eq!(by_node.facts, [("limit", "limits.streams_per_node".to_owned())]);
        drop(first);
        let _again = streams.enter(&a, &"3".into(), &limits).unwrap();
        assert_eq!(streams.open(), 3);
    }

    #[test]
    fn callers_without_credentials_are_counted_by_their_network() {
        let limits = TaskLimits { streams_per_caller: 2, ..TaskLimits::default() };
        let streams = Arc::new(Streams::default());
        let at = |last, number| CallAccount::Connection(PeerConnection::new([192, 0, 2, last].into(), number));
        let _first = streams.reserve(&at(1, 1), &limits).unwrap();
        let second = streams.reserve(&at(1, 2), &limits).unwrap();
        assert!(streams.reserve(&at(1, 3), &limits).is_err());
        assert!(streams.reserve(&at(2, 4), &limits).is_ok());
        drop(second);
        assert!(streams.reserve(&at(1, 3), &limits).is_ok());
    }

    #[test]
    fn a_reserved_place_counts_for_its_task_once_that_is_known() {
        let limits = TaskLimits { streams_per_task: 1, ..TaskLimits::default() };
        let streams = Arc::new(Streams::default());
        let mut permit = streams.reserve(&caller("a"), &limits).unwrap();
        permit.watch(&"1".into(), &limits).unwrap();
        permit.watch(&"1".into(), &limits).unwrap();
        assert!(streams.enter(&caller("b"), &"1".into(), &limits).is_err());
        drop(permit);
        assert!(streams.enter(&caller("b"), &"1".into(), &limits).is_ok());
    }
}
