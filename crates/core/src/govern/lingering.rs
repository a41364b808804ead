//! Tasks of remote agents that ended recently: agents that answer first and call later still call for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chancery_protocol::{AgentName, TaskId, Timestamp};
use foldhash::fast::RandomState;

use super::node::TreeNode;

/// When a task ended, and a number that orders those of one moment.
type EndedAt = (Timestamp, u64);

/// The ended tasks of a node, by all that a late call may bring.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    /// In the order they ended.
    by_time: BTreeMap<EndedAt, Arc<TreeNode>>,
    by_task: HashMap<TaskId, EndedAt, RandomState>,
    by_span: HashMap<u64, EndedAt, RandomState>,
    by_agent: HashMap<AgentName, EndedOfAgent, RandomState>,
    /// The agents by the number of their tasks. Where there are too many, the one with the most loses its oldest.
    counts: BTreeSet<(usize, AgentName)>,
    number: u64,
}

/// Those of one agent, together and by the tenant they were done for.
#[derive(Debug, Default)]
struct EndedOfAgent {
    all: BTreeSet<EndedAt>,
    by_tenant: HashMap<Arc<str>, BTreeSet<EndedAt>, RandomState>,
    counts: BTreeSet<(usize, Arc<str>)>,
}

impl Lingering {
    /// Keeps a task that ended. Returns those that go: what ended before `since`, and what is above `at_most`. The caller drops them
    /// when it holds no lock.
    pub(super) fn add(&mut self, node: Arc<TreeNode>, ended: Timestamp, since: Timestamp, at_most: usize) -> Vec<Arc<TreeNode>> {
        let replaced = self.remove(&node.record.id);
        self.number += 1;
        let at = (ended, self.number);
        self.by_task.insert(node.record.id.clone(), at);
        if let Some(span) = node.span.get() {
            self.by_span.insert(*span, at);
        }
        let agent = &node.record.agent;
        let of_agent = self.by_agent.entry(agent.clone()).or_default();
        self.counts.remove(&(of_agent.all.len(), agent.clone()));
        of_agent.add(&node.record.owner.tenant, at);
        self.counts.insert((of_agent.all.len(), agent.clone()));
        self.by_time.insert(at, node);
        let mut gone = self.sweep(since);
        gone.extend(replaced);
        while self.by_time.len() > at_most {
            let Some(node) = self.first_to_go().and_then(|at| self.remove_at(at)) else { break };
            gone.push(node);
        }
        gone
    }

    /// Lets go of what ended before `since`.
    pub(super) fn sweep(&mut self, since: Timestamp) -> Vec<Arc<TreeNode>> {
        let mut gone = Vec::new();
        while let Some((at, _)) = self.by_time.first_key_value().filter(|((ended, _), _)| *ended < since) {
            let at = *at;
            gone.extend(self.remove_at(at));
        }
        gone
    }

    /// A task whose end could not be recorded has not ended.
    pub(super) fn remove(&mut self, task: &TaskId) -> Option<Arc<TreeNode>> {
        let at = *self.by_task.get(task)?;
        self.remove_at(at)
    }

    /// A task by its id, if it ended since then.
    pub(super) fn get(&self, task: &TaskId, since: Timestamp) -> Option<Arc<TreeNode>> {
        self.at(*self.by_task.get(task)?, since)
    }

    /// The same by the span id that the task went out with.
    pub(super) fn by_span(&self, span: u64, since: Timestamp) -> Option<Arc<TreeNode>> {
        self.at(*self.by_span.get(&span)?, since)
    }

    /// The task of an agent that ended last, and not before `since`; of one tenant, or of any.
    pub(super) fn last_of(&self, agent: &str, tenant: Option<&str>, since: Timestamp) -> Option<Arc<TreeNode>> {
        let of_agent = self.by_agent.get(agent)?;
        let ended = tenant.map_or(Some(&of_agent.all), |tenant| of_agent.by_tenant.get(tenant))?;
        self.at(*ended.last()?, since)
    }

    fn at(&self, at: EndedAt, since: Timestamp) -> Option<Arc<TreeNode>> {
        self.by_time.get(&at).filter(|_| at.0 >= since).cloned()
    }

    /// The oldest of the agent that has the most, and there of the tenant that has the most: an agent that floods the list pushes
    /// out its own tasks.
    fn first_to_go(&self) -> Option<EndedAt> {
        let (_, agent) = self.counts.last()?;
        let of_agent = self.by_agent.get(agent)?;
        let (_, tenant) = of_agent.counts.last()?;
        of_agent.by_tenant.get(tenant)?.first().copied()
    }

    fn remove_at(&mut self, at: EndedAt) -> Option<Arc<TreeNode>> {
        let node = self.by_time.remove(&at)?;
        self.by_task.remove(&node.record.id);
        if let Some(span) = node.span.get().filter(|span| self.by_span.get(span) == Some(&at)) {
            self.by_span.remove(span);
        }
        let agent = &node.record.agent;
        if let Some(of_agent) = self.by_agent.get_mut(agent) {
            self.counts.remove(&(of_agent.all.len(), agent.clone()));
            of_agent.remove(&node.record.owner.tenant, at);
            match of_agent.all.len() {
                0 => drop(self.by_agent.remove(agent)),
                left => drop(self.counts.insert((left, agent.clone()))),
            }
        }
        Some(node)
    }
}

impl EndedOfAgent {
    fn add(&mut self, tenant: &Arc<str>, at: EndedAt) {
        self.all.insert(at);
        let of_tenant = self.by_tenant.entry(Arc::clone(tenant)).or_default();
        self.counts.remove(&(of_tenant.len(), Arc::clone(tenant)));
        of_tenant.insert(at);
        self.counts.insert((of_tenant.len(), Arc::clone(tenant)));
    }

    fn remove(&mut self, tenant: &Arc<str>, at: EndedAt) {
        self.all.remove(&at);
        let Some(of_tenant) = self.by_tenant.get_mut(tenant) else { return };
        self.counts.remove(&(of_tenant.len(), Arc::clone(tenant)));
        of_tenant.remove(&at);
        match of_tenant.len() {
            0 => drop(self.by_tenant.remove(tenant)),
            left => drop(self.counts.insert((left, Arc::clone(tenant)))),
        }
    }
}
