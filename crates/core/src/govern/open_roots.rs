//! The open trees that began at remote agents: what a loop looks like that nothing places.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use chancery_protocol::AgentName;
use foldhash::fast::RandomState;

use super::node::TreeNode;

/// An agent that was called so often, with another in between, and has answered none of it, looks like one in a loop.
const VISITS: usize = 3;
/// So does one that was called so often and has answered nothing in between: it may call itself.
pub(super) const CALLS_IN_A_ROW: usize = 64;
/// So many of the newest open trees of an agent are looked at.
const RECENT_ROOTS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct OpenRoots {
    /// Each tree has a number, in the order they began.
    all: BTreeSet<u64>,
    by_agent: HashMap<AgentName, RootsOfAgent, RandomState>,
    number: u64,
}

#[derive(Debug, Default)]
struct RootsOfAgent {
    open: BTreeSet<u64>,
    /// Those that began since one of them ended.
    in_a_row: usize,
}

impl OpenRoots {
    /// Whether a tree that begins looks like one more round of a loop that nothing places.
    pub(super) fn begins(&mut self, node: &TreeNode) -> bool {
        self.number += 1;
        node.root_number.store(self.number, Ordering::Relaxed);
        self.all.insert(self.number);
        let of_agent = self.by_agent.entry(node.record.agent.clone()).or_default();
        of_agent.open.insert(self.number);
        of_agent.in_a_row += 1;
        // Without trees of other agents none of them can be in between.
        let alone = of_agent.open.len() == self.all.len();
        of_agent.in_a_row >= CALLS_IN_A_ROW || (!alone && of_agent.visits(&self.all) >= VISITS)
    }

    /// A tree on the list has ended.
    pub(super) fn ends(&mut self, node: &TreeNode) {
        let number = node.root_number.swap(0, Ordering::Relaxed);
        if number == 0 {
            return;
        }
        self.all.remove(&number);
        let agent = &node.record.agent;
        if let Some(of_agent) = self.by_agent.get_mut(agent) {
            of_agent.open.remove(&number);
            of_agent.in_a_row = 0;
            if of_agent.open.is_empty() {
                self.by_agent.remove(agent);
            }
        }
    }
}

impl RootsOfAgent {
    /// How often the agent was called with a tree of another agent in between. All of these trees are open.
    fn visits(&self, all: &BTreeSet<u64>) -> usize {
        let newest = self.open.iter().rev().take(RECENT_ROOTS);
        let pairs = newest.clone().zip(newest.skip(1));
        1 + pairs.filter(|(later, earlier)| all.range(*earlier + 1..**later).next().is_some()).take(VISITS).count()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_protocol::{Caller, Dialect, TaskId, Timestamp, TraceId};
    use chancery_rules::budget::Accounts;
    use chancery_rules::lineage::{AgentPath, Attribution, LineageConfig};

    use super::*;
    use crate::govern::steady::SteadyTime;
    use crate::govern::trees::Trees;
    use crate::{LineageRecord, SystemClock, TaskRecord};

    struct Begun {
        trees: Trees,
        number: usize,
    }

    impl Begun {
        fn new() -> Self {
            Self { trees: Trees::new(Arc::new(SteadyTime::new(Arc::new(SystemClock))), &LineageConfig::default()), number: 0 }
        }

        /// Whether a root at this agent looks like part of a loop.
        fn begin(&mut self, agent: &str) -> (bool, Arc<TreeNode>) {
            self.number += 1;
            let id = TaskId::from(format!("t{}", self.number));
            let record = TaskRecord {
                id: id.clone(),
                context_id: "c".into(),
                agent: agent.into(),
                owner: Caller::new("t", "anonymous"),
                dialect: Dialect::ALL[0],
                client_task_id: None,
                created_at: Timestamp::from_micros(0),
            };
            let kinship = LineageRecord {
                root: id,
                trace: TraceId(1),
                made: true,
                parent: None,
                depth: 0,
                path: AgentPath::default(),
                attribution: Attribution::Root,
                claimed: None,
                skill: None,
                allowance: None,
            };
            let node = TreeNode::new(&self.trees, Arc::new(record), Arc::new(kinship), None, Accounts::default(), None, true);
            (self.trees.add(&node), node)
        }
    }

    #[test]
    fn a_loop_of_two_is_seen_at_its_third_visit_through_the_traffic_of_others() {
        let mut begun = Begun::new();
        let mut warnings = Vec::new();
        for _ in 0..3 {
            for agent in ["a", "b"] {
                warnings.push(begun.begin(agent).0);
                // Other agents are busy: more trees than are looked at of one agent.
                for _ in 0..RECENT_ROOTS + 1 {
                    let (_, node) = begun.begin("honest");
                    node.end(chancery_protocol::TaskState::Completed);
                }
            }
        }
        assert_eq!(warnings, [false, false, false, false, true, true]);
    }

    #[test]
    fn trees_side_by_side_at_one_agent_are_none_until_there_are_very_many_and_none_ends() {
        let mut begun = Begun::new();
        let warnings: Vec<bool> = (0..CALLS_IN_A_ROW).map(|_| begun.begin("a").0).collect();
        assert_eq!(warnings.iter().filter(|warns| **warns).count(), 1);
        assert_eq!(warnings.last(), Some(&true));
        // One that ends in between: an agent in a loop answers nothing.
        let mut begun = Begun::new();
        for _ in 0..3 {
            let (_, last) = (0..CALLS_IN_A_ROW - 1).map(|_| begun.begin("a")).last().expect("some");
            last.end(chancery_protocol::TaskState::Completed);
        }
        assert!(!begun.begin("a").0);
    }
}
