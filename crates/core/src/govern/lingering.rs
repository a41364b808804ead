//! Tasks of remote agents that ended recently: agents that answer first and call later still call for them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chancery_protocol::{AgentName, TaskId, Timestamp};
use foldhash::fast::RandomState;

use super::node::TreeNode;

/// The most ended tasks that are kept. The oldest goes first: a call for it begins a tree of its own.
pub(super) const MOST_LINGERING: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Lingering {
    /// In the order they ended.
    order: VecDeque<(Timestamp, Arc<TreeNode>)>,
    by_task: HashMap<TaskId, (Timestamp, Arc<TreeNode>), RandomState>,
    newest: HashMap<AgentName, Arc<TreeNode>, RandomState>,
}

impl Lingering {
    /// Keeps a task that ended. What ended before `since` goes; the caller drops it when it holds no lock.
    pub(super) fn add(&mut self, node: Arc<TreeNode>, ended: Timestamp, since: Timestamp) -> Vec<Arc<TreeNode>> {
        self.by_task.insert(node.record.id.clone(), (ended, Arc::clone(&node)));
        self.newest.insert(node.record.agent.clone(), Arc::clone(&node));
        self.order.push_back((ended, node));
        self.sweep(since)
    }

    /// Lets go of what ended before `since`.
    pub(super) fn sweep(&mut self, since: Timestamp) -> Vec<Arc<TreeNode>> {
        let mut gone = Vec::new();
        while self.order.len() > MOST_LINGERING || self.order.front().is_some_and(|(ended, _)| *ended < since) {
            let Some((_, node)) = self.order.pop_front() else { break };
            self.by_task.remove(&node.record.id);
            if self.newest.get(&node.record.agent).is_some_and(|newest| Arc::ptr_eq(newest, &node)) {
                self.newest.remove(&node.record.agent);
            }
            gone.push(node);
        }
        gone
    }

    /// A task by its id, if it ended since then.
    pub(super) fn get(&self, task: &TaskId, since: Timestamp) -> Option<Arc<TreeNode>> {
        let (ended, node) = self.by_task.get(task)?;
        (*ended >= since && !node.is_open()).then(|| Arc::clone(node))
    }

    /// The task of an agent that ended last, and not before `since`.
    pub(super) fn last_of(&self, agent: &str, since: Timestamp, fits: impl Fn(&TreeNode) -> bool) -> Option<Arc<TreeNode>> {
        let newest = self.newest.get(agent)?;
        let (ended, _) = self.by_task.get(&newest.record.id)?;
        if *ended >= since && !newest.is_open() && fits(newest) {
            return Some(Arc::clone(newest));
        }
        self.recent(since).find(|node| *node.record.agent == *agent && fits(node)).cloned()
    }

    /// The last that ended first. One whose end could not be recorded is open again.
    fn recent(&self, since: Timestamp) -> impl Iterator<Item = &Arc<TreeNode>> {
        let recent = self.order.iter().rev().take_while(move |(ended, _)| *ended >= since);
        recent.map(|(_, node)| node).filter(|node| !node.is_open())
    }
}
