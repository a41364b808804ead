//! Lets a call in, or not: nothing it belongs to may be frozen, its budgets must have room, and it must not run in circles.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, ErrorKind, SendMessage, TaskId, Timestamp};
use chancery_rules::budget::{Accounts, BudgetError, Caps, Estimated, Reservation};
use chancery_rules::lineage::{Attribution, Lineage, LineageError, TaskContext, TokenCheck};
use chancery_rules::policy::{AskedSkill, TaskPolicy};

use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::govern::freezes::{Belongs, Unfrozen};
use crate::govern::prices::Prices;
use crate::govern::terms::Terms;
use crate::govern::trees::Node;
use crate::govern::{Opened, Rulebook};
use crate::service::Inner;
use crate::trace::Traced;
use crate::{Fact, Freeze, Kinship, Rule};

/// A call as the steps look at it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) rules: Arc<Rulebook>,
    pub(crate) terms: Terms,
    pub(crate) skill: AskedSkill,
    pub(crate) now: Timestamp,
}

/// A call that is in: money is held for it. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) kinship: Arc<Kinship>,
    pub(crate) parent: Option<Arc<Node>>,
    /// Of the tree and its branches, down to this task.
    pub(crate) chain: Accounts,
    /// The account that was opened for the task alone.
    pub(crate) own: Option<Opened>,
    pub(crate) reservation: Reservation,
    pub(crate) estimated: Estimated,
    pub(crate) prices: Prices,
    pub(crate) policy: Arc<TaskPolicy>,
    pub(crate) remaining: Caps,
    /// Held until the call is recorded: a freeze waits for it.
    pub(crate) unfrozen: Unfrozen,
}

impl<'a> Call<'a> {
    pub(crate) fn new(inner: &Inner, context: &'a CallContext, agent: &'a Arc<Agent>, send: &SendMessage) -> Result<Self, Error> {
        let terms = Terms::of(send)?;
        let named = terms.skill.as_deref().map(Arc::from);
        let skill = match named {
            Some(skill) => AskedSkill::Named(skill),
            None => agent.only_skill(),
        };
        Ok(Self { context, agent, rules: inner.govern.rules.load_full(), terms, skill, now: inner.clock.now() })
    }

    /// What the caller wants to be spent at most, for the task and all below it.
    fn asked(&self) -> Caps {
        Caps { usd: self.terms.budget.usd, tokens: self.terms.budget.tokens, tasks: None }
    }
}

