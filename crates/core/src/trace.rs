//! Puts a call in its tree: under the task its token proves, under the one it can only come from, or at a root of its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use chancery_protocol::{AgentName, CallContext, ContextId, IdentityProof, SendMessage, TaskId, Timestamp, TraceId};
use chancery_rules::budget::Amount;
use chancery_rules::lineage::{
    AgentRef, Allowance, Attribution, Lineage, LineageError, LineageFacts, OpenTask, Parent, PresentedToken, TaskContext,
    TokenCheck, TraceMark, attribute,
};

use crate::TokenTask;
use crate::govern::Rulebook;
use crate::govern::marks::MemberMark;
use crate::govern::node::TreeNode;
use crate::governed_call::GovernedCall;
use crate::service::ChanceryInner;

/// The place of a call. Only this step makes one.
#[derive(Debug)]
pub(crate) struct Traced {
    lineage: Lineage,
    /// The task it is under; of several it could be under, the strictest.
    parent: Option<Arc<TreeNode>>,
    /// The others it could be under.
    others: Vec<Arc<TreeNode>>,
    /// The roots of all trees it may belong to.
    roots: Vec<Arc<str>>,
}

impl Traced {
    pub(crate) fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    pub(crate) fn into_parts(self) -> TracedParts {
        TracedParts { lineage: self.lineage, parent: self.parent, others: self.others, roots: self.roots }
    }
}

/// What a traced call hands on to its admission.
pub(crate) struct TracedParts {
    pub(crate) lineage: Lineage,
    pub(crate) parent: Option<Arc<TreeNode>>,
    /// The other tasks that the call could come from.
    pub(crate) others: Vec<Arc<TreeNode>>,
    /// The roots of all trees that it may belong to.
    pub(crate) roots: Vec<Arc<str>>,
}

impl ChanceryInner {
    pub(crate) fn trace(&self, call: &GovernedCall<'_>, send: &SendMessage) -> Result<Traced, LineageError> {
        let GovernedCall { context, terms, rules, .. } = call;
        let agent = caller_agent(context)?;
        let caller = self.caller_name(context, agent);
        if let Some(parent) = &context.within {
            return self.within(parent, caller).ok_or(LineageError::Invalid(TokenCheck::ClosedParent));
        }
        let token = context.hop_token.as_deref().or(terms.hop_token.as_deref());
        // An agent may pass on the token of another node alone, which has this node's mark in it if the call came through here.
        let foreign: Vec<String> = match (token, &context.tracestate) {
            (Some(token), None) => self.foreign_tokens(token).into_iter().flat_map(|token| token.members).collect(),
            _ => Vec::new(),
        };
        let state = context.tracestate.as_deref().map(Cow::Borrowed).or((!foreign.is_empty()).then(|| foreign.join(",").into()));
        let brings_trace = rules.lineage.traces && (context.span.is_some() || state.is_some());
        let claimed = terms.claimed.as_deref().filter(|_| rules.lineage.claims);
        let named = self.named_tasks(context, rules, names_in(send));
        // Most calls come from callers that are no agents and bring nothing.
        if token.is_none() && agent.is_none() && !brings_trace && claimed.is_none() && named.is_empty() {
            return Ok(Traced { lineage: root(context, caller), parent: None, others: Vec::new(), roots: Vec::new() });
        }
        let mut seen = TaskNodes::default();
        let presented = token.map_or(PresentedToken::Nothing, |token| self.presented(token, &mut seen));
        let (caller, tenant) = match (&presented, &context.standing.proof) {
            // Where nobody has to prove anything, whoever brings an agent's token is taken for that agent.
            (PresentedToken::Good(claims, _), IdentityProof::None) => (claims.audience.clone(), Arc::clone(&claims.tenant)),
            _ => (caller, Arc::clone(&context.caller.tenant)),
        };
        let open = agent.map(|agent| self.open_tasks_of(agent, context, &mut seen)).unwrap_or_default();
        let (mark, tree) = if brings_trace { self.marked(call, state.as_deref(), &mut seen) } else { Default::default() };
        let claimed_trace = claimed.and_then(|claimed| claimed.trace_id);
        let claimed_tree = claimed_trace.map(|trace| self.tree_of(trace, call, OwnTasks::Never, &mut seen)).unwrap_or_default();
        let named: Vec<OpenTask> = named.into_iter().map(|node| seen.note(self.open_task(&node), node)).collect();
        let agent_ids = claimed.map(|_| self.agent_ids()).unwrap_or_default();
        let ended = agent.filter(|_| open.is_empty()).and_then(|agent| self.last_ended(agent, context, &mut seen));
        let lineage = attribute(&LineageFacts {
            tenant: &tenant,
            caller,
            known_agent: agent.is_some(),
            target: &call.agent.name,
            token: presented,
            mark,
            open: &open,
            tree: &tree,
            named: &named,
            claimed_tree: &claimed_tree,
            ended: ended.as_ref(),
            claimed,
            agent_ids: &agent_ids,
            context_id: send.message.context_id.as_ref(),
            reference_task_ids: &send.message.reference_task_ids,
            traceparent: Some(context.trace),
            unattributed: rules.lineage.unattributed,
            new_trace: context.trace,
        })?;
        // The nodes that were looked at, not those that are open now: one that ended meanwhile was open when the call was made.
        let mut candidates = lineage.candidates.iter().filter_map(|candidate| seen.0.remove(&candidate.id));
        let (parent, others) = (candidates.next(), candidates.collect());
        let mut roots: Vec<Arc<str>> = lineage.candidates.iter().map(|candidate| candidate.root.as_str().into()).collect();
        roots.sort_unstable();
        roots.dedup();
        Ok(Traced { lineage, parent, others, roots })
    }

