//! What governs calls: the rules an operator set, what is spent, who is at work on whose behalf, and what is frozen.

pub(crate) mod allot;
pub(crate) mod announce;
pub(crate) mod conditions;
pub(crate) mod freezes;
pub(crate) mod held_budget;
pub(crate) mod lineage_bytes;
mod lingering;
pub(crate) mod marks;
pub(crate) mod node;
mod open_roots;
mod own_names;
mod placements;
pub(crate) mod prices;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod steady;
pub(crate) mod terms;
pub(crate) mod trees;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_protocol::{AgentName, Caller, TaskId, Timestamp};
use chancery_rules::budget::{
    Account, Accounts, BudgetConfig, BudgetLedger, BudgetScope, BudgetWindow, Caps, EVERYBODY_ELSE, Estimate, Limit, Price,
    Reservation,
};
use chancery_rules::lineage::LineageConfig;
use chancery_rules::policy::{PolicyBook, Rules, Slots};
use chancery_rules::recursion::RecursionPolicy;

use self::conditions::{CallBounds, Remembered};
use self::freezes::Freezes;
pub use self::lineage_bytes::{LineageHeaders, SentLineage, token_header_bytes};
pub use self::marks::node_tag;
pub use self::node::SubtreeCost;
use self::node::TreeNode;
pub use self::placements::PlacedCalls;
use self::placements::Placements;
use self::prices::{LearntPrices, Prices};
use self::queue::{BudgetQueues, Hindrance, QueueTicket};
use self::steady::SteadyTime;
pub use self::terms::GOVERNANCE_EXTENSION;
use self::trees::Trees;
use crate::Clock;
use crate::agents::Agent;

/// What an operator set, put together. Swapped as a whole.
#[derive(Debug, Default)]
pub struct Rulebook {
    /// The section `[budget]`.
    pub budget: BudgetConfig,
    /// The section `[recursion]`.
    pub recursion: RecursionPolicy,
    /// The section `[lineage]`.
    pub lineage: LineageConfig,
    /// The section `[policy]`.
    pub policy: PolicyBook,
    /// The rules of `[[policy.rules]]`, and those of the program.
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
    pub(crate) queues: BudgetQueues,
    pub(crate) observed: LearntPrices,
    pub(crate) placements: Placements,
    time: Arc<SteadyTime>,
}

impl Governance {
    pub(crate) fn new(rules: Rulebook, clock: Arc<dyn Clock>) -> Self {
        let ledger = Arc::new(BudgetLedger::new());
        ledger.set_unknown_share(rules.budget.unknown_share);
        let time = Arc::new(SteadyTime::new(clock));
        let trees = Trees::new(Arc::clone(&time), &rules.lineage);
        Self {
            rules: ArcSwap::from_pointee(InForce::from(rules)),
            ledger,
            slots: Arc::default(),
            trees,
            freezes: Freezes::default(),
            queues: BudgetQueues::default(),
            observed: LearntPrices::default(),
            time,
            placements: Placements::default(),
        }
    }

    /// The time by which the ledger counts.
    pub(crate) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// The same for a moment that the store knows by the wall clock.
    pub(crate) fn of_stored(&self, at: Timestamp) -> Timestamp {
        self.time.of_stored(at)
    }

