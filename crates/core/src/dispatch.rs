//! The rules in their order: lineage, freeze and budget, recursion, selector, policy. What comes out may be carried out.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, SendMessage, TaskId, Timestamp};
use chancery_rules::budget::Amount;
use chancery_rules::lineage::LineageError;

use crate::admit::{Admitted, Call, Halt};
use crate::agents::Agent;
use crate::decide::{Denial, Verdicts};
use crate::govern::GOVERNANCE_EXTENSION;
use crate::govern::allot::{Allotment, span_of};
use crate::govern::freezes::Unfrozen;
use crate::govern::held::Held;
use crate::govern::report::Report;
use crate::govern::trees::Node;
use crate::ids::fresh_id;
use crate::live::Place;
use crate::permit::Permitted;
use crate::service::Inner;
use crate::{Decision, Fact, Governed, Rule, Spend, TaskRecord, Verdict};

/// A call that every rule has let through.
#[derive(Debug)]
pub(crate) struct Dispatched {
    permitted: Permitted,
    verdicts: Arc<[Verdict]>,
    /// The hop tokens that came with it.
    brought: Option<Arc<str>>,
}

impl Inner {
    /// A call that makes a task. Nothing waits but a call that finds no room, so nothing else has to be kept for one that does.
    pub(crate) async fn dispatch(
        &self,
        context: &CallContext,
        agent: &Arc<Agent>,
        send: &SendMessage,
        task: &TaskId,
        place: Place,
    ) -> Result<Box<Dispatched>, Error> {
        let call = Call::new(self, context, agent, send)?;
        let bound = place == Place::OpensTask && agent.runner.keeps_links() && Box::pin(self.is_bound(&call, send)).await;
        let mut verdicts = Verdicts::default();
        match self.steps(&call, send, task, bound, &mut verdicts) {
            Ok(permitted) => Ok(Dispatched::new(&call, permitted, verdicts)),
            Err(halt) => Box::pin(self.halted(call, send, None, bound, verdicts, halt)).await,
        }
    }

    fn steps(
        &self,
        call: &Call<'_>,
        send: &SendMessage,
        task: &TaskId,
        bound: bool,
        verdicts: &mut Verdicts,
    ) -> Result<Permitted, Halt> {
        let traced = self.trace(call.context, send, &call.terms, &call.rules).map_err(|error| misplaced(&error))?;
        verdicts.pass(Rule::Lineage, || {
            let lineage = &traced.lineage;
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
        call: &Call<'_>,
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
        call: Call<'_>,
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

    /// Whether the conversation goes on with somebody already.
    async fn is_bound(&self, call: &Call<'_>, send: &SendMessage) -> bool {
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
        node: &Arc<Node>,
    ) -> Result<Box<Dispatched>, Error> {
        let call = Call::new(self, context, agent, send)?;
        let mut verdicts = Verdicts::default();
        let admitted = self.readmit(&call, node, &mut verdicts);
        let permitted = admitted.and_then(|admitted| Ok(self.choose_and_permit(&call, send, admitted, true, &mut verdicts)?));
        match permitted {
            Ok(permitted) => Ok(Dispatched::new(&call, permitted, verdicts)),
            Err(halt) => Box::pin(self.halted(call, send, Some(&node.record.id), true, verdicts, halt)).await,
        }
    }

    /// Those of a call's hop tokens that other nodes made.
    pub(crate) fn foreign_tokens(&self, tokens: &str) -> Option<String> {
        /// A token that came through more nodes than this has gone round in circles.
        const MOST_TOKENS: usize = 8;
        let (hops, now) = (self.hops.as_ref()?, self.clock.now());
        let foreign = tokens.split(',').map(str::trim).filter(|token| matches!(hops.read(token, now), Ok(None)));
        let foreign: Vec<&str> = foreign.take(MOST_TOKENS).collect();
        (!foreign.is_empty()).then(|| foreign.join(","))
    }
}

fn misplaced(error: &LineageError) -> Denial {
    let denial = Denial::new(Rule::Lineage, error.kind(), format!("{}: {error}", error.kind().reason()));
    match error {
        LineageError::Invalid(check) => denial.with_fact("check", check.as_str()),
        LineageError::Required => denial,
    }
}

impl Dispatched {
    fn new(call: &Call<'_>, permitted: Permitted, verdicts: Verdicts) -> Box<Self> {
        Box::new(Self { permitted, verdicts: verdicts.said.into(), brought: call.hop_token() })
    }

    /// The hop tokens that came with it, to go on with the task.
    pub(crate) fn brought(&mut self) -> Option<Arc<str>> {
        self.brought.take()
    }

    /// What is kept of it with the task it makes.
    pub(crate) fn governed(&self) -> Governed {
        let admitted = &self.permitted.admitted;
        Governed {
            kinship: Arc::clone(&admitted.kinship),
            spend: Spend::reserved(admitted.reservation.amount(), admitted.estimated.usd),
            verdicts: Arc::clone(&self.verdicts),
        }
    }

    /// What is held for it.
    pub(crate) fn held(&self) -> Amount {
        self.permitted.admitted.reservation.amount()
    }

    /// What is kept of it with the message it lets a task go on with.
    pub(crate) fn decision(&self, context: &CallContext, record: &TaskRecord, now: Timestamp) -> Arc<Decision> {
        let kinship = &self.permitted.admitted.kinship;
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
        inner: &Inner,
        record: &Arc<TaskRecord>,
        context: &CallContext,
    ) -> (Arc<Node>, Option<Arc<str>>, Allotment) {
        let admitted = &mut self.permitted.admitted;
        let (kinship, parent) = (Arc::clone(&admitted.kinship), admitted.parent.take());
        let (chain, own) = (admitted.chain.clone(), admitted.own.take());
        let node = Node::new(&inner.govern.trees, Arc::clone(record), kinship, parent, chain, own);
        let (selected, allotment) = self.go_on(inner, &node, context, Spend::default());
        (node, selected, allotment)
    }

    /// The next turn of a task gets what it was given.
    pub(crate) fn go_on(
        self,
        inner: &Inner,
        node: &Arc<Node>,
        context: &CallContext,
        before: Spend,
    ) -> (Option<Arc<str>>, Allotment) {
        let Permitted { admitted, selected, slot } = self.permitted;
        release(admitted.unfrozen);
        let allotment = Allotment {
            govern: Arc::clone(&inner.govern),
            node: Arc::clone(node),
            span: span_of(node),
            held: Held::new(admitted.reservation),
            _slot: Some(slot),
            policy: Arc::clone(&admitted.conditions.policy),
            estimated: admitted.estimated,
            prices: admitted.prices,
            before,
            heard: Report::default(),
            interrupted: false,
            announced: context.extensions.iter().any(|uri| uri == GOVERNANCE_EXTENSION),
        };
        (selected, allotment)
    }
}

/// The call is recorded: whoever wants to freeze something need not wait for it any more.
fn release(unfrozen: Unfrozen) {
    drop(unfrozen);
}
