//! Lets a call in, or not: nothing it belongs to may be frozen, its budgets must have room, and it must not run in circles.

use std::sync::Arc;

use chancery_protocol::{ErrorKind, TaskId};
use chancery_rules::budget::{Accounts, BudgetError, Caps, Estimated, Price, Reservation};
use chancery_rules::lineage::{Attribution, Lineage, LineageError, TaskContext, TokenCheck};
use chancery_rules::policy::TaskPolicy;

use crate::decide::{Denial, Verdicts};
use crate::govern::OpenedAccount;
use crate::govern::conditions::CallBounds;
use crate::govern::freezes::{Belongs, Unfrozen};
use crate::govern::node::TreeNode;
use crate::govern::prices::{self, Prices};
use crate::govern::queue::{Hindrance, QueueTicket};
use crate::governed::BudgetScopes;
use crate::governed_call::GovernedCall;
use crate::service::ChanceryInner;
use crate::trace::{Traced, TracedParts};
use crate::{Fact, Freeze, LineageRecord, Rule, Verdict};

/// A call that is in: money is held for it. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Admitted {
    kinship: Arc<LineageRecord>,
    parent: Option<Arc<TreeNode>>,
    /// Of the tree and its branches, down to this task.
    chain: Accounts,
    /// The account that was opened for the task alone.
    own: Option<OpenedAccount>,
    reservation: Reservation,
    estimated: Estimated,
    prices: Prices,
    conditions: Arc<CallBounds>,
    /// Held until the call is recorded: a freeze waits for it.
    unfrozen: Unfrozen,
}

impl Admitted {
    pub(crate) fn kinship(&self) -> &Arc<LineageRecord> {
        &self.kinship
    }

    /// What is held for the call, in all its budgets.
    pub(crate) fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    pub(crate) fn estimated(&self) -> &Estimated {
        &self.estimated
    }

    pub(crate) fn policy(&self) -> &Arc<TaskPolicy> {
        &self.conditions.policy
    }

    /// The verdicts about the call, shared with those of earlier calls that are the same.
    pub(crate) fn shared(&self, said: Vec<Verdict>) -> Arc<[Verdict]> {
        self.conditions.shared(said)
    }

    /// The place of the task that the call makes: its parent, the accounts down to it, and the one that was opened for it.
    pub(crate) fn take_place(&mut self) -> (Option<Arc<TreeNode>>, Accounts, Option<OpenedAccount>) {
        (self.parent.take(), self.chain.clone(), self.own.take())
    }

    /// The call is recorded: its turn gets the reserved budget, and a freeze no longer waits for it.
    pub(crate) fn into_turn(self) -> (Reservation, Arc<TaskPolicy>, Estimated, Prices) {
        drop(self.unfrozen);
        (self.reservation, Arc::clone(&self.conditions.policy), self.estimated, self.prices)
    }
}

