//! Lets a call in, or not: nothing it belongs to may be frozen, its budgets must have room, and it must not run in circles.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, ErrorKind, SendMessage, TaskId, Timestamp};
use chancery_rules::budget::{Accounts, BudgetError, Caps, Estimated, Reservation};
use chancery_rules::lineage::{Attribution, Lineage, LineageError, TaskContext, TokenCheck};
use chancery_rules::policy::AskedSkill;

use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::govern::conditions::Conditions;
use crate::govern::freezes::{Belongs, Unfrozen};
use crate::govern::prices::Prices;
use crate::govern::queue::{Hindrance, Place};
use crate::govern::terms::Terms;
use crate::govern::trees::Node;
use crate::govern::{InForce, Opened};
use crate::governed::Scopes;
use crate::service::Inner;
use crate::trace::Traced;
use crate::{Fact, Freeze, Kinship, Rule};

/// A call as the steps look at it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) rules: Arc<InForce>,
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
    pub(crate) conditions: Arc<Conditions>,
    /// Held until the call is recorded: a freeze waits for it.
    pub(crate) unfrozen: Unfrozen,
}

/// A call at the entrance: what stays as it is while it waits there.
#[derive(Debug)]
pub(crate) struct Entering {
    kinship: Arc<Kinship>,
    parent: Option<Arc<Node>>,
    chain: Accounts,
    own: Option<Opened>,
    /// The roots of all trees it may belong to.
    roots: Vec<Arc<str>>,
    context: TaskContext,
    conditions: Arc<Conditions>,
    /// All that it is charged to.
    accounts: Accounts,
    prices: Prices,
    estimated: Estimated,
    /// It is for a task that is there already.
    goes_on: bool,
}

/// Why a call is not in.
#[derive(Debug)]
pub(crate) enum Halt {
    Refused(Denial),
    /// There is no room now; there may be some later.
    Waits(Box<(Entering, Hindrance)>),
}