    /// The open tasks of the agent that calls. What it does for one tenant is no other's to know or to pay for. Where a tenant is only a
    /// name, one that nothing is open for says nothing.
    fn open_tasks_of(&self, agent: &AgentName, context: &CallContext, seen: &mut TaskNodes) -> Vec<OpenTask> {
        let mut nodes = self.govern.trees.of_agent(agent, |node| is_of_tenant(node, context));
        if nodes.is_empty() && context.standing.proof == IdentityProof::None {
            nodes = self.govern.trees.of_agent(agent, |_| true);
        }
        nodes.into_iter().map(|node| seen.note(self.open_task(&node), node)).collect()
    }

    /// What this node's own marks in the trace of a call name: a task, or the tree whose trace it is.
    fn marked(&self, call: &GovernedCall<'_>, tracestate: Option<&str>, seen: &mut TaskNodes) -> (TraceMark, Vec<OpenTask>) {
        let context = call.context;
        let trees = &self.govern.trees;
        let may = |node: &Arc<TreeNode>| context.standing.proof == IdentityProof::None || is_of_tenant(node, context);
        let member = match tracestate.map_or(MemberMark::Absent, |state| self.marks.read(state)) {
            MemberMark::Token(value) => self.named_by_member(&value).map_or(MemberMark::Detached, MemberMark::Task),
            member => member,
        };
        if member == MemberMark::Detached {
            return (TraceMark::Nothing, Vec::new());
        }
        let node = match &member {
            MemberMark::Task(task) => trees.get(task).or_else(|| trees.ended(task)),
            _ => context.span.and_then(|span| trees.by_span(span)),
        };
        let mark = node.filter(may).map_or(TraceMark::Nothing, |node| {
            let (is_open, task) = (node.is_open(), self.open_task(&node));
            let task = seen.note(task, node);
            if is_open { TraceMark::Open(task) } else { TraceMark::Ended(task) }
        });
        let tree = match (&mark, context.span) {
            (TraceMark::Nothing, Some(_)) => {
                // The handle of a task that ended long ago is of none of the open ones.
                let own = if matches!(member, MemberMark::Task(_)) { OwnTasks::Never } else { OwnTasks::IfAlone };
                self.tree_of(context.trace, call, own, seen)
            }
            _ => Vec::new(),
        };
        (mark, tree)
    }

    /// The task of a token that another node forwarded as this node's member of `tracestate`.
    fn named_by_member(&self, value: &str) -> Option<TaskId> {
        let named = self.hops.as_ref()?.read_member(value, self.clock.now()).ok()?;
        Some(named.task)
    }

    /// The open tasks of a tree that a call may come from, by the trace that this node made for it. Where callers prove who they are
    /// a tree counts only for the one who began it.
    fn tree_of(&self, trace: TraceId, call: &GovernedCall<'_>, own: OwnTasks, seen: &mut TaskNodes) -> Vec<OpenTask> {
        let is_own = |node: &Arc<TreeNode>| node.record.agent == call.agent.name;
        let mut nodes = self.govern.trees.of_trace(trace);
        nodes.retain(|node| may_name(node, call.context));
        if own == OwnTasks::Never || !nodes.iter().all(is_own) {
            nodes.retain(|node| !is_own(node));
        }
        nodes.into_iter().map(|node| seen.note(self.open_task(&node), node)).collect()
    }

