//! What governs calls: the rules an operator set, what is spent, who is at work on whose behalf, and what is frozen.

pub(crate) mod allot;
pub(crate) mod announce;
pub(crate) mod conditions;
pub(crate) mod freezes;
pub(crate) mod held;
pub(crate) mod prices;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod terms;
pub(crate) mod trees;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_protocol::{AgentName, Caller, TaskId, Timestamp};
use chancery_rules::budget::{
    Account, Accounts, BudgetConfig, BudgetLedger, Caps, EVERYBODY_ELSE, Estimate, Estimated, Limit, Price, Reservation, Scope,
    Window,
};
use chancery_rules::lineage::LineageConfig;
use chancery_rules::policy::{PolicyBook, Rules, Slots, TaskPolicy};
use chancery_rules::recursion::RecursionPolicy;

use self::conditions::{Conditions, Remembered};
use self::freezes::Freezes;
use self::prices::Observed;
use self::prices::Prices;
use self::queue::{Hindrance, Place, Queues};
pub use self::terms::GOVERNANCE_EXTENSION;
use self::terms::Terms;
pub use self::trees::SubtreeCost;
use self::trees::{Node, Trees};
use crate::agents::Agent;

/// What an operator set, put together. Swapped as a whole.
#[derive(Debug, Default)]
pub struct Rulebook {
    pub budget: BudgetConfig,
    pub recursion: RecursionPolicy,
    pub lineage: LineageConfig,
    pub policy: PolicyBook,
    pub expressions: Rules,
    /// What a call of an agent costs, where the operator says so.
    pub prices: HashMap<AgentName, Price>,
}

impl Rulebook {
    /// Whether the operator speaks of a skill by its name.
    pub(crate) fn names_skill(&self, agent: &AgentName, skill: &str) -> bool {
        self.budget.names_skill(agent, skill) || self.policy.names_skill(skill)
    }

    /// The prices of an agent: the operator's, and the one on its card.
    pub(crate) fn prices_of(&self, agent: &Agent) -> Prices {
        let config = if self.prices.is_empty() { None } else { self.prices.get(&agent.name) };
        Prices { config: config.copied().unwrap_or_default(), card: prices::on_card(&agent.card) }
    }
}

/// The rules that hold now, with what was found out about them.
#[derive(Debug)]
pub(crate) struct InForce {
    book: Rulebook,
    remembered: Remembered,
}

impl From<Rulebook> for InForce {
    fn from(book: Rulebook) -> Self {
        Self { book, remembered: Remembered::default() }
    }
}

impl Deref for InForce {
    type Target = Rulebook;

    fn deref(&self) -> &Rulebook {
        &self.book
    }
}