impl From<Denial> for Halt {
    fn from(denial: Denial) -> Self {
        Self::Refused(denial)
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(inner: &Inner, context: &'a CallContext, agent: &'a Arc<Agent>, send: &SendMessage) -> Result<Self, Error> {
        let terms = Terms::of(send)?;
        let rules = inner.govern.rules.load_full();
        let skill = match terms.skill.as_deref() {
            Some(skill) if agent.lists(skill) || rules.names_skill(&agent.name, skill) => AskedSkill::Named(skill.into()),
            Some(skill) => AskedSkill::Unlisted(skill.into()),
            None => agent.only_skill(),
        };
        Ok(Self { context, agent, rules, terms, skill, now: inner.clock.now() })
    }

    /// The hop tokens that came with it: in a header, or in metadata where none can be set.
    pub(crate) fn hop_token(&self) -> Option<Arc<str>> {
        self.context.hop_token.clone().or_else(|| self.terms.hop_token.as_deref().map(Arc::from))
    }

    /// What the caller wants to be spent at most, for the task and all below it.
    fn asked(&self) -> Caps {
        Caps { usd: self.terms.budget.usd, tokens: self.terms.budget.tokens, tasks: None }
    }
}

impl Inner {
    /// A call that makes a task.
    pub(crate) fn admit(
        &self,
        call: &Call<'_>,
        task: &TaskId,
        traced: Traced,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Halt> {
        let Traced { lineage, parent, roots } = traced;
        let (chain, own, allowance) = self.chain(call, task, &lineage, parent.as_deref());
        let kinship = Arc::new(kinship(call, task, &lineage, allowance));
        self.enter(call, self.entering(call, kinship, parent, (chain, own), roots, lineage.context), None, verdicts)
    }

    /// A message that a task goes on with: it is charged like a new one, in the same place.
    pub(crate) fn readmit(&self, call: &Call<'_>, node: &Arc<Node>, verdicts: &mut Verdicts) -> Result<Admitted, Halt> {
        let (kinship, parent, chain) = (Arc::clone(&node.kinship), node.parent.clone(), node.accounts.clone());
        let roots = vec![kinship.root.as_str().into()];
        let entering = self.entering(call, kinship, parent, (chain, None), roots, node.context());
        self.enter(call, Entering { goes_on: true, ..entering }, None, verdicts)
    }

    /// A call that found no room waits for some.
    pub(crate) async fn admit_later(
        &self,
        call: &Call<'_>,
        mut entering: Entering,
        mut hindrance: Hindrance,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Denial> {
        let mut place = None;
        loop {
            let (overflow, patience) = (call.rules.budget.global.overflow, self.limits.load().budget_wait());
            let waited = self.govern.queues.wait(&entering.accounts, overflow, hindrance, place, patience).await;
            let waiting = waited.map_err(|error| over_budget(&error))?;
            let entered = match self.enter(call, entering, Some(&waiting), verdicts) {
                Ok(admitted) => Ok(admitted),
                Err(Halt::Refused(denial)) => Err(denial),
                Err(Halt::Waits(again)) => {
                    (entering, hindrance) = *again;
                    place = Some(waiting);
                    continue;
                }
            };
            // Whoever is next in line may try now.
            drop(waiting);
            self.govern.queues.ring();
            return entered;
        }
    }

    fn entering(
        &self,
        call: &Call<'_>,
        kinship: Arc<Kinship>,
        parent: Option<Arc<Node>>,
        (chain, own): (Accounts, Option<Opened>),
        roots: Vec<Arc<str>>,
        context: TaskContext,
    ) -> Entering {
        let Call { agent, rules, skill, .. } = call;
        let conditions = self.govern.conditions(rules, &call.context.caller, &agent.name, skill.id());
        let accounts = match (conditions.accounts.is_empty(), chain.is_empty()) {
            (true, _) => chain.clone(),
            (_, true) => conditions.accounts.clone(),
            _ => conditions.accounts.iter().chain(chain.iter()).cloned().collect(),
        };
        let free = self.govern.ledger.remaining(&accounts, call.now);
        let prices = rules.prices_of(agent);
        let estimated = self.govern.expected(prices, agent, skill.id(), &call.terms, &conditions.policy, free);
        Entering { kinship, parent, chain, own, roots, context, conditions, accounts, prices, estimated, goes_on: false }
    }

    fn enter(
        &self,
        call: &Call<'_>,
        entering: Entering,
        place: Option<&Place>,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Halt> {
        let (agent, rules) = (call.agent, &call.rules);
        verdicts.kinship.get_or_insert_with(|| Arc::clone(&entering.kinship));
        let unfrozen = self.govern.freezes.look();
        if let Some(freeze) =
            unfrozen.against(Belongs { caller: &call.context.caller, agent: &agent.name, roots: &entering.roots })
        {
            return Err(frozen(freeze).into());
        }
        // Asked where a cascade waits for the answer: see `Inner::cascade`.
        if let Some(parent) = &entering.parent {
            if parent.is_closing() {
                return Err(too_late("is being cancelled").into());
            }
            // Whoever waited in line may have outlived it. What is there already goes on without it.
            if !entering.goes_on && !parent.is_open() {
                return Err(too_late("has ended").into());
            }
        }
        if place.is_none() {
            verdicts.pass(Rule::Freeze, Vec::new);
        }
        let now = if place.is_none() { call.now } else { self.clock.now() };
        let Entering { ref accounts, estimated, ref parent, .. } = entering;
        let reservation = match self.govern.reserve(accounts, estimated.estimate, now, place, parent.as_deref()) {
            Ok(reservation) => reservation,
            Err(hindrance) => return Err(Halt::Waits(Box::new((entering, hindrance)))),
        };
        let Entering { kinship, parent, chain, own, context, conditions, accounts, prices, .. } = entering;
        let held = reservation.amount();
        verdicts.pass(Rule::Budget, || {
            if accounts.is_empty() {
                return Vec::new();
            }
            vec![
                ("estimate_usd".into(), Fact::Usd(held.usd)),
                ("estimate_tokens".into(), Fact::Number(held.tokens)),
                ("source".into(), Fact::text(estimated.usd.as_str())),
                ("scopes".into(), Fact::Scopes(Scopes(accounts))),
            ]
        });
        // What was held is let go when the reservation is dropped.
        rules.recursion.check(&context, &agent.name).map_err(|error| {
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
                ("path".into(), Fact::Path(context.visited_agents)),
            ]
        });
        Ok(Admitted { kinship, parent, chain, own, reservation, estimated, prices, conditions, unfrozen })
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

fn too_late(the_parent: &str) -> Denial {
    let gone = LineageError::Invalid(TokenCheck::ClosedParent);
    let message = format!("{}: the task this call is for {the_parent}", gone.kind().reason());
    Denial::new(Rule::Lineage, gone.kind(), message).with_fact("check", TokenCheck::ClosedParent.as_str())
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
