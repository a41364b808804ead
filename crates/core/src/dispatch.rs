//! The rules in their order: lineage, freeze and budget, recursion, selector, policy. What comes out may be carried out.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, SendMessage, TaskId, Timestamp};
use chancery_rules::budget::Amount;
use chancery_rules::lineage::LineageError;

use crate::admit::{Admitted, Halt};
use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::govern::GOVERNANCE_EXTENSION;
use crate::govern::allot::{Allotment, span_of};
use crate::govern::held_budget::HeldBudget;
use crate::govern::node::TreeNode;
use crate::govern::report::CostReport;
use crate::governed_call::GovernedCall;
use crate::ids::fresh_id;
use crate::live::TurnOrigin;
use crate::permit::Permitted;
use crate::service::ChanceryInner;
use crate::{Decision, Fact, ForeignToken, Governed, Rule, Spend, TaskRecord, Verdict};

/// A call that every rule has let through.
#[derive(Debug)]
pub(crate) struct Dispatched {
    permitted: Permitted,
    verdicts: Arc<[Verdict]>,
    /// The hop tokens that came with it.
    brought: Option<Arc<str>>,
}

impl ChanceryInner {
    /// A call that makes a task. Nothing waits but a call that finds no room, so nothing else has to be kept for one that does.
    pub(crate) async fn dispatch(
        &self,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: &SendMessage,
        task: &TaskId,
        turn_origin: TurnOrigin,
    ) -> Result<Box<Dispatched>, Error> {
        let call = GovernedCall::new(self, context, agent, send)?;
        let bound =
            turn_origin == TurnOrigin::OpensTask && agent.runner.keeps_links() && Box::pin(self.is_bound(&call, send)).await;
        let mut verdicts = Verdicts::default();
        match self.steps(&call, send, task, bound, &mut verdicts) {
            Ok(permitted) => Ok(Dispatched::new(&call, permitted, verdicts)),
            Err(halt) => Box::pin(self.halted(call, send, None, bound, verdicts, halt)).await,
        }
    }

    fn steps(
        &self,
        call: &GovernedCall<'_>,
        send: &SendMessage,
        task: &TaskId,
        bound: bool,
        verdicts: &mut Verdicts,
    ) -> Result<Permitted, Halt> {
        let traced = self.trace(call, send).map_err(|error| misplaced(&error))?;
        verdicts.pass(Rule::Lineage, || {
            let lineage = traced.lineage();
            let mut facts = vec![("attribution".into(), Fact::text(lineage.attribution.as_str()))];
            if let Some(parent) = &lineage.context.parent_task_id {
                facts.push(("parent".into(), Fact::text(parent.to_string())));
            }
            facts
        });
        let admitted = self.admit(call, task, traced, verdicts)?;
        Ok(self.choose_and_permit(call, send, admitted, bound, verdicts)?)
    }

    fn choose_and_permit(
        &self,
        call: &GovernedCall<'_>,
        send: &SendMessage,
        admitted: Admitted,
        bound: bool,
        verdicts: &mut Verdicts,
    ) -> Result<Permitted, Denial> {
        let routed = self.choose(call, &send.message, admitted, bound, verdicts)?;
        self.permit(call, routed, verdicts)
    }

    /// A call that is refused, or waits for room and goes on from there.
    async fn halted(
        &self,
        call: GovernedCall<'_>,
        send: &SendMessage,
        task: Option<&TaskId>,
        bound: bool,
        mut verdicts: Verdicts,
        halt: Halt,
    ) -> Result<Box<Dispatched>, Error> {
        let permitted = match halt {
            Halt::Refused(denial) => Err(denial),
            Halt::Waits(waits) => {
                let (entering, hindrance) = *waits;
                let admitted = self.admit_later(&call, entering, hindrance, &mut verdicts).await;
                admitted.and_then(|admitted| self.choose_and_permit(&call, send, admitted, bound, &mut verdicts))
            }
        };
        match permitted {
            Ok(permitted) => Ok(Dispatched::new(&call, permitted, verdicts)),
            Err(denial) => Err(self.refuse(call.context, call.agent, task, verdicts, denial).await),
        }
    }

    /// Whether the conversation already has a replica.
    async fn is_bound(&self, call: &GovernedCall<'_>, send: &SendMessage) -> bool {
        let Some(context_id) = &send.message.context_id else { return false };
        let link = self.store.context_link(&call.context.caller, &call.agent.name, context_id).await;
        matches!(link, Ok(Some(_)))
    }

