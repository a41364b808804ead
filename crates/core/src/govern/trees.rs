//! The tasks that have not ended, in the trees they belong to: on whose behalf an agent can be calling.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chancery_protocol::{AgentName, TaskId, Timestamp, TraceId};
use chancery_rules::lineage::Attribution;
use foldhash::fast::RandomState;

use super::lingering::Lingering;
use super::node::TreeNode;
use super::own_names::OwnNames;

/// The open tasks of a node. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    index: Mutex<Index>,
    /// How long a task that has ended is remembered, in microseconds.
    linger: AtomicI64,
    /// When a loop was last warned of, in microseconds.
    warned: AtomicI64,
}

#[derive(Debug, Default)]
struct Index {
    by_task: HashMap<TaskId, Arc<TreeNode>, RandomState>,
    /// Each node knows its place in the list of its agent.
    by_agent: HashMap<AgentName, Vec<Arc<TreeNode>>, RandomState>,
    /// Tasks by the span id that was sent with the task. Only for remote agents, as all that follows.
    by_span: HashMap<u64, Arc<TreeNode>, RandomState>,
    /// By a trace that was made here.
    by_trace: HashMap<TraceId, Vec<Arc<TreeNode>>, RandomState>,
    /// By what their agents call them.
    own_names: OwnNames,
    ended: Lingering,
    /// The newest trees that began at remote agents, the oldest first.
    roots: VecDeque<Weak<TreeNode>>,
}

/// So many of them are looked at to find a loop.
const RECENT_ROOTS: usize = 64;
/// An agent that was called so often, with another in between, and has answered none of it, looks like one in a loop.
const VISITS: usize = 3;
const WARN_EVERY_MICROS: i64 = 60_000_000;

impl Index {
    fn mark(&mut self, node: &Arc<TreeNode>) {
        if let Some(span) = node.span.get() {
            self.by_span.insert(*span, Arc::clone(node));
        }
        if node.elsewhere && node.kinship.made {
            self.by_trace.entry(node.kinship.trace).or_default().push(Arc::clone(node));
        }
        if node.elsewhere {
            self.own_names.set(node);
        }
    }

    /// Whether a tree that begins looks like one more round of a loop that nothing places.
    fn begins(&mut self, node: &Arc<TreeNode>) -> bool {
        if self.roots.len() == RECENT_ROOTS {
            self.roots.pop_front();
        }
        self.roots.push_back(Arc::downgrade(node));
        let (mut visits, mut another) = (0, true);
        for root in self.roots.iter().filter_map(Weak::upgrade).filter(|root| root.is_open()) {
            match root.record.agent == node.record.agent {
                true if another => (visits, another) = (visits + 1, false),
                true => {}
                false => another = true,
            }
        }
        visits >= VISITS
    }

    /// Undoes `mark`. Only tasks of remote agents have marks.
    fn unmark(&mut self, node: &TreeNode) {
        if let Some(span) = node.span.get() {
            self.by_span.remove(span);
        }
        if !node.elsewhere {
            return;
        }
        self.own_names.remove(node);
        if node.kinship.made
            && let Some(tree) = self.by_trace.get_mut(&node.kinship.trace)
        {
            tree.retain(|other| other.record.id != node.record.id);
            if tree.is_empty() {
                self.by_trace.remove(&node.kinship.trace);
            }
        }
    }
}