    /// The open tasks that one of these names stands for at their agents. Where callers prove who they are, a name counts only for the
    /// one who began the tree. What an agent with credentials works on is known without.
    pub(crate) fn named_tasks<'a>(
        &self,
        context: &CallContext,
        rules: &Rulebook,
        names: impl Iterator<Item = &'a str>,
    ) -> Vec<Arc<TreeNode>> {
        let mut names = names.peekable();
        if !rules.lineage.claims || names.peek().is_none() {
            return Vec::new();
        }
        self.govern.trees.named(names, |node| may_name(node, context))
    }

    /// The last task of an agent that has none open, if it ended a moment ago.
    fn last_ended(&self, agent: &AgentName, context: &CallContext, seen: &mut TaskNodes) -> Option<OpenTask> {
        let tenant = (context.standing.proof != IdentityProof::None).then_some(&*context.caller.tenant);
        let node = self.govern.trees.last_ended(agent, tenant)?;
        Some(seen.note(self.open_task(&node), node))
    }

    /// Says that calls of agents seem to go round without being placed. It may be honest work, so nothing is refused.
    pub(crate) fn warn_of_loop(&self, agent: &AgentName, now: Timestamp) {
        if self.govern.trees.warns_now(now) {
            tracing::warn!(
                %agent,
                "possible loop: calls of this agent start new trees one after the other, and the trees are still open. The node \
                 cannot identify the calling agent. `chancery agents url {agent}` prints an address that identifies its calls"
            );
        }
    }

    /// A runner of this process calls: its task is known without a search.
    fn within(&self, parent: &TaskId, caller: AgentRef) -> Option<Traced> {
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
        Some(Traced { lineage, parent: Some(parent), others: Vec::new(), roots })
    }

    /// The first token of this node decides. Those of other nodes prove nothing here; they are for their
    /// issuers.
    fn presented(&self, tokens: &str, seen: &mut TaskNodes) -> PresentedToken {
        let Some(hops) = &self.hops else { return PresentedToken::Foreign };
        for token in tokens.split(',').map(str::trim) {
            match hops.read(token, self.clock.now()) {
                Ok(None) => {}
                Err(check) => return PresentedToken::Faulty(check),
                Ok(Some(named)) => return self.named_by_token(&named, seen),
            }
        }
        PresentedToken::Foreign
    }

    /// The task a good token names, if what is on record of it is what the token was made for. Nothing more is done for a task that
    /// was cancelled.
    fn named_by_token(&self, named: &TokenTask, seen: &mut TaskNodes) -> PresentedToken {
        let trees = &self.govern.trees;
        let ended = || trees.ended(&named.task).filter(|node| !node.is_canceled());
        let Some(node) = trees.get(&named.task).or_else(ended) else {
            return PresentedToken::Faulty(TokenCheck::ClosedParent);
        };
        let claims = node.token_claims();
        if TokenTask::of(&claims, &*self.seal) != *named {
            return PresentedToken::Faulty(TokenCheck::Parent);
        }
        let (is_open, task) = (node.is_open(), self.open_task(&node));
        let task = seen.note(task, node);
        PresentedToken::Good(Box::new(claims), Box::new(if is_open { Parent::Open(task) } else { Parent::Ended(task) }))
    }

    fn open_task(&self, node: &TreeNode) -> OpenTask {
        let link = node.link();
        let left = self.govern.ledger.remaining(&node.accounts, self.govern.now());
        // What it holds only because nobody knows what it needs is there for those it calls.
        let lendable = node.held().map_or_else(Amount::default, |held| held.lendable());
        OpenTask {
            id: node.record.id.clone(),
            root: node.kinship.root.clone(),
            holder: node.record.agent.clone(),
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
    fn caller_name(&self, context: &CallContext, agent: Option<&AgentName>) -> AgentRef {
        if let Some(agent) = agent {
            return agent.clone();
        }
        let name: &AgentName = &context.caller.name;
        match self.agents.load().get(name) {
            None => name.clone(),
            Some(_) => format!("caller:{name}").into(),
        }
    }
}

/// Whether a call in a tree may come from tasks of the agent that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnTasks {
    /// Only where no other agent works in the tree: the agent calls itself.
    IfAlone,
    Never,
}

/// The nodes of the tasks that were looked at for one call.
#[derive(Debug, Default)]
struct TaskNodes(HashMap<TaskId, Arc<TreeNode>>);

impl TaskNodes {
    fn note(&mut self, task: OpenTask, node: Arc<TreeNode>) -> OpenTask {
        self.0.insert(task.id.clone(), node);
        task
    }
}

/// The agent that calls: by its credentials, or by the address it calls at.
fn caller_agent(context: &CallContext) -> Result<Option<&AgentName>, LineageError> {
    match (&context.standing.agent, &context.via) {
        (Some(agent), Some(via)) if agent != via => Err(LineageError::Address),
        (agent, via) => Ok(agent.as_ref().or(via.as_ref())),
    }
}

/// The ids of a message by which an agent may say which task it works on. A message that goes on with a task of this node has a
/// place already.
fn names_in(send: &SendMessage) -> impl Iterator<Item = &str> {
    let message = &send.message;
    let context = message.context_id.as_ref().map(ContextId::as_str);
    let references = message.reference_task_ids.iter().map(TaskId::as_str);
    context.into_iter().chain(references).chain(send.client_task_id.as_deref())
}

/// Whether a caller may be put into the tree of a task because it knows a name of the task or of its trace.
fn may_name(node: &TreeNode, context: &CallContext) -> bool {
    context.standing.proof == IdentityProof::None || node.upwards().last().is_some_and(|root| root.record.owner == context.caller)
}

fn is_of_tenant(node: &TreeNode, context: &CallContext) -> bool {
    node.record.owner.tenant == context.caller.tenant
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

/// The trace that goes on with a message: the caller's, or that of the tree where the call brought none.
pub(crate) fn going_on(context: &CallContext, node: Option<&Arc<TreeNode>>) -> TraceId {
    match (context.span, node) {
        (None, Some(node)) => node.kinship.trace,
        _ => context.trace,
    }
}
