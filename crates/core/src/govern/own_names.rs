//! The ids that remote agents give to their open tasks, unknown to this node otherwise: a call that uses one
//! comes from that agent.
//!
//! An agent that makes its own ids sends them only to this node and to the agents that it calls. An id proves
//! nothing. So it only decides under which task a call is limited and charged.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_protocol::TaskId;
use foldhash::fast::RandomState;

use super::node::TreeNode;

/// Shorter names are counters and common words (`1`, `default`, `session`): several agents and callers use the same one.
const LEAST_BYTES: usize = 16;
/// The most tasks that one name stands for. Agents that give all their tasks one context are bounded by the newest.
const MOST_NAMESAKES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct OwnNames {
    by_name: HashMap<Arc<str>, Vec<Arc<TreeNode>>, RandomState>,
    of_task: HashMap<TaskId, Vec<Arc<str>>, RandomState>,
}

impl OwnNames {
    /// Learns by which names an open task goes now.
    pub(super) fn set(&mut self, node: &Arc<TreeNode>) {
        let before = self.remove(node);
        let (record, link) = (&node.record, node.link());
        let task = link.as_ref().and_then(|link| link.task.as_ref()).filter(|task| **task != record.id);
        let context = link.as_ref().and_then(|link| link.context.as_ref()).filter(|context| **context != record.context_id);
        let mut names: Vec<Arc<str>> = Vec::new();
        let own = task.map(|task| task.as_str()).into_iter().chain(context.map(|context| context.as_str()));
        // A task that was begun in the context of one above it goes by that name too: its agent passes on the context it was given.
        let conversation = record.context_id.as_str();
        let shared = before.iter().any(|name| **name == *conversation) || self.is_of_one_above(node, conversation);
        for name in own.chain(shared.then_some(conversation)).filter(|name| name.len() >= LEAST_BYTES) {
            if !names.iter().any(|known| **known == *name) {
                names.push(name.into());
            }
        }
        if names.is_empty() {
            return;
        }
        for name in &names {
            self.by_name.entry(Arc::clone(name)).or_default().push(Arc::clone(node));
        }
        self.of_task.insert(record.id.clone(), names);
    }

    /// Forgets the names of a task, and answers them.
    pub(super) fn remove(&mut self, node: &TreeNode) -> Vec<Arc<str>> {
        let names = self.of_task.remove(&node.record.id).unwrap_or_default();
        for name in &names {
            if let Some(tasks) = self.by_name.get_mut(name) {
                tasks.retain(|other| other.record.id != node.record.id);
                if tasks.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
        names
    }

    /// The tasks with a name, the newest first.
    pub(super) fn get(&self, name: &str) -> impl Iterator<Item = &Arc<TreeNode>> {
        self.by_name.get(name).into_iter().flat_map(|tasks| tasks.iter().rev().take(MOST_NAMESAKES))
    }

    fn is_of_one_above(&self, node: &TreeNode, name: &str) -> bool {
        let above = |task: &Arc<TreeNode>| node.upwards().skip(1).any(|above| above.record.id == task.record.id);
        self.by_name.get(name).is_some_and(|tasks| tasks.iter().any(above))
    }
}