    /// What holds for calls of this kind: their budgets that are no tree's, and their bounds.
    pub(crate) fn conditions(
        &self,
        rules: &InForce,
        caller: &Caller,
        agent: &AgentName,
        skill: Option<&Arc<str>>,
    ) -> Arc<CallBounds> {
        rules.remembered.get(caller, agent, skill, || {
            let accounts = self.accounts(rules, caller, agent, skill).into_iter().collect();
            CallBounds::new(accounts, rules.policy.resolve(&caller.tenant, &caller.name, skill.map(|skill| &**skill)))
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
        let mut add = |limit: Option<Limit>, scope: &dyn Fn() -> BudgetScope| {
            if let Some(limit) = limit {
                accounts.push(self.ledger.account(&scope(), limit));
            }
        };
        add((global.caps != Caps::NONE).then_some(global), &|| BudgetScope::Global);
        // Past the number of accounts, names that nobody listed share one.
        let own_or_shared = |own: BudgetScope, shared: &dyn Fn() -> BudgetScope| {
            if self.ledger.has_room_for(&own) { own } else { shared() }
        };
        let everybody_else = || Arc::<str>::from(EVERYBODY_ELSE);
        add(budget.tenant(tenant), &|| {
            own_or_shared(BudgetScope::Tenant(Arc::clone(tenant)), &|| BudgetScope::Tenant(everybody_else()))
        });
        add(budget.caller(tenant, name), &|| {
            let own = BudgetScope::Caller { tenant: Arc::clone(tenant), name: Arc::clone(name) };
            own_or_shared(own, &|| BudgetScope::Caller { tenant: everybody_else(), name: everybody_else() })
        });
        add(budget.agent(agent), &|| BudgetScope::Agent(Arc::clone(agent)));
        // What nobody knows a skill of is one budget together: names that callers make up get none of their own.
        let named = skill.map_or(EVERYBODY_ELSE, |skill| skill);
        add(budget.skill(agent, named), &|| BudgetScope::Skill { agent: Arc::clone(agent), skill: named.into() });
        accounts
    }

    /// The budget of a new tree: the smaller of what the operator and the caller say.
    pub(crate) fn open_tree(&self, rules: &Rulebook, root: &TaskId, asked: Caps) -> Option<OpenedAccount> {
        let caps = rules.budget.tree.caps().narrowed(asked);
        (caps != Caps::NONE).then(|| self.open(BudgetScope::Tree(root.as_str().into()), caps))
    }

    /// The budget of a task and everything below it, where that is less than what is above.
    pub(crate) fn open_branch(&self, task: &TaskId, allowance: Caps) -> OpenedAccount {
        self.open(BudgetScope::Subtree(task.as_str().into()), allowance)
    }

    fn open(&self, scope: BudgetScope, caps: Caps) -> OpenedAccount {
        OpenedAccount { account: self.ledger.account(&scope, Limit::of_tree(caps)), ledger: Arc::clone(&self.ledger) }
    }

    /// The longest time any budget looks back.
    pub(crate) fn longest_window(&self) -> Duration {
        let rules = self.rules.load();
        let budget = &rules.budget;
        let sections = [&budget.tenant, &budget.caller, &budget.agent, &budget.skill];
        let windows = sections.into_iter().flat_map(|section| section.values()).map(|scope| scope.window);
        let lengths = windows.map(|window| match window {
            BudgetWindow::Sliding(length) => length,
            BudgetWindow::Tree => Duration::ZERO,
        });
        lengths.max().unwrap_or_default().max(Duration::from_secs(60))
    }

    /// Holds an amount, unless others wait for the same. What the task above can do without is not what they wait for.
    pub(crate) fn reserve(
        &self,
        accounts: &Accounts,
        estimate: Estimate,
        now: Timestamp,
        place: Option<&QueueTicket>,
        parent: Option<&TreeNode>,
    ) -> Result<Reservation, Hindrance> {
        let hindrance = match self.queues.others_first(accounts, place) {
            Some(scope) => Hindrance::OthersFirst(scope),
            None => match self.ledger.reserve(accounts, estimate, now) {
                Ok(reservation) => return Ok(reservation),
                Err(refusal) => Hindrance::Refused(refusal),
            },
        };
        match parent.map_or(Ok(None), |parent| held_budget::borrow(parent, &self.ledger, accounts, estimate, now)) {
            Ok(Some(reservation)) => Ok(reservation),
            Ok(None) => Err(hindrance),
            Err(refusal) => Err(Hindrance::Refused(refusal)),
        }
    }

    /// Swaps the rules. What was counted stays counted; scopes that have another limit now have it from now on.
    pub(crate) fn set_rules(&self, rules: Rulebook) {
        let now = self.now();
        self.ledger.set_unknown_share(rules.budget.unknown_share);
        for account in self.ledger.all() {
            let budget = &rules.budget;
            let limit = match account.scope() {
                BudgetScope::Global => Some(budget.global.limit()),
                BudgetScope::Tenant(name) => budget.tenant(name),
                BudgetScope::Caller { tenant, name } => budget.caller(tenant, name),
                BudgetScope::Agent(name) => budget.agent(name),
                BudgetScope::Skill { agent, skill } => budget.skill(agent, skill),
                // A tree keeps what it began with.
                _ => continue,
            };
            match limit {
                Some(limit) => self.ledger.set_limit(&account, limit, now),
                None => self.ledger.forget(account.scope()),
            }
        }
        self.trees.set_rules(&rules.lineage);
        self.rules.store(Arc::new(rules.into()));
        self.queues.ring();
    }
}

/// An account that was opened for one task. The ledger forgets it with the last who holds it.
#[derive(Debug)]
pub(crate) struct OpenedAccount {
    pub(crate) account: Account,
    ledger: Arc<BudgetLedger>,
}

impl Drop for OpenedAccount {
    fn drop(&mut self) {
        self.ledger.forget(self.account.scope());
    }
}
