//! What governs calls: the rules an operator set, what is spent, who is at work on whose behalf, and what is frozen.

pub(crate) mod allot;
pub(crate) mod freezes;
pub(crate) mod prices;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod terms;
pub(crate) mod trees;

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_protocol::{Caller, TaskId, Timestamp};
use chancery_rules::budget::{Account, BudgetConfig, BudgetLedger, Caps, Limit, Scope};
use chancery_rules::lineage::LineageConfig;
use chancery_rules::policy::{PolicyBook, Rules, Slots};
use chancery_rules::recursion::RecursionPolicy;

pub use self::prices::Price;
pub use self::terms::GOVERNANCE_EXTENSION;
pub use self::trees::SubtreeCost;
use self::freezes::Freezes;
use self::prices::Observed;
use self::queue::Queues;
use self::trees::Trees;

/// What an operator set, put together. Swapped as a whole.
#[derive(Debug, Default)]
pub struct Rulebook {
    pub budget: BudgetConfig,
    pub recursion: RecursionPolicy,
    pub lineage: LineageConfig,
    pub policy: PolicyBook,
    pub expressions: Rules,
}

#[derive(Debug)]
pub(crate) struct Governance {
    pub(crate) rules: ArcSwap<Rulebook>,
    pub(crate) ledger: Arc<BudgetLedger>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) trees: Trees,
    pub(crate) freezes: Freezes,
    pub(crate) queues: Queues,
    pub(crate) observed: Observed,
}

impl Governance {
    pub(crate) fn new(rules: Rulebook) -> Self {
        Self {
            rules: ArcSwap::from_pointee(rules),
            ledger: Arc::default(),
            slots: Arc::default(),
            trees: Trees::default(),
            freezes: Freezes::default(),
            queues: Queues::default(),
            observed: Observed::default(),
        }
    }

    /// The budgets a call is charged to that are not its tree's, widest first.
    pub(crate) fn accounts(&self, rules: &Rulebook, caller: &Caller, agent: &Arc<str>, skill: Option<&Arc<str>>) -> Vec<Account> {
        rules.budget.limits(caller, agent, skill).map(|(scope, limit)| self.ledger.account(&scope, limit)).collect()
    }

    /// The budget of a new tree: the smaller of what the operator and the caller say.
    pub(crate) fn tree_account(&self, rules: &Rulebook, root: &TaskId, asked: Caps) -> Option<Account> {
        let caps = rules.budget.tree_caps().narrowed(asked);
        (caps != Caps::NONE).then(|| self.ledger.account(&Scope::Tree(root.as_str().into()), Limit::of_tree(caps)))
    }

    /// Swaps the rules. What was counted stays counted; scopes that have another limit now have it from now on.
    pub(crate) fn set_rules(&self, rules: Rulebook, now: Timestamp) {
        for account in self.ledger.all() {
            if let Some(limit) = rules.budget.limit_of(account.scope()) {
                self.ledger.set_limit(&account, limit, now);
            }
        }
        self.rules.store(Arc::new(rules));
    }
}
