//! The tasks that have not ended, in the trees they belong to: on whose behalf an agent can be calling.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_protocol::{AgentName, TaskId, Timestamp, TraceId};
use chancery_rules::lineage::{Attribution, LineageConfig};
use foldhash::fast::RandomState;

use super::lingering::Lingering;
use super::node::TreeNode;
use super::open_roots::OpenRoots;
use super::own_names::OwnNames;
use super::steady::SteadyTime;

/// The open tasks of a node. A clone is the same list.
#[derive(Clone, Debug)]
pub(crate) struct Trees(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    index: Mutex<Index>,
    /// By this a task ended a moment ago, also when the machine's clock is set meanwhile.
    time: Arc<SteadyTime>,
    /// How long a task that has ended is remembered, in microseconds.
    linger: AtomicI64,
    /// The most ended tasks that are remembered.
    most_ended: AtomicUsize,
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
    roots: OpenRoots,
}

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

    /// Undoes `mark`. Only tasks of remote agents have marks.
    fn unmark(&mut self, node: &TreeNode) {
        if let Some(span) = node.span.get() {
            self.by_span.remove(span);
        }
        if !node.elsewhere {
            return;
        }
        self.own_names.remove(node);
        self.roots.ends(node);
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
    pub(super) fn new(time: Arc<SteadyTime>, config: &LineageConfig) -> Self {
        let (index, linger, warned) = (Mutex::default(), AtomicI64::new(0), AtomicI64::new(0));
        let trees = Self(Arc::new(Shared { index, time, linger, most_ended: AtomicUsize::new(0), warned }));
        trees.set_rules(config);
        trees
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_rules(&self, config: &LineageConfig) {
        self.0.linger.store(i64::try_from(config.linger().as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.0.most_ended.store(config.max_ended, Ordering::Relaxed);
    }

    /// Tasks that ended before that are forgotten.
    fn since(&self) -> Timestamp {
        let now = self.0.time.now().micros();
        Timestamp::from_micros(now.saturating_sub(self.0.linger.load(Ordering::Relaxed)).saturating_add(1))
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
            return node.elsewhere && node.kinship.attribution == Attribution::Root && index.roots.begins(node);
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

    /// The task that went out under a span id, if it is open or ended a moment ago.
    pub(crate) fn by_span(&self, span: u64) -> Option<Arc<TreeNode>> {
        let since = self.since();
        let index = self.lock();
        index.by_span.get(&span).cloned().or_else(|| index.ended.by_span(span, since))
    }

    /// The open tasks, at remote agents, of the tree with a trace that was made here.
    pub(crate) fn of_trace(&self, trace: TraceId) -> Vec<Arc<TreeNode>> {
        self.lock().by_trace.get(&trace).cloned().unwrap_or_default()
    }

    /// A task that ended a moment ago.
    pub(crate) fn ended(&self, task: &TaskId) -> Option<Arc<TreeNode>> {
        let since = self.since();
        self.lock().ended.get(task, since)
    }

    /// The last task of an agent, if it ended a moment ago; for one tenant, or for any.
    pub(crate) fn last_ended(&self, agent: &str, tenant: Option<&str>) -> Option<Arc<TreeNode>> {
        let since = self.since();
        self.lock().ended.last_of(agent, tenant, since)
    }

    /// Forgets tasks that ended too long ago, with the budgets of their trees.
    pub(crate) fn sweep(&self) {
        let since = self.since();
        let gone = self.lock().ended.sweep(since);
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
        let gone = self.lock().ended.remove(&node.record.id);
        drop(gone);
        self.add(node);
    }

    /// Takes a task off the list. One that ended is remembered for a while.
    pub(super) fn close(&self, node: &TreeNode, ended: bool) {
        node.open.store(false, Ordering::Release);
        let keeps = (ended && node.elsewhere).then(|| (self.0.time.now(), self.since()));
        let at_most = self.0.most_ended.load(Ordering::Relaxed);
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
        let gone = keeps.map(|(at, since)| index.ended.add(Arc::clone(&closed), at, since, at_most));
        drop(index);
        drop((closed, gone));
    }

    /// Remembers a task that had ended before this process began, at `ended` by the governance time.
    pub(crate) fn remember(&self, node: &Arc<TreeNode>, ended: Timestamp) {
        let (since, at_most) = (self.since(), self.0.most_ended.load(Ordering::Relaxed));
        let gone = self.lock().ended.add(Arc::clone(node), ended, since, at_most);
        drop(gone);
    }
}
