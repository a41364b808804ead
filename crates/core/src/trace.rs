//! Puts a call in its tree: under the task its token proves, under the one it can only come from, or at a root of its own.

use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, Proof, SendMessage};
use chancery_rules::budget::Amount;
use chancery_rules::lineage::{
    AgentRef, Allowance, Attribution, Lineage, LineageError, LineageFacts, OpenTask, Parent, Presented, TaskContext, TokenCheck,
    attribute,
};

use crate::govern::Rulebook;
use crate::govern::terms::Terms;
use crate::govern::trees::Node;
use crate::service::Inner;

/// The place of a call. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Traced {
    pub(crate) lineage: Lineage,
    /// The task it is under; of several it could be under, the strictest.
    pub(crate) parent: Option<Arc<Node>>,
    /// The roots of all trees it may belong to.
    pub(crate) roots: Vec<Arc<str>>,
}

impl Inner {
    pub(crate) fn trace(
        &self,
        context: &CallContext,
        send: &SendMessage,
        terms: &Terms,
        rules: &Rulebook,
    ) -> Result<Traced, LineageError> {
        let caller = self.caller_name(context);
        if let Some(parent) = &context.within {
            return self.within(parent, caller).ok_or(LineageError::Invalid(TokenCheck::ClosedParent));
        }
        let token = context.hop_token.as_deref().or(terms.hop_token.as_deref());
        let known_agent = context.standing.agent.is_some();
        // Most calls come from callers that are no agents and bring nothing.
        if token.is_none() && !known_agent {
            return Ok(Traced { lineage: root(context, caller), parent: None, roots: Vec::new() });
        }
        let presented = token.map_or(Presented::Nothing, |token| self.presented(token));
        let (caller, tenant) = match (&presented, &context.standing.proof) {
            // Where nobody has to prove anything, whoever brings an agent's token is taken for that agent.
            (Presented::Good(claims, _), Proof::None) => (claims.audience.clone(), Arc::clone(&claims.tenant)),
            _ => (caller, Arc::clone(&context.caller.tenant)),
        };
        let nodes = context.standing.agent.as_ref().map(|agent| self.govern.trees.of_agent(agent, &tenant)).unwrap_or_default();
        let open: Vec<OpenTask> = nodes.iter().map(|node| self.open_task(node)).collect();
        let lineage = attribute(&LineageFacts {
            tenant: &tenant,
            caller,
            known_agent,
            token: presented,
            open: &open,
            context_id: send.message.context_id.as_ref(),
            reference_task_ids: &send.message.reference_task_ids,
            traceparent: Some(context.trace),
            unattributed: rules.lineage.unattributed,
            new_trace: context.trace,
        })?;
        let parent = lineage.candidates.first().and_then(|candidate| self.govern.trees.get(&candidate.id));
        if parent.is_none() && lineage.attribution != Attribution::Root {
            // It ended while we looked.
            return Err(LineageError::Invalid(TokenCheck::ClosedParent));
        }
        let mut roots: Vec<Arc<str>> = lineage.candidates.iter().map(|candidate| candidate.root.as_str().into()).collect();
        roots.dedup();
        Ok(Traced { lineage, parent, roots })
    }

    /// A runner of this process calls: nobody has to be asked which task it works on.
    fn within(&self, parent: &chancery_protocol::TaskId, caller: AgentRef) -> Option<Traced> {
        let parent = self.govern.trees.get(parent)?;
        let above = self.open_task(&parent);
        let roots = vec![above.root.as_str().into()];
        let lineage = Lineage {
            attribution: Attribution::Verified,
            context: above.context.child(above.id.clone(), caller),
            root_task: Some(above.root.clone()),
            remaining: above.remaining,
            candidates: vec![above],
        };
        Some(Traced { lineage, parent: Some(parent), roots })
    }

    /// The first token that is one of ours decides. Those of other nodes say nothing here; they are for those who made them.
    fn presented(&self, tokens: &str) -> Presented {
        let Some(hops) = &self.hops else { return Presented::Foreign };
        for token in tokens.split(',').map(str::trim) {
            match hops.read(token, self.clock.now()) {
                Ok(None) => {}
                Err(check) => return Presented::Faulty(check),
                Ok(Some(claims)) => {
                    let parent = match self.govern.trees.get(&claims.parent_task) {
                        Some(node) => Parent::Open(self.open_task(&node)),
                        None => Parent::Closed,
                    };
                    return Presented::Good(Box::new(claims), Box::new(parent));
                }
            }
        }
        Presented::Foreign
    }

    fn open_task(&self, node: &Node) -> OpenTask {
        let link = node.link();
        let left = self.govern.ledger.remaining(&node.accounts, self.clock.now());
        // What it holds only because nobody knows what it needs is there for those it calls.
        let lendable = node.held().map_or_else(Amount::default, |held| held.lendable());
        OpenTask {
            id: node.record.id.clone(),
            root: node.kinship.root.clone(),
            context: node.context(),
            context_id: node.record.context_id.clone(),
            remote_id: link.as_ref().and_then(|link| link.task.clone()),
            remote_context_id: link.and_then(|link| link.context),
            remaining: Allowance {
                usd: left.usd.map(|usd| usd.saturating_add(lendable.usd)),
                tokens: left.tokens.map(|tokens| tokens.saturating_add(lendable.tokens)),
            },
        }
    }

    /// The name a caller has in a path: the agent's it is, or its own. No caller can pass for an agent by its name.
    fn caller_name(&self, context: &CallContext) -> AgentRef {
        if let Some(agent) = &context.standing.agent {
            return agent.clone();
        }
        let name: &AgentName = &context.caller.name;
        match self.agents.load().get(name) {
            None => name.clone(),
            Some(_) => format!("caller:{name}").into(),
        }
    }
}

fn root(context: &CallContext, caller: AgentRef) -> Lineage {
    Lineage {
        attribution: Attribution::Root,
        context: TaskContext::root(context.trace, caller),
        root_task: None,
        remaining: Allowance::default(),
        candidates: Vec::new(),
    }
}
