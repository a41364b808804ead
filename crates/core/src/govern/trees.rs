//! The tasks that have not ended, in the trees they belong to: on whose behalf an agent can be calling.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use chancery_protocol::{AgentName, TaskId};
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Accounts, Amount};
use chancery_rules::lineage::{AgentPath, TaskContext};
use foldhash::fast::RandomState;
use serde::Serialize;

use super::Opened;
use super::held::Held;
use crate::{Kinship, Link, TaskRecord};

/// A task in its tree. Kept by its open descendants too, so that what they cost reaches it after it has ended.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) record: Arc<TaskRecord>,
    pub(crate) kinship: Arc<Kinship>,
    pub(crate) parent: Option<Arc<Node>>,
    /// The budgets of the tree, and of the branches that were given less, from the root down to this task.
    pub(crate) accounts: Accounts,
    /// The one of them that was opened for this task: it goes with the last task below it.
    _own: Option<Opened>,
    trees: Trees,
    open: AtomicBool,
    /// It is being cancelled with all below it: nothing more is begun for it.
    closing: AtomicBool,
    /// In the list of its agent's open tasks. Only for whoever has locked the lists.
    place: AtomicUsize,
    link: Mutex<Option<Link>>,
    /// Of the turn that runs.
    held: Mutex<Weak<Held>>,
    subtree_usd: AtomicI64,
    subtree_tasks: AtomicU64,
    /// What of that was done for calls that came from elsewhere, whose callers were told what it cost.
    told_usd: AtomicI64,
}

/// What a task and everything below it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubtreeCost {
    pub usd: MicroUsd,
    pub tasks: u64,
}

impl Node {
    pub(crate) fn new(
        trees: &Trees,
        record: Arc<TaskRecord>,
        kinship: Arc<Kinship>,
        parent: Option<Arc<Node>>,
        accounts: Accounts,
        own: Option<Opened>,
    ) -> Arc<Self> {
        let node = Arc::new(Self {
            record,
            kinship,
            parent,
            accounts,
            _own: own,
            trees: trees.clone(),
            open: AtomicBool::new(true),
            closing: AtomicBool::new(false),
            place: AtomicUsize::new(0),
            link: Mutex::default(),
            held: Mutex::default(),
            subtree_usd: AtomicI64::new(0),
            subtree_tasks: AtomicU64::new(0),
            told_usd: AtomicI64::new(0),
        });
        node.upwards().for_each(|node| {
            node.subtree_tasks.fetch_add(1, Ordering::Relaxed);
        });
        node
    }

    /// The task has ended: nobody calls on its behalf any more.
    pub(crate) fn end(&self) {
        self.trees.close(self);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Lets nothing more begin below it, for as long as the answer is kept.
    pub(crate) fn close_to_new(self: &Arc<Self>) -> Closing {
        self.closing.store(true, Ordering::Release);
        Closing(Arc::clone(self))
    }

    /// Whether the task or one above it is being cancelled.
    pub(crate) fn is_closing(&self) -> bool {
        self.upwards().any(|node| node.closing.load(Ordering::Acquire))
    }

    /// The task, the one it was called from, and so on to the root.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    /// Adds what the task cost to everything it was done for.
    pub(crate) fn add_cost(&self, cost: Amount) {
        for node in self.upwards() {
            node.subtree_usd.fetch_add(cost.usd.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn subtree_cost(&self) -> SubtreeCost {
        SubtreeCost { usd: MicroUsd(self.subtree_usd.load(Ordering::Relaxed)), tasks: self.subtree_tasks.load(Ordering::Relaxed) }
    }

    /// The caller is told what the task and all below it cost. It may say so again, as part of what the task above cost.
    pub(crate) fn tell(&self, cost: SubtreeCost) {
        if let Some(above) = &self.parent {
            above.told_usd.fetch_add(cost.usd.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn told(&self) -> MicroUsd {
        MicroUsd(self.told_usd.load(Ordering::Relaxed))
    }

    /// A turn of the task runs on this.
    pub(crate) fn set_held(&self, held: &Arc<Held>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(held);
    }

    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    pub(crate) fn set_link(&self, link: &Link) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(link.clone());
    }

    pub(crate) fn link(&self) -> Option<Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The call that made the task, with the agents that still hold a task further up.
    pub(crate) fn context(&self) -> TaskContext {
        let mut above: Vec<&AgentName> =
            self.upwards().skip(1).filter(|node| node.is_open()).map(|node| &node.record.agent).collect();
        let caller = self.kinship.path.to_vec().into_iter().next();
        above.reverse();
        let visited = caller.iter().chain(above).cloned();
        TaskContext {
            trace_id: self.kinship.trace,
            parent_task_id: self.kinship.parent.clone(),
            depth: self.kinship.depth,
            root_agent_id: caller.clone().unwrap_or_default(),
            visited_agents: AgentPath::new(visited),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Closing(Arc<Node>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closing.store(false, Ordering::Release);
    }
}

/// The open tasks of a node. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees(Arc<Mutex<Index>>);

#[derive(Debug, Default)]
struct Index {
    by_task: HashMap<TaskId, Arc<Node>, RandomState>,
    /// Each node knows its place in the list of its agent.
    by_agent: HashMap<AgentName, Vec<Arc<Node>>, RandomState>,
}

impl Trees {
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, node: &Arc<Node>) {
        let (id, agent) = (node.record.id.clone(), node.record.agent.clone());
        let mut index = self.lock();
        if index.by_task.insert(id, Arc::clone(node)).is_none() {
            let tasks = index.by_agent.entry(agent).or_default();
            node.place.store(tasks.len(), Ordering::Relaxed);
            tasks.push(Arc::clone(node));
        }
    }

    pub(crate) fn get(&self, task: &TaskId) -> Option<Arc<Node>> {
        self.lock().by_task.get(task).cloned()
    }

    /// The open tasks an agent was given by a tenant. What it does for one is no other's to know or to pay for.
    pub(crate) fn of_agent(&self, agent: &str, tenant: &str) -> Vec<Arc<Node>> {
        let index = self.lock();
        let tasks = index.by_agent.get(agent).into_iter().flatten();
        tasks.filter(|node| *node.record.owner.tenant == *tenant).cloned().collect()
    }

    /// The open tasks below one, and itself if it is open.
    pub(crate) fn below(&self, task: &TaskId) -> Vec<Arc<Node>> {
        let index = self.lock();
        index.by_task.values().filter(|node| node.upwards().any(|above| above.record.id == *task)).cloned().collect()
    }

    /// A task whose end could not be recorded has not ended.
    pub(crate) fn reopen(&self, node: &Arc<Node>) {
        node.open.store(true, Ordering::Release);
        self.add(node);
    }

    fn close(&self, node: &Node) {
        node.open.store(false, Ordering::Release);
        let mut index = self.lock();
        if index.by_task.remove(&node.record.id).is_none() {
            return;
        }
        let Some(tasks) = index.by_agent.get_mut(&node.record.agent) else { return };
        let place = node.place.load(Ordering::Relaxed);
        tasks.swap_remove(place);
        if let Some(moved) = tasks.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }
}
