//! A task in its tree: who made it, what it may spend, what it and everything below it cost.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use chancery_protocol::TaskState;
use chancery_rules::MicroUsd;
use chancery_rules::budget::{Accounts, Amount};
use chancery_rules::lineage::{AgentPath, Attribution, TaskContext, TokenClaims};
use serde::Serialize;

use super::OpenedAccount;
use super::held_budget::HeldBudget;
use super::lineage_bytes::SentLineage;
use super::trees::Trees;
use crate::{LineageRecord, Link, TaskRecord};

/// A task in its tree. Kept by its open descendants too, so that what they cost reaches it after it has ended.
#[derive(Debug)]
pub(crate) struct TreeNode {
    pub(crate) record: Arc<TaskRecord>,
    pub(crate) kinship: Arc<LineageRecord>,
    pub(crate) parent: Option<Arc<TreeNode>>,
    /// The budgets of the tree, and of the branches that were given less, from the root down to this task.
    pub(crate) accounts: Accounts,
    /// The one of them that was opened for this task: it goes with the last task below it.
    _own: Option<OpenedAccount>,
    trees: Trees,
    pub(super) open: AtomicBool,
    /// It is being cancelled with all below it: nothing more is begun for it.
    closing: AtomicBool,
    /// Its agent is remote and calls over the network.
    pub(crate) elsewhere: bool,
    canceled: AtomicBool,
    /// The span id that goes out with it.
    pub(super) span: OnceLock<u64>,
    /// Its position in the list of its agent's open tasks. Only for the holder of the lists' lock.
    pub(super) place: AtomicUsize,
    /// Its number among the open trees of remote agents; 0 for none. Only for the holder of the lists' lock.
    pub(super) root_number: AtomicU64,
    link: Mutex<Option<Link>>,
    /// The lineage that its agent received in the last call.
    sent: Mutex<Option<SentLineage>>,
    /// Of the turn that runs.
    held: Mutex<Weak<HeldBudget>>,
    subtree_usd: AtomicI64,
    subtree_tasks: AtomicU64,
    /// The part of that for remote calls, whose callers received the cost.
    told_usd: AtomicI64,
}

/// What a task and everything below it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubtreeCost {
    /// The sum of the costs.
    pub usd: MicroUsd,
    /// The number of tasks.
    pub tasks: u64,
}

impl TreeNode {
    pub(crate) fn new(
        trees: &Trees,
        record: Arc<TaskRecord>,
        kinship: Arc<LineageRecord>,
        parent: Option<Arc<TreeNode>>,
        accounts: Accounts,
        own: Option<OpenedAccount>,
        elsewhere: bool,
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
            elsewhere,
            canceled: AtomicBool::new(false),
            span: OnceLock::new(),
            place: AtomicUsize::new(0),
            root_number: AtomicU64::new(0),
            link: Mutex::default(),
            sent: Mutex::default(),
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

    /// The task has ended: only an agent that calls on after its answer still calls for it.
    pub(crate) fn end(&self, state: TaskState) {
        self.canceled.store(state == TaskState::Canceled, Ordering::Relaxed);
        self.trees.close(self, true);
    }

    /// The span id that the task went out with before this process began.
    pub(crate) fn set_span(&self, span: u64) {
        // Each task has one: nothing else is ever set.
        let _ = self.span.set(span);
    }

    /// There was nothing to it after all.
    pub(crate) fn withdraw(&self) {
        self.trees.close(self, false);
    }

    /// What a hop token of the task stands for.
    pub(crate) fn token_claims(&self) -> TokenClaims {
        TokenClaims {
            tenant: Arc::clone(&self.record.owner.tenant),
            root_task: self.kinship.root.clone(),
            parent_task: self.record.id.clone(),
            trace_id: self.kinship.trace,
            depth: self.kinship.depth,
            audience: self.record.agent.clone(),
        }
    }

    /// It ended because of a cancel.
    pub(crate) fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
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

    /// The caller receives the cost of the task and all below it. It may report it again, as part of the cost
    /// of the task above.
    pub(crate) fn tell(&self, cost: SubtreeCost) {
        if let Some(above) = &self.parent {
            above.told_usd.fetch_add(cost.usd.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn told(&self) -> MicroUsd {
        MicroUsd(self.told_usd.load(Ordering::Relaxed))
    }

    /// A turn of the task runs on this.
    pub(crate) fn set_held(&self, held: &Arc<HeldBudget>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(held);
    }

    pub(crate) fn held(&self) -> Option<Arc<HeldBudget>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    pub(crate) fn set_sent(&self, sent: SentLineage) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
    }

    pub(crate) fn sent(&self) -> Option<SentLineage> {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_link(self: &Arc<Self>, link: &Link) {
        let before = self.link.lock().unwrap_or_else(PoisonError::into_inner).replace(link.clone());
        if self.elsewhere && before.as_ref() != Some(link) {
            self.trees.rename(self);
        }
    }

    pub(crate) fn link(&self) -> Option<Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The call that made the task, with the agents that still wait further up.
    pub(crate) fn context(&self) -> TaskContext {
        TaskContext {
            trace_id: self.kinship.trace,
            parent_task_id: self.kinship.parent.clone(),
            depth: self.kinship.depth,
            root_agent_id: self.kinship.path.first().cloned().unwrap_or_default(),
            visited_agents: self.visited(),
        }
    }

    /// The root's caller and the agents that hold an open task above this one. Above a task that keeps its
    /// path that path counts: the one recorded parent does not show which of those agents wait for it.
    fn visited(&self) -> AgentPath {
        let mut waiting = Vec::new();
        let mut above = self;
        let path = loop {
            if above.keeps_path() {
                break above.kinship.path.clone();
            }
            let Some(parent) = &above.parent else {
                break AgentPath::new(above.kinship.path.first().cloned());
            };
            if parent.is_open() {
                waiting.push(&parent.record.agent);
            }
            above = parent;
        };
        waiting.into_iter().rev().fold(path, |path, agent| path.then(agent.clone()))
    }

    /// Whether the path of the call that made the task holds for everything below it, also after a parent
    /// ends.
    fn keeps_path(&self) -> bool {
        match self.kinship.attribution {
            Attribution::Ambiguous | Attribution::Claimed => true,
            // Another agent called with the mark of this one's task.
            Attribution::Traced => {
                self.parent.as_ref().is_some_and(|parent| self.kinship.path.last() != Some(&parent.record.agent))
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Closing(Arc<TreeNode>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closing.store(false, Ordering::Release);
    }
}
