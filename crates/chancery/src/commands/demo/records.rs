//! What the control plane has on record of one scene: its tasks, what it refused, and where its budgets stand.

use std::collections::{BTreeMap, BTreeSet};

use chancery::Chancery;
use chancery::protocol::{Error, TaskId, TraceId};
use chancery_core::budget::{BudgetScope, BudgetStanding};
use chancery_core::{Decision, Fact, MicroUsd, Rule, TreeTask};

/// As many refusals as are ever looked at.
const MOST: usize = 1_000;

/// One look at the records.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordsView {
    /// In the order they were made.
    pub(super) tasks: Vec<TreeTask>,
    /// The oldest first.
    pub(super) refused: Vec<RefusedCall>,
    /// Budgets that something is counted in now.
    pub(super) budgets: Vec<(BudgetScope, BudgetStanding)>,
}

/// A call that was not let through.
#[derive(Clone, Debug)]
pub(super) struct RefusedCall {
    pub(super) decision: Decision,
    pub(super) code: String,
    /// How it was known which task the call came from.
    pub(super) attribution: Option<String>,
    pub(super) parent: Option<TaskId>,
    /// Which rule refused.
    pub(super) rule: Option<Rule>,
    /// What it rests on.
    pub(super) facts: BTreeMap<String, String>,
}

impl RefusedCall {
    fn of(decision: Decision) -> Option<Self> {
        let code = decision.refused.as_deref()?.to_owned();
        let facts_of = |wanted: &dyn Fn(&chancery_core::Verdict) -> bool| -> BTreeMap<String, String> {
            let verdicts = decision.verdicts.iter().filter(|verdict| wanted(verdict));
            let facts = verdicts.flat_map(|verdict| &verdict.facts);
            facts.map(|(name, fact)| (name.to_string(), text(fact))).collect()
        };
        let mut lineage = facts_of(&|verdict| verdict.rule == Rule::Lineage);
        let facts = facts_of(&|verdict| !verdict.passed);
        let rule = decision.verdicts.iter().find(|verdict| !verdict.passed).map(|verdict| verdict.rule);
        let parent = lineage.remove("parent").map(TaskId::from);
        Some(Self { code, attribution: lineage.remove("attribution"), parent, rule, facts, decision })
    }

    pub(super) fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }
}

/// As it is written in the records: a number or a text.
fn text(fact: &Fact) -> String {
    match serde_json::json!(fact) {
        serde_json::Value::String(text) => text,
        number => number.to_string(),
    }
}

impl RecordsView {
    /// Everything in the tree of that trace, and in trees that began because an agent did not pass its
    /// lineage on.
    pub(super) async fn take(plane: &Chancery, trace: TraceId, before: &BTreeSet<String>) -> Result<Self, Error> {
        // Refusals first: the task a refused call came from was there before it.
        let decided = plane.decisions(MOST).await?;
        let newer = decided.into_iter().filter(|decision| !before.contains(&*decision.id));
        let mut refused: Vec<RefusedCall> = newer.filter_map(RefusedCall::of).collect();
        refused.sort_by(|one, other| (one.decision.at, &one.decision.id).cmp(&(other.decision.at, &other.decision.id)));
        let mut trees = plane.trees(&trace.to_string()).await?;
        for root in refused.iter().filter_map(|refusal| refusal.decision.root.as_ref()) {
            if !trees.iter().any(|tree| tree.root == *root) {
                trees.extend(plane.trees(root.as_str()).await?);
            }
        }
        let roots: BTreeSet<String> = trees.iter().map(|tree| tree.root.to_string()).collect();
        let tasks: Vec<TreeTask> = trees.into_iter().flat_map(|tree| tree.tasks).collect();
        let ids: BTreeSet<String> = tasks.iter().map(|task| task.task.to_string()).collect();
        let budgets = plane.budgets().into_iter().map(|(account, standing)| (account.scope().clone(), standing));
        let ours = |scope: &BudgetScope| match scope {
            BudgetScope::Tree(root) => roots.contains(&**root),
            BudgetScope::Subtree(task) => ids.contains(&**task),
            _ => true,
        };
        Ok(Self { tasks, refused, budgets: budgets.filter(|(scope, _)| ours(scope)).collect() })
    }

    pub(super) fn root(&self) -> Option<&TreeTask> {
        self.tasks.first()
    }

    /// Whether every task has ended and nothing is set aside any more.
    pub(super) fn is_over(&self) -> bool {
        self.tasks.iter().all(|task| task.state.is_terminal() && task.spend.reserved.usd == MicroUsd::ZERO)
    }

    /// What each tree spent so far and has set aside, by its root, in the order the trees began.
    pub(super) fn spent(&self) -> Vec<(&TaskId, MicroUsd, MicroUsd)> {
        let mut trees: Vec<(&TaskId, MicroUsd, MicroUsd)> = Vec::new();
        for task in &self.tasks {
            let (settled, reserved) = (task.spend.settled.usd, task.spend.reserved.usd);
            match trees.iter_mut().find(|(root, ..)| **root == task.kinship.root) {
                Some((_, spent, held)) => {
                    *spent = spent.saturating_add(settled);
                    *held = held.saturating_add(reserved);
                }
                None => trees.push((&task.kinship.root, settled, reserved)),
            }
        }
        trees
    }

    /// The ids of all decisions so far.
    pub(super) async fn decisions_so_far(plane: &Chancery) -> Result<BTreeSet<String>, Error> {
        Ok(plane.decisions(MOST).await?.into_iter().map(|decision| decision.id.to_string()).collect())
    }
}