#[derive(Debug)]
pub(crate) struct Governance {
    pub(crate) rules: ArcSwap<InForce>,
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
            rules: ArcSwap::from_pointee(InForce::from(rules)),
            ledger: Arc::default(),
            slots: Arc::default(),
            trees: Trees::default(),
            freezes: Freezes::default(),
            queues: Queues::default(),
            observed: Observed::default(),
        }
    }

    /// What holds for calls of this kind: their budgets that are no tree's, and their bounds.
    pub(crate) fn conditions(
        &self,
        rules: &InForce,
        caller: &Caller,
        agent: &AgentName,
        skill: Option<&Arc<str>>,
    ) -> Arc<Conditions> {
        rules.remembered.get(caller, agent, skill, || Conditions {
            accounts: self.accounts(rules, caller, agent, skill).into_iter().collect(),
            policy: rules.policy.resolve(&caller.name, skill.map(|skill| &**skill)),
        })
    }

    /// The budgets a call is charged to that are not its tree's, widest first.
    pub(crate) fn accounts(
        &self,
        rules: &Rulebook,
        caller: &Caller,
        agent: &AgentName,
        skill: Option<&Arc<str>>,
    ) -> Vec<Account> {
        let budget = &rules.budget;
        let (tenant, name) = (&caller.tenant, &caller.name);
        let global = budget.global.limit();
        let mut accounts = Vec::new();
        let mut add = |limit: Option<Limit>, scope: &dyn Fn() -> Scope| {
            if let Some(limit) = limit {
                accounts.push(self.ledger.account(&scope(), limit));
            }
        };
        add((global.caps != Caps::NONE).then_some(global), &|| Scope::Global);
        add(budget.tenant(tenant), &|| Scope::Tenant(Arc::clone(tenant)));
        add(budget.caller(tenant, name), &|| Scope::Caller { tenant: Arc::clone(tenant), name: Arc::clone(name) });
        add(budget.agent(agent), &|| Scope::Agent(Arc::clone(agent)));
        // What nobody knows a skill of is one budget together: names that callers make up get none of their own.
        let named = skill.map_or(EVERYBODY_ELSE, |skill| skill);
        add(budget.skill(agent, named), &|| Scope::Skill { agent: Arc::clone(agent), skill: named.into() });
        accounts
    }

    /// The budget of a new tree: the smaller of what the operator and the caller say.
    pub(crate) fn open_tree(&self, rules: &Rulebook, root: &TaskId, asked: Caps) -> Option<Opened> {
        let caps = rules.budget.tree.caps().narrowed(asked);
        (caps != Caps::NONE).then(|| self.open(Scope::Tree(root.as_str().into()), caps))
    }

    /// The budget of a task and everything below it, where that is less than what is above.
    pub(crate) fn open_branch(&self, task: &TaskId, allowance: Caps) -> Opened {
        self.open(Scope::Subtree(task.as_str().into()), allowance)
    }

    fn open(&self, scope: Scope, caps: Caps) -> Opened {
        Opened { account: self.ledger.account(&scope, Limit::of_tree(caps)), ledger: Arc::clone(&self.ledger) }
    }

    pub(crate) fn expected(
        &self,
        prices: Prices,
        agent: &Agent,
        skill: Option<&Arc<str>>,
        terms: &Terms,
        policy: &TaskPolicy,
        free: Caps,
    ) -> Estimated {
        prices::expected(prices, &self.observed, &agent.name, skill, terms, policy, free)
    }

    /// The longest time any budget looks back.
    pub(crate) fn longest_window(&self) -> Duration {
        let rules = self.rules.load();
        let budget = &rules.budget;
        let sections = [&budget.tenant, &budget.caller, &budget.agent, &budget.skill];
        let windows = sections.into_iter().flat_map(|section| section.values()).map(|scope| scope.window);
        let lengths = windows.map(|window| match window {
            Window::Sliding(length) => length,
            Window::Tree => Duration::ZERO,
        });
        lengths.max().unwrap_or_default().max(Duration::from_secs(60))
    }

    /// Holds an amount, unless others wait for the same. What the task above can do without is not what they wait for.
    pub(crate) fn reserve(
        &self,
        accounts: &Accounts,
        estimate: Estimate,
        now: Timestamp,
        place: Option<&Place>,
        parent: Option<&Node>,
    ) -> Result<Reservation, Hindrance> {
        let hindrance = match self.queues.others_first(accounts, place) {
            Some(scope) => Hindrance::OthersFirst(scope),
            None => match self.ledger.reserve(accounts, estimate, now) {
                Ok(reservation) => return Ok(reservation),
                Err(refusal) => Hindrance::Refused(refusal),
            },
        };
        match parent.map_or(Ok(None), |parent| held::borrow(parent, &self.ledger, accounts, estimate, now)) {
            Ok(Some(reservation)) => Ok(reservation),
            Ok(None) => Err(hindrance),
            Err(refusal) => Err(Hindrance::Refused(refusal)),
        }
    }

    /// Swaps the rules. What was counted stays counted; scopes that have another limit now have it from now on.
    pub(crate) fn set_rules(&self, rules: Rulebook, now: Timestamp) {
        for account in self.ledger.all() {
            let budget = &rules.budget;
            let limit = match account.scope() {
                Scope::Global => Some(budget.global.limit()),
                Scope::Tenant(name) => budget.tenant(name),
                Scope::Caller { tenant, name } => budget.caller(tenant, name),
                Scope::Agent(name) => budget.agent(name),
                Scope::Skill { agent, skill } => budget.skill(agent, skill),
                // A tree keeps what it began with.
                _ => continue,
            };
            match limit {
                Some(limit) => self.ledger.set_limit(&account, limit, now),
                None => self.ledger.forget(account.scope()),
            }
        }
        self.rules.store(Arc::new(rules.into()));
        self.queues.ring();
    }
}

/// An account that was opened for one task. The ledger forgets it with the last who holds it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) account: Account,
    ledger: Arc<BudgetLedger>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.ledger.forget(self.account.scope());
    }
}
