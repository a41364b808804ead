//! A delegation tree as the operator sees it, and its end: cancelled from the leaves up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chancery_protocol::{AgentName, Caller, Error, ErrorKind, TaskId, TaskState, Timestamp, TraceId};
use chancery_rules::budget::{Account, BudgetStanding as AccountStanding};
use serde::{Deserialize, Serialize};

use crate::find::internal;
use crate::govern::node::TreeNode;
use crate::service::{Chancery, ChanceryInner};
use crate::{Decision, Governed, LedgerRow, LineageRecord, PlacedCalls, Spend, TreeCost};

/// One task of a tree.
#[derive(Clone, Debug, Serialize)]
pub struct TreeTask {
    /// The id of the task.
    pub task: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// The tenant of its owner.
    pub tenant: Arc<str>,
    /// The name of its owner.
    pub caller: Arc<str>,
    /// Its state.
    pub state: TaskState,
    /// The time when it was made.
    pub created_at: Timestamp,
    /// The time of the last change of its state.
    pub status_at: Timestamp,
    /// Its place in the tree.
    #[serde(flatten)]
    pub kinship: LineageRecord,
    /// What it reserved and spent.
    pub spend: Spend,
}

/// A root task with all tasks below it.
#[derive(Clone, Debug, Serialize)]
pub struct CallTree {
    /// The task that the tree began with.
    pub root: TaskId,
    /// The trace id of the tree.
    pub trace: TraceId,
    /// In the order they were made, the root first.
    pub tasks: Vec<TreeTask>,
}

/// Some of the tasks of the trees that an operator asked for.
#[derive(Clone, Debug)]
pub struct TreePage {
    /// Each tree that has tasks on this page, with what every task of the whole tree cost.
    pub trees: Vec<(CallTree, Vec<TreeCost>)>,
    /// The last task of the page, if there are more after it.
    pub next: Option<TaskId>,
}

/// The outcome for a task that was to be cancelled with the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CascadeOutcome {
    /// The task was cancelled.
    Cancelled,
    /// The task had ended before.
    AlreadyDone,
    /// The agent rejected the cancel, and the task continues.
    Refused,
    /// The task has ended here, and its remote agent did not confirm that it stopped.
    Unreachable,
}

/// The outcome of a cascade for one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cascaded {
    /// The id of the task.
    pub task: TaskId,
    /// The agent that worked on it.
    pub agent: AgentName,
    /// Its depth in the tree.
    pub depth: u32,
    /// What happened to it.
    pub outcome: CascadeOutcome,
    /// Why it was not cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<LedgerRow> for TreeTask {
    fn from(row: LedgerRow) -> Self {
        let LedgerRow { task, agent, owner, created_at, state, status_at, governed, .. } = row;
        let Governed { kinship, spend, .. } = governed;
        let Caller { tenant, name: caller } = owner;
        Self { task, agent, tenant, caller, state, created_at, status_at, kinship: Arc::unwrap_or_clone(kinship), spend }
    }
}

impl Chancery {
    /// The trees of a trace id, or the one a task belongs to.
    pub async fn trees(&self, trace_or_task: &str) -> Result<Vec<CallTree>, Error> {
        let store = &self.0.store;
        let mut trees = Vec::new();
        for root in self.tree_roots(trace_or_task).await? {
            let tasks: Vec<TreeTask> = store.tree(&root).await.map_err(internal)?.into_iter().map(TreeTask::from).collect();
            if let Some(first) = tasks.first() {
                trees.push(CallTree { trace: first.kinship.trace, root, tasks });
            }
        }
        Ok(trees)
    }

    /// The roots of the trees of a trace id, oldest first, or the root of the tree a task belongs to.
    pub async fn tree_roots(&self, trace_or_task: &str) -> Result<Vec<TaskId>, Error> {
        match TraceId::from_hex(trace_or_task) {
            Some(trace) => self.0.store.roots(trace).await.map_err(internal),
            None => Ok(self.tree_root(&TaskId::from(trace_or_task)).await?.into_iter().collect()),
        }
    }

    /// The root of the tree a task belongs to. None if nothing is kept of the task.
    pub async fn tree_root(&self, task: &TaskId) -> Result<Option<TaskId>, Error> {
        let governed = self.0.store.governed(task).await.map_err(internal)?;
        Ok(governed.map(|governed| governed.kinship.root.clone()))
    }

