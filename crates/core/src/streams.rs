//! Counts open streams per caller, task and node, and gives each one's place back when it closes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{Caller, Error, ErrorKind, TaskId};

use crate::limits::TaskLimits;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    node: usize,
    callers: HashMap<Caller, usize>,
    tasks: HashMap<TaskId, usize>,
}

/// A place among the open streams. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    caller: Caller,
    /// None while the task is still to be made.
    task: Option<TaskId>,
}

impl Streams {
    pub(crate) fn enter(self: &Arc<Self>, caller: &Caller, task: &TaskId, limits: &TaskLimits) -> Result<StreamPermit, Error> {
        let mut permit = self.reserve(caller, limits)?;
        permit.watch(task, limits)?;
        Ok(permit)
    }

    /// A place for a stream whose task is not known yet. With it in hand a message can be taken: it will be watched.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &Caller, limits: &TaskLimits) -> Result<StreamPermit, Error> {
        let mut open = self.lock();
        let of_caller = open.callers.get(caller).copied().unwrap_or(0);
        within("limits.streams_per_node", open.node, limits.streams_per_node)?;
        within("limits.streams_per_caller", of_caller, limits.streams_per_caller)?;
        open.node += 1;
        *open.callers.entry(caller.clone()).or_default() += 1;
        Ok(StreamPermit { streams: Arc::clone(self), caller: caller.clone(), task: None })
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
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
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
        leave(&mut open.callers, &self.caller);
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
    use super::*;

    #[test]
    fn each_limit_holds_at_its_edge_and_frees_on_close() {
        let limits = TaskLimits { streams_per_node: 3, streams_per_caller: 2, streams_per_task: 2, ..TaskLimits::default() };
        let streams = Arc::new(Streams::default());
        let (a, b) = (Caller::new("t", "a"), Caller::new("t", "b"));
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
    fn a_reserved_place_counts_for_its_task_once_that_is_known() {
        let limits = TaskLimits { streams_per_task: 1, ..TaskLimits::default() };
        let streams = Arc::new(Streams::default());
        let mut permit = streams.reserve(&Caller::new("t", "a"), &limits).unwrap();
        permit.watch(&"1".into(), &limits).unwrap();
        permit.watch(&"1".into(), &limits).unwrap();
        assert!(streams.enter(&Caller::new("t", "b"), &"1".into(), &limits).is_err());
        drop(permit);
        assert!(streams.enter(&Caller::new("t", "b"), &"1".into(), &limits).is_ok());
    }
}