/// A call at the entrance: what stays as it is while it waits there.
#[derive(Debug)]
pub(crate) struct Entering {
    kinship: Arc<LineageRecord>,
    parent: Option<Arc<TreeNode>>,
    /// The other tasks it could be under.
    others: Vec<Arc<TreeNode>>,
    chain: Accounts,
    own: Option<OpenedAccount>,
    /// The roots of all trees it may belong to.
    roots: Vec<Arc<str>>,
    context: TaskContext,
    conditions: Arc<CallBounds>,
    /// All that it is charged to.
    accounts: Accounts,
    prices: Prices,
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

impl ChanceryInner {
    /// A call that makes a task.
    pub(crate) fn admit(
        &self,
        call: &GovernedCall<'_>,
        task: &TaskId,
        traced: Traced,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Halt> {
        let TracedParts { lineage, parent, others, roots } = traced.into_parts();
        let (chain, own, allowance) = self.chain(call, task, &lineage, parent.as_deref());
        let kinship = Arc::new(kinship(call, task, &lineage, parent.as_deref(), allowance));
        let entering = self.entering(call, kinship, parent, (chain, own), roots, lineage.context);
        self.enter(call, Entering { others, ..entering }, None, verdicts)
    }

    /// A message that a task goes on with: it is charged like a new one, in the same place.
    pub(crate) fn readmit(
        &self,
        call: &GovernedCall<'_>,
        node: &Arc<TreeNode>,
        verdicts: &mut Verdicts,
    ) -> Result<Admitted, Halt> {
        let (kinship, parent, chain) = (Arc::clone(&node.kinship), node.parent.clone(), node.accounts.clone());
        let roots = vec![kinship.root.as_str().into()];
        let entering = self.entering(call, kinship, parent, (chain, None), roots, node.context());
        self.enter(call, Entering { goes_on: true, ..entering }, None, verdicts)
    }

    /// A call that found no room waits for some.
    pub(crate) async fn admit_later(
        &self,
        call: &GovernedCall<'_>,
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
        call: &GovernedCall<'_>,
        kinship: Arc<LineageRecord>,
        parent: Option<Arc<TreeNode>>,
        (chain, own): (Accounts, Option<OpenedAccount>),
        roots: Vec<Arc<str>>,
        context: TaskContext,
    ) -> Entering {
        let GovernedCall { agent, rules, skill, .. } = call;
        let conditions = self.govern.conditions(rules, &call.context.caller, &agent.name, skill.id());
        let accounts = match (conditions.accounts.is_empty(), chain.is_empty()) {
            (true, _) => chain.clone(),
            (_, true) => conditions.accounts.clone(),
            _ => conditions.accounts.iter().chain(chain.iter()).cloned().collect(),
        };
        let prices = rules.prices_of(agent);
        let others = Vec::new();
        Entering { kinship, parent, others, chain, own, roots, context, conditions, accounts, prices, goes_on: false }
    }

    fn enter(
        &self,
        call: &GovernedCall<'_>,
        entering: Entering,
        place: Option<&QueueTicket>,
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
        // Asked where a cascade waits for the answer: see `ChanceryInner::cascade`.
        if let Some(parent) = &entering.parent {
            if parent.is_closing() {
                return Err(too_late("is being cancelled").into());
            }
            // Whoever waited in line may have outlived it, and all others it could be for. What is there already goes on without it.
            let waited_for = parent.is_open() || entering.others.iter().any(|other| other.is_open());
            let is_late = entering.kinship.attribution == Attribution::Late;
            if !entering.goes_on && !is_late && !waited_for {
                return Err(too_late("has ended").into());
            }
        }
        if place.is_none() {
            verdicts.pass(Rule::Freeze, Vec::new);
        }
        let (estimated, reservation) = match self.hold(call, &entering, place) {
            Ok(held) => held,
            Err(hindrance) => return Err(Halt::Waits(Box::new((entering, hindrance)))),
        };
        let Entering { kinship, parent, chain, own, context, conditions, accounts, prices, .. } = entering;
        let held = reservation.amount();
        verdicts.pass(Rule::Budget, || {
            if accounts.is_empty() {
                return Vec::new();
            }
            let Price { usd, tokens } = call.terms.hint();
            let hint_usd = usd.map(|usd| ("hint_usd".into(), Fact::Usd(usd)));
            let hint_tokens = tokens.map(|tokens| ("hint_tokens".into(), Fact::Number(tokens)));
            let facts = [
                ("estimate_usd".into(), Fact::Usd(held.usd)),
                ("estimate_tokens".into(), Fact::Number(held.tokens)),
                ("source".into(), Fact::text(estimated.usd.as_str())),
                ("scopes".into(), Fact::Scopes(BudgetScopes(accounts))),
            ];
            hint_usd.into_iter().chain(hint_tokens).chain(facts).collect()
        });
        // What was held is let go when the reservation is dropped.
        let checked = match kinship.attribution {
            // Nobody waits for what is done after the answer.
            Attribution::Late => rules.recursion.check_depth(&context, &agent.name),
            _ => match rules.recursion.revisit_allowlist.is_empty() {
                true => rules.recursion.check(&context, &agent.name),
                // An operator may have listed it by its AgentID.
                false => rules.recursion.check_names(&context, &agent.name, &self.agent_ids().other_names(&agent.name)),
            },
        };
        checked.map_err(|error| {
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

    /// Holds what a call is expected to cost in all its budgets.
    fn hold(
        &self,
        call: &GovernedCall<'_>,
        entering: &Entering,
        place: Option<&QueueTicket>,
    ) -> Result<(Estimated, Reservation), Hindrance> {
        let Entering { accounts, prices, conditions, parent, .. } = entering;
        let (govern, skill, hint) = (&self.govern, call.skill.id(), call.terms.hint());
        let mut learnt = govern.observed.learnt(&call.agent.name, skill);
        loop {
            let now = govern.now();
            let free = govern.ledger.remaining(accounts, now);
            let hint_at_most = if hint == Price::default() { Caps::NONE } else { govern.ledger.most_unknown(accounts) };
            let estimated = prices::expected(*prices, learnt, hint, hint_at_most, &conditions.policy, free);
            let reservation = govern.reserve(accounts, estimated.estimate, now, place, parent.as_deref())?;
            if accounts.is_empty() {
                return Ok((estimated, reservation));
            }
            // Where the agent overran meanwhile, this call was not in flight then: it holds the remainder
            // like all after it.
            let latest = govern.observed.learnt(&call.agent.name, skill);
            if !latest.overran_since(&learnt) {
                return Ok((estimated, reservation));
            }
            learnt = latest;
        }
    }

    /// The budgets from the root of the tree down to a new task, and the budget that was opened for the task.
    /// Also the limit of the task and all below it, where that is less than the limits above.
    fn chain(
        &self,
        call: &GovernedCall<'_>,
        task: &TaskId,
        lineage: &Lineage,
        parent: Option<&TreeNode>,
    ) -> (Accounts, Option<OpenedAccount>, Option<Caps>) {
        let asked = call.asked();
        let Some(parent) = parent else {
            let own = self.govern.open_tree(&call.rules, task, asked);
            let chain = own.iter().map(|own| own.account.clone()).collect();
            return (chain, own, (asked != Caps::NONE).then_some(asked));
        };
        // One of several parents bounds by what the poorest has left.
        let is_bound = match lineage.attribution {
            Attribution::Ambiguous | Attribution::Claimed => true,
            Attribution::Late => lineage.candidates.len() > 1,
            _ => false,
        };
        let left = Caps { usd: lineage.remaining.usd, tokens: lineage.remaining.tokens, tasks: None };
        let bound = if is_bound { left } else { Caps::NONE };
        let allowance = asked.narrowed(bound);
        if allowance == Caps::NONE {
            return (parent.accounts.clone(), None, None);
        }
        let own = self.govern.open_branch(task, allowance);
        let chain = parent.accounts.iter().cloned().chain([own.account.clone()]).collect();
        (chain, Some(own), Some(allowance))
    }
}

fn kinship(
    call: &GovernedCall<'_>,
    task: &TaskId,
    lineage: &Lineage,
    parent: Option<&TreeNode>,
    allowance: Option<Caps>,
) -> LineageRecord {
    LineageRecord {
        root: lineage.root_task.clone().unwrap_or_else(|| task.clone()),
        trace: lineage.context.trace_id,
        made: parent.map_or(call.context.span.is_none(), |parent| parent.kinship.made),
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