    /// At most `limit` tasks of these trees, tree by tree and each in the order its tasks were made, beginning after the task `after`
    /// of the tree `first`.
    pub async fn tree_page(
        &self,
        roots: &[TaskId],
        first: usize,
        after: Option<&TaskId>,
        limit: usize,
    ) -> Result<TreePage, Error> {
        let store = &self.0.store;
        let (mut page, mut room, mut after) = (TreePage { trees: Vec::new(), next: None }, limit, after);
        for root in roots.iter().skip(first) {
            // One more than there is room for says whether the page is the last.
            let rows = store.tree_page(root, after.take(), room + 1).await.map_err(internal)?;
            let is_more = rows.len() > room;
            let tasks: Vec<TreeTask> = rows.into_iter().take(room).map(TreeTask::from).collect();
            room -= tasks.len();
            if let (true, true, Some((last, _))) = (is_more, tasks.is_empty(), page.trees.last()) {
                page.next = last.tasks.last().map(|task| task.task.clone());
                return Ok(page);
            }
            if let Some(shown) = tasks.first() {
                let costs = store.tree_costs(root).await.map_err(internal)?;
                let next = tasks.last().filter(|_| is_more).map(|task| task.task.clone());
                page.trees.push((CallTree { trace: shown.kinship.trace, root: root.clone(), tasks }, costs));
                if next.is_some() {
                    page.next = next;
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// How a task came to be let through, and what was decided about its later messages.
    pub async fn explain_task(&self, task: &TaskId) -> Result<Option<(Governed, Vec<Decision>)>, Error> {
        let Some(governed) = self.0.store.governed(task).await.map_err(internal)? else { return Ok(None) };
        let later = self.0.store.decisions_of(task).await.map_err(internal)?;
        Ok(Some((governed, later)))
    }

    /// Returns the decision with this id.
    pub async fn explain_decision(&self, id: &str) -> Result<Option<Decision>, Error> {
        self.0.store.decision(id).await.map_err(internal)
    }

    /// The newest decisions about calls that made no task.
    pub async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, Error> {
        self.0.store.decisions(limit).await.map_err(internal)
    }

    /// The decisions made before the one with this id, newest first.
    pub async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, Error> {
        self.0.store.decisions_before(id, limit).await.map_err(internal)
    }

    /// Every budget that something is counted in, with where it stands.
    pub fn budgets(&self) -> Vec<(Account, AccountStanding)> {
        self.0.govern.trees.sweep();
        let now = self.0.govern.now();
        let ledger = &self.0.govern.ledger;
        ledger.all().into_iter().map(|account| (account.clone(), ledger.standing(&account, now))).collect()
    }

    /// How the calls of each agent were placed in the last hour.
    pub fn placements(&self) -> HashMap<AgentName, PlacedCalls> {
        self.0.govern.placements.last_hour(self.0.clock.now())
    }

    /// How all calls that made a task were placed since the process started.
    pub fn placement_totals(&self) -> PlacedCalls {
        self.0.govern.placements.totals()
    }

    /// Cancels a task and everything below it, whoever's it is. What could not be cancelled is said.
    pub async fn cancel_tree(&self, task: &TaskId) -> Vec<Cascaded> {
        let mut cascaded = self.0.cascade(task, |_| true).await;
        if self.0.cluster.is_some() {
            match Box::pin(self.0.cascade_shared(task, &cascaded, true)).await {
                Ok(elsewhere) => cascaded.extend(elsewhere),
                Err(error) => tracing::error!(%task, %error, "cannot look for the tasks of a tree that other nodes work on"),
            }
        }
        cascaded
    }
}

impl ChanceryInner {
    /// Cancels open tasks under one, the deepest first, each level at once. A level that takes too long is left behind. Agents
    /// further up could answer each cancel with another call, so nothing new is begun meanwhile.
    pub(crate) async fn cascade(self: &Arc<Self>, task: &TaskId, wanted: impl Fn(&TreeNode) -> bool) -> Vec<Cascaded> {
        let _closing = self.govern.trees.get(task).map(|node| node.close_to_new());
        // Whoever was being admitted has been, and is found below.
        self.govern.freezes.change().await.apply(|_| ()).await;
        let mut cascaded: Vec<Cascaded> = Vec::new();
        let mut reached = HashSet::new();
        loop {
            let mut open = self.govern.trees.below(task);
            open.retain(|node| wanted(node) && !reached.contains(&node.record.id));
            let Some(deepest) = open.iter().map(|node| node.kinship.depth).max() else { return cascaded };
            open.retain(|node| node.kinship.depth == deepest);
            reached.extend(open.iter().map(|node| node.record.id.clone()));
            cascaded.extend(futures::future::join_all(open.iter().map(|node| self.cancel_node(node))).await);
        }
    }

    async fn cancel_node(self: &Arc<Self>, node: &TreeNode) -> Cascaded {
        let (outcome, reason) = match tokio::time::timeout(self.limits.load().cascade(), self.cancel_stored(node)).await {
            Ok(Ok(None)) => (CascadeOutcome::Cancelled, None),
            Ok(Ok(Some(reason))) => (CascadeOutcome::Unreachable, Some(reason)),
            Ok(Err(error)) if error.kind == ErrorKind::TaskNotCancelable && self.govern.trees.get(&node.record.id).is_none() => {
                (CascadeOutcome::AlreadyDone, None)
            }
            Ok(Err(error)) => (CascadeOutcome::Refused, Some(error.message.into_owned())),
            Err(_) => (CascadeOutcome::Unreachable, Some("it did not end in time".to_owned())),
        };
        Cascaded { task: node.record.id.clone(), agent: node.record.agent.clone(), depth: node.kinship.depth, outcome, reason }
    }

    /// Returns why it is unknown whether a remote agent stopped too.
    async fn cancel_stored(self: &Arc<Self>, node: &TreeNode) -> Result<Option<String>, Error> {
        if self.cluster.is_some() {
            // Another node may work on it by now.
            return Box::pin(self.cancel_by_id(&node.record.id)).await;
        }
        let stored = self.store.find_any(node.record.id.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)?;
        let live = self.open(stored).await?;
        self.cancel_live(&live).await?;
        Ok(live.not_confirmed())
    }
}