impl Trees {
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_linger(&self, linger: Duration) {
        self.0.linger.store(i64::try_from(linger.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Tasks that ended before that are forgotten.
    fn since(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_micros(now.micros().saturating_sub(self.0.linger.load(Ordering::Relaxed)).saturating_add(1))
    }

    /// Answers whether it looks like part of a loop that nothing places.
    pub(crate) fn add(&self, node: &Arc<TreeNode>) -> bool {
        let (id, agent) = (node.record.id.clone(), node.record.agent.clone());
        let mut index = self.lock();
        if index.by_task.insert(id, Arc::clone(node)).is_none() {
            let tasks = index.by_agent.entry(agent).or_default();
            node.place.store(tasks.len(), Ordering::Relaxed);
            tasks.push(Arc::clone(node));
            index.mark(node);
            return node.elsewhere && node.kinship.attribution == Attribution::Root && index.begins(node);
        }
        false
    }

    /// Whether it is time to warn of a loop again.
    pub(crate) fn warns_now(&self, now: Timestamp) -> bool {
        let last = self.0.warned.load(Ordering::Relaxed);
        let is_time = last == 0 || now.micros().saturating_sub(last) >= WARN_EVERY_MICROS;
        is_time && self.0.warned.compare_exchange(last, now.micros().max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The task goes out under this span id from now on.
    pub(crate) fn name_span(&self, node: &Arc<TreeNode>, span: u64) {
        if node.span.set(span).is_ok() && node.is_open() {
            self.lock().by_span.insert(span, Arc::clone(node));
        }
    }

    /// The remote agent of an open task uses other ids for it from now on.
    pub(super) fn rename(&self, node: &Arc<TreeNode>) {
        let mut index = self.lock();
        if index.by_task.contains_key(&node.record.id) {
            index.own_names.set(node);
        }
    }

    /// The open tasks, at remote agents, whose agents use one of these ids. The id of a local task does not
    /// count.
    pub(crate) fn named<'a>(&self, names: impl Iterator<Item = &'a str>, fits: impl Fn(&TreeNode) -> bool) -> Vec<Arc<TreeNode>> {
        let index = self.lock();
        let mut named: Vec<Arc<TreeNode>> = Vec::new();
        for name in names.filter(|name| !index.by_task.contains_key(*name)) {
            for node in index.own_names.get(name).filter(|node| fits(node)) {
                if !named.iter().any(|known| Arc::ptr_eq(known, node)) {
                    named.push(Arc::clone(node));
                }
            }
        }
        named
    }

    pub(crate) fn by_span(&self, span: u64) -> Option<Arc<TreeNode>> {
        self.lock().by_span.get(&span).cloned()
    }

    /// The open tasks, at remote agents, of the tree with a trace that was made here.
    pub(crate) fn of_trace(&self, trace: TraceId) -> Vec<Arc<TreeNode>> {
        self.lock().by_trace.get(&trace).cloned().unwrap_or_default()
    }

    /// A task that ended a moment ago.
    pub(crate) fn ended(&self, task: &TaskId, now: Timestamp) -> Option<Arc<TreeNode>> {
        let since = self.since(now);
        self.lock().ended.get(task, since)
    }

    /// The last task of an agent, if it ended a moment ago.
    pub(crate) fn last_ended(&self, agent: &str, now: Timestamp, fits: impl Fn(&TreeNode) -> bool) -> Option<Arc<TreeNode>> {
        let since = self.since(now);
        self.lock().ended.last_of(agent, since, fits)
    }

    /// Forgets tasks that ended too long ago, with the budgets of their trees.
    pub(crate) fn sweep(&self, now: Timestamp) {
        let gone = self.lock().ended.sweep(self.since(now));
        drop(gone);
    }

    pub(crate) fn get(&self, task: &TaskId) -> Option<Arc<TreeNode>> {
        self.lock().by_task.get(task).cloned()
    }

    /// The open tasks of an agent.
    pub(crate) fn of_agent(&self, agent: &str, fits: impl Fn(&TreeNode) -> bool) -> Vec<Arc<TreeNode>> {
        let index = self.lock();
        index.by_agent.get(agent).into_iter().flatten().filter(|node| fits(node)).cloned().collect()
    }

    /// The open tasks below one, and itself if it is open.
    pub(crate) fn below(&self, task: &TaskId) -> Vec<Arc<TreeNode>> {
        let index = self.lock();
        index.by_task.values().filter(|node| node.upwards().any(|above| above.record.id == *task)).cloned().collect()
    }

    /// A task whose end could not be recorded has not ended.
    pub(crate) fn reopen(&self, node: &Arc<TreeNode>) {
        node.open.store(true, Ordering::Release);
        self.add(node);
    }

    /// Takes a task off the list. One that ended is remembered for a while.
    pub(super) fn close(&self, node: &TreeNode, ended: Option<Timestamp>) {
        node.open.store(false, Ordering::Release);
        let mut index = self.lock();
        let Some(closed) = index.by_task.remove(&node.record.id) else { return };
        index.unmark(node);
        if let Some(tasks) = index.by_agent.get_mut(&node.record.agent) {
            let place = node.place.load(Ordering::Relaxed);
            tasks.swap_remove(place);
            if let Some(moved) = tasks.get(place) {
                moved.place.store(place, Ordering::Relaxed);
            }
        }
        // Both are dropped without the lock: with a node may go the budgets of its tree.
        let gone = ended.filter(|_| node.elsewhere).map(|at| index.ended.add(Arc::clone(&closed), at, self.since(at)));
        drop(index);
        drop((closed, gone));
    }

    /// Remembers a task that had ended before this process began.
    pub(crate) fn remember(&self, node: &Arc<TreeNode>, ended: Timestamp, now: Timestamp) {
        let gone = self.lock().ended.add(Arc::clone(node), ended, self.since(now));
        drop(gone);
    }
}