impl Inner {
    /// A call that makes a task.
    pub(crate) async fn admit(
        &self,
        call: &Call<'_>,
        task: &TaskId,
        traced: Traced,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Denial> {
        let Traced { lineage, parent, roots } = traced;
        let (chain, own, allowance) = self.chain(call, task, &lineage, parent.as_deref());
        let kinship = Arc::new(kinship(call, task, &lineage, allowance));
        verdicts.kinship = Some(Arc::clone(&kinship));
        let roots: Vec<&str> = roots.iter().map(|root| &**root).collect();
        let admitted = self.enter(call, kinship, parent, chain, &roots, &lineage.context, verdicts).await?;
        Ok(Admitted { own, ..admitted })
    }

    /// A message that a task goes on with: it is charged like a new one, in the same place.
    pub(crate) async fn readmit(&self, call: &Call<'_>, node: &Arc<Node>, verdicts: &mut Verdicts) -> Result<Admitted, Denial> {
        let (kinship, parent, chain) = (Arc::clone(&node.kinship), node.parent.clone(), node.accounts.clone());
        let context = node.context();
        let root = kinship.root.as_str().to_owned();
        verdicts.kinship = Some(Arc::clone(&kinship));
        self.enter(call, kinship, parent, chain, &[&root], &context, verdicts).await
    }

    #[expect(clippy::too_many_arguments, reason = "what a new task and a message to an old one have in common")]
    async fn enter(
        &self,
        call: &Call<'_>,
        kinship: Arc<Kinship>,
        parent: Option<Arc<Node>>,
        chain: Accounts,
        roots: &[&str],
        context: &TaskContext,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Denial> {
        let Call { agent, rules, skill, .. } = call;
        let caller = &call.context.caller;
        let policy = rules.policy.resolve(&caller.name, skill.id().map(|skill| &**skill));
        let own = self.govern.accounts(rules, caller, &agent.name, skill.id());
        let accounts: Accounts = own.into_iter().chain(chain.iter().cloned()).collect();
        let free = self.govern.ledger.remaining(&accounts, call.now);
        let prices = rules.prices_of(agent);
        let estimated = self.govern.expected(prices, agent, skill.id(), &call.terms, &policy, free);
        let mut place = None;
        let (unfrozen, reservation) = loop {
            let unfrozen = self.govern.freezes.look().await;
            if let Some(freeze) = unfrozen.against(Belongs { caller, agent: &agent.name, roots }) {
                return Err(frozen(freeze));
            }
            // Asked where a cascade waits for the answer: see `Inner::cascade`.
            if parent.as_ref().is_some_and(|parent| parent.is_closing()) {
                let gone = LineageError::Invalid(TokenCheck::ClosedParent);
                let message = format!("{}: the task this call is for is being cancelled", gone.kind().reason());
                let check = TokenCheck::ClosedParent.as_str();
                return Err(Denial::new(Rule::Lineage, gone.kind(), message).with_fact("check", check));
            }
            if place.is_none() {
                verdicts.pass(Rule::Freeze, Vec::new);
            }
            match self.govern.reserve(&accounts, estimated.estimate, self.clock.now(), place.as_ref(), parent.as_deref()) {
                Ok(reservation) => break (unfrozen, reservation),
                Err(hindrance) => {
                    drop(unfrozen);
                    let (overflow, patience) = (rules.budget.global.overflow, self.limits.load().budget_wait());
                    let waited = self.govern.queues.wait(&accounts, overflow, hindrance, place, patience).await;
                    place = Some(waited.map_err(|error| over_budget(&error))?);
                }
            }
        };
        if place.take().is_some() {
            // Whoever is next in line may try now.
            self.govern.queues.ring();
        }
        let held = reservation.amount();
        verdicts.pass(Rule::Budget, || {
            if accounts.is_empty() {
                return Vec::new();
            }
            vec![
                ("estimate_usd".into(), Fact::Usd(held.usd)),
                ("estimate_tokens".into(), Fact::Number(held.tokens)),
                ("source".into(), Fact::text(estimated.usd.as_str())),
                ("scopes".into(), Fact::text(names(&accounts))),
            ]
        });
        // What was held is let go when the reservation is dropped.
        rules.recursion.check(context, &agent.name).map_err(|error| {
            // How sure that is belongs to it: not every form of an error has room for facts.
            let message = format!("{}: {error} attribution={}", error.kind().reason(), kinship.attribution);
            Denial::new(Rule::Recursion, error.kind(), message)
                .with_fact("path", error.path())
                .with_fact("depth", context.depth)
                .with_fact("attribution", kinship.attribution)
        })?;
        verdicts.pass(Rule::Recursion, || {
            vec![
                ("depth".into(), Fact::Number(context.depth.into())),
                ("limit".into(), Fact::Number(rules.recursion.max_call_depth.into())),
                ("path".into(), Fact::Path(context.visited_agents.clone())),
            ]
        });
        let remaining = self.govern.ledger.remaining(&accounts, call.now);
        Ok(Admitted { kinship, parent, chain, own: None, reservation, estimated, prices, policy, remaining, unfrozen })
    }

    /// The budgets from the root of the tree down to a new task, the one that was opened for it, and what the task and all
    /// below it may spend, where that is less than what is above.
    fn chain(
        &self,
        call: &Call<'_>,
        task: &TaskId,
        lineage: &Lineage,
        parent: Option<&Node>,
    ) -> (Accounts, Option<Opened>, Option<Caps>) {
        let asked = call.asked();
        let Some(parent) = parent else {
            let own = self.govern.open_tree(&call.rules, task, asked);
            let chain = own.iter().map(|own| own.account.clone()).collect();
            return (chain, own, (asked != Caps::NONE).then_some(asked));
        };
        // One of several parents bounds by what the poorest has left.
        let bound = match lineage.attribution {
            Attribution::Ambiguous => Caps { usd: lineage.remaining.usd, tokens: lineage.remaining.tokens, tasks: None },
            _ => Caps::NONE,
        };
        let allowance = asked.narrowed(bound);
        if allowance == Caps::NONE {
            return (parent.accounts.clone(), None, None);
        }
        let own = self.govern.open_branch(task, allowance);
        let chain = parent.accounts.iter().cloned().chain([own.account.clone()]).collect();
        (chain, Some(own), Some(allowance))
    }
}

fn kinship(call: &Call<'_>, task: &TaskId, lineage: &Lineage, allowance: Option<Caps>) -> Kinship {
    Kinship {
        root: lineage.root_task.clone().unwrap_or_else(|| task.clone()),
        trace: lineage.context.trace_id,
        parent: lineage.context.parent_task_id.clone(),
        depth: lineage.context.depth,
        path: lineage.context.visited_agents.clone(),
        attribution: lineage.attribution,
        claimed: call.terms.claimed.clone(),
        skill: call.skill.id().cloned(),
        allowance,
    }
}

fn frozen(freeze: &Freeze) -> Denial {
    let why = freeze.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    Denial::new(Rule::Freeze, ErrorKind::Frozen, format!("FROZEN {} by {} since {}{why}", freeze.scope, freeze.by, freeze.at))
        .with_fact("scope", &freeze.scope)
        .with_fact("since", freeze.at)
        .with_fact("by", &freeze.by)
}

fn over_budget(error: &BudgetError) -> Denial {
    let kind = match error {
        BudgetError::QueueFull { .. } => ErrorKind::BudgetQueueFull,
        _ => ErrorKind::BudgetExhausted,
    };
    let mut denial = Denial::new(Rule::Budget, kind, error.to_string()).with_fact("scope", error.scope());
    if let Some(shortage) = error.shortage() {
        denial = denial
            .with_fact("of", shortage.dimension())
            .with_fact("limit", shortage.limit)
            .with_fact("spent", shortage.settled)
            .with_fact("reserved", shortage.reserved)
            .with_fact("overrun", shortage.overrun)
            .with_fact("requested", shortage.requested);
    }
    denial.retry_after(error.retry_after())
}

fn names(accounts: &Accounts) -> String {
    accounts.iter().map(|account| account.scope().to_string()).collect::<Vec<_>>().join(" ")
}