    /// A message that a task goes on with.
    pub(crate) async fn dispatch_again(
        &self,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: &SendMessage,
        node: &Arc<TreeNode>,
    ) -> Result<Box<Dispatched>, Error> {
        let call = GovernedCall::new(self, context, agent, send)?;
        let mut verdicts = Verdicts::default();
        let admitted = self.readmit(&call, node, &mut verdicts);
        let permitted = admitted.and_then(|admitted| Ok(self.choose_and_permit(&call, send, admitted, true, &mut verdicts)?));
        match permitted {
            Ok(permitted) => Ok(Dispatched::new(&call, permitted, verdicts)),
            Err(halt) => Box::pin(self.halted(call, send, Some(&node.record.id), true, verdicts, halt)).await,
        }
    }

    /// What those of a call's hop tokens say that other nodes made.
    pub(crate) fn foreign_tokens(&self, tokens: &str) -> Vec<ForeignToken> {
        /// A call that came through more nodes than this has gone round in circles.
        const MOST_TOKENS: usize = 8;
        let (Some(hops), now) = (self.hops.as_ref(), self.clock.now()) else { return Vec::new() };
        let foreign =
            tokens.split(',').map(str::trim).take(MOST_TOKENS).filter(|token| matches!(hops.read(token, now), Ok(None)));
        foreign.map(|token| hops.read_foreign(token)).collect()
    }
}

fn misplaced(error: &LineageError) -> Denial {
    let denial = Denial::new(Rule::Lineage, error.kind(), format!("{}: {error}", error.kind().reason()));
    match error.check() {
        Some(check) => denial.with_fact("check", check),
        None => denial,
    }
}

impl Dispatched {
    fn new(call: &GovernedCall<'_>, permitted: Permitted, verdicts: Verdicts) -> Box<Self> {
        let verdicts = permitted.admitted().shared(verdicts.said);
        Box::new(Self { permitted, verdicts, brought: call.hop_token() })
    }

    /// The hop tokens that came with it, to go on with the task.
    pub(crate) fn brought(&mut self) -> Option<Arc<str>> {
        self.brought.take()
    }

    /// What is kept of it with the task it makes.
    pub(crate) fn governed(&self) -> Governed {
        let admitted = self.permitted.admitted();
        Governed {
            kinship: Arc::clone(admitted.kinship()),
            spend: Spend::reserved(admitted.reservation().amount(), admitted.estimated().usd),
            verdicts: Arc::clone(&self.verdicts),
        }
    }

    /// What is held for it.
    pub(crate) fn held(&self) -> Amount {
        self.permitted.admitted().reservation().amount()
    }

    /// What is kept of it with the message it lets a task go on with.
    pub(crate) fn decision(&self, context: &CallContext, record: &TaskRecord, now: Timestamp) -> Arc<Decision> {
        let kinship = self.permitted.admitted().kinship();
        Arc::new(Decision {
            id: fresh_id(),
            at: now,
            tenant: Arc::clone(&context.caller.tenant),
            caller: Arc::clone(&context.caller.name),
            agent: record.agent.clone(),
            task: Some(record.id.clone()),
            root: Some(kinship.root.clone()),
            trace: Some(kinship.trace),
            refused: None,
            verdicts: self.verdicts.to_vec(),
        })
    }

    /// The task is recorded: it gets its place in its tree, and its first turn what it was given.
    pub(crate) fn begin(
        mut self,
        inner: &ChanceryInner,
        record: &Arc<TaskRecord>,
        agent: &Agent,
        context: &CallContext,
    ) -> (Arc<TreeNode>, Option<Arc<str>>, Allotment) {
        let admitted = self.permitted.admitted_mut();
        let kinship = Arc::clone(admitted.kinship());
        let (parent, chain, own) = admitted.take_place();
        let by_agent = parent.as_ref().map(|parent| &parent.record.agent);
        inner.govern.placements.count(kinship.attribution);
        if let Some(by) = by_agent.or(context.standing.agent.as_ref()).or(context.via.as_ref()) {
            inner.govern.placements.note(by, kinship.attribution, record.created_at);
        }
        let node =
            TreeNode::new(&inner.govern.trees, Arc::clone(record), kinship, parent, chain, own, agent.runner.keeps_links());
        let (selected, allotment) = self.go_on(inner, &node, context, Spend::default());
        (node, selected, allotment)
    }

    /// The next turn of a task gets what it was given.
    pub(crate) fn go_on(
        self,
        inner: &ChanceryInner,
        node: &Arc<TreeNode>,
        context: &CallContext,
        before: Spend,
    ) -> (Option<Arc<str>>, Allotment) {
        let (admitted, selected, slot) = self.permitted.into_parts();
        let (reservation, policy, estimated, prices) = admitted.into_turn();
        let allotment = Allotment {
            govern: Arc::clone(&inner.govern),
            node: Arc::clone(node),
            span: span_of(node),
            held: HeldBudget::new(reservation),
            _slot: Some(slot),
            policy,
            estimated,
            prices,
            before,
            heard: CostReport::default(),
            interrupted: false,
            announced: context.extensions.iter().any(|uri| uri == GOVERNANCE_EXTENSION),
        };
        (selected, allotment)
    }
}
