//! How an agent calls other agents for the task it works on: with the task's lineage and out of its budget.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chancery_protocol::{
    AgentName, CallContext, Caller, CallerStanding, Error, ErrorKind, Message, Reply, Request, SendMessage, Sent, Timestamp,
};
use chancery_rules::budget::Caps;
use chancery_rules::lineage::{AgentNaming, TaskContext};

use crate::govern::lineage_bytes::{LineageHeaders, SentLineage};
use crate::govern::node::TreeNode;
use crate::publish::Subscription;
use crate::service::{Answer, Chancery, ChanceryInner};
use crate::{Hop, TaskRecord, TokenTask};

/// A hop token is good for as long as its task may take, but no longer than this.
const LONGEST_MICROS: i64 = 3_600_000_000;

/// A token with no more time left than this is renewed on its next use, if the task may take longer.
const RENEWED_MICROS: i64 = 600_000_000;

/// Calls other agents for a task. The calls are placed below the task and spend its budget.
#[derive(Clone)]
pub struct Delegation(Arc<Inside>);

struct Inside {
    plane: Weak<ChanceryInner>,
    record: Arc<TaskRecord>,
    node: Option<Arc<TreeNode>>,
    deadline: Option<Timestamp>,
    granted: Caps,
    token: Mutex<Option<OwnToken>>,
    /// The tokens that the task came with.
    brought: Option<Arc<str>>,
    /// What came beside its trace.
    tracestate: Option<Arc<str>>,
}

/// The token that goes with a call, and until when it is good.
#[derive(Clone)]
struct OwnToken {
    text: Option<Arc<str>>,
    expires: Timestamp,
}

impl fmt::Debug for Delegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delegation").field("task", &self.0.record.id).finish_non_exhaustive()
    }
}

impl Delegation {
    pub(crate) fn new(
        plane: &Arc<ChanceryInner>,
        record: Arc<TaskRecord>,
        node: Option<Arc<TreeNode>>,
        deadline: Option<Timestamp>,
        granted: Caps,
        brought: Option<Arc<str>>,
        tracestate: Option<Arc<str>>,
    ) -> Self {
        Self(Arc::new(Inside {
            plane: Arc::downgrade(plane),
            record,
            node,
            deadline,
            granted,
            token: Mutex::default(),
            brought,
            tracestate,
        }))
    }

    /// Returns the place in the tree of a call that is made for this task.
    pub fn context(&self) -> Option<TaskContext> {
        let node = self.0.node.as_ref()?;
        Some(node.context().child(self.0.record.id.clone(), self.0.record.agent.clone()))
    }

    /// Returns the same place for a remote agent, with names of agents that other nodes can distinguish.
    pub fn written_context(&self, naming: AgentNaming) -> Option<TaskContext> {
        let context = self.context()?;
        let ids = self.0.plane.upgrade()?.agent_ids();
        Some(TaskContext {
            root_agent_id: ids.written(&context.root_agent_id, naming),
            visited_agents: ids.written_path(&context.visited_agents, naming),
            ..context
        })
    }

    /// Returns the most that the task and its remote subtasks may spend, where a cap exists.
    pub fn granted(&self) -> Caps {
        self.0.granted
    }

    /// Returns the hop tokens that came with the task, for an agent that makes network calls itself.
    pub fn brought_tokens(&self) -> Option<&Arc<str>> {
        self.0.brought.as_ref()
    }

    /// Returns the hop token to send with a call for this task. It is signed at the first use and renewed before it expires.
    pub fn hop_token(&self) -> Option<Arc<str>> {
        let plane = self.0.plane.upgrade()?;
        let now = plane.clock.now();
        let mut token = self.0.token.lock().unwrap_or_else(PoisonError::into_inner);
        let expires = self.expires(now);
        let ends = |token: &OwnToken| token.expires.micros().saturating_sub(now.micros()) <= RENEWED_MICROS;
        // One that ends with its task would not last longer if it were made anew.
        if token.as_ref().is_none_or(|token| ends(token) && token.expires < expires) {
            *token = Some(OwnToken { text: self.mint(&plane, now, expires).map(Arc::from), expires });
        }
        token.as_ref().and_then(|token| token.text.clone())
    }

    /// Returns the lineage headers of a call for this task, of at most `lineage.max_bytes`.
    ///
    /// They have this node's mark, the members that the caller sent, those for the tokens of other nodes, and this node's token.
    pub fn lineage_headers(&self, brought: Option<&Arc<str>>) -> LineageHeaders {
        let Some(plane) = self.0.plane.upgrade() else { return LineageHeaders::default() };
        let config = plane.govern.rules.load().lineage;
        let own = if config.traces { plane.marks.member(&self.0.record.id) } else { None };
        let foreign = self.0.brought.as_deref().map(|tokens| plane.foreign_tokens(tokens)).unwrap_or_default();
        let of_tokens: Vec<String> = foreign.into_iter().flat_map(|token| token.members).collect();
        LineageHeaders::fitted(config.max_bytes, own.as_deref(), self.hop_token(), |room| {
            plane.marks.tracestate(own.as_deref(), brought.map(|brought| &**brought), &of_tokens, room)
        })
    }

    /// Returns the `tracestate` of the [lineage headers](Self::lineage_headers).
    pub fn tracestate(&self, brought: Option<&Arc<str>>) -> Option<Arc<str>> {
        self.lineage_headers(brought).tracestate
    }

    /// Notes the lineage that was sent with a call for this task, for `chancery explain`.
    pub fn note_sent(&self, sent: SentLineage) {
        if let Some(node) = &self.0.node {
            node.set_sent(sent);
        }
    }

    /// Returns the span id to send with a call for this task. A call that returns with it is placed under the task.
    pub fn span(&self) -> Option<u64> {
        let plane = self.0.plane.upgrade()?;
        let span = plane.marks.span(&self.0.record.id);
        if let Some(node) = &self.0.node {
            plane.govern.trees.name_span(node, span);
        }
        Some(span)
    }

    fn expires(&self, now: Timestamp) -> Timestamp {
        let latest = Timestamp::from_micros(now.micros().saturating_add(LONGEST_MICROS));
        self.0.deadline.map_or(latest, |deadline| deadline.min(latest))
    }

    /// The members of the nodes before this one, for agents that forward nothing but the token.
    fn members(&self, plane: &ChanceryInner) -> Vec<String> {
        let foreign = self.0.brought.as_deref().map(|tokens| plane.foreign_tokens(tokens)).unwrap_or_default();
        let of_tokens: Vec<String> = foreign.into_iter().flat_map(|token| token.members).collect();
        plane.marks.node_members(self.0.tracestate.as_deref(), &of_tokens)
    }

    fn mint(&self, plane: &ChanceryInner, issued: Timestamp, expires: Timestamp) -> Option<String> {
        let node = self.0.node.as_ref()?;
        let hop = Hop {
            task: TokenTask::of(&node.token_claims(), &*plane.seal),
            members: self.members(plane),
            budget: self.0.granted,
            issued,
            expires,
        };
        plane.hops.as_ref()?.mint(&hop)
    }

    /// Sends a message to another agent of this node and waits for its answer.
    pub async fn call(&self, agent: &str, message: Message) -> Result<Sent, Error> {
        let request = Request::SendMessage(SendMessage::new(message));
        match self.chancery()?.call(&self.call_context(agent), request).await? {
            Answer::Reply(Reply::Sent(sent)) => Ok(sent),
            _ => Err(Error::new(ErrorKind::Internal, "a message was answered with something else")),
        }
    }

    /// Sends a message to another agent of this node and watches it work.
    pub async fn stream(&self, agent: &str, message: Message) -> Result<Subscription, Error> {
        let request = Request::StreamMessage(SendMessage::new(message));
        match self.chancery()?.call(&self.call_context(agent), request).await? {
            Answer::Stream(subscription) => Ok(*subscription),
            _ => Err(Error::new(ErrorKind::Internal, "a stream was answered with something else")),
        }
    }

    /// Returns the control plane of the node that runs the task, unless the node has ended.
    pub fn chancery(&self) -> Result<Chancery, Error> {
        let gone = || Error::new(ErrorKind::Unavailable, "the node is shutting down");
        self.0.plane.upgrade().map(Chancery).ok_or_else(gone)
    }

    /// Makes the context of a call to another agent of this node, for this task. [`Chancery::call`] takes it.
    pub fn call_context(&self, agent: &str) -> CallContext {
        let record = &self.0.record;
        let caller = Caller { tenant: Arc::clone(&record.owner.tenant), name: format!("agent:{}", record.agent).into() };
        let trace = self.0.node.as_ref().map_or(chancery_protocol::TraceId(0), |node| node.kinship.trace);
        CallContext {
            standing: Arc::new(CallerStanding { agent: Some(record.agent.clone()), ..CallerStanding::default() }),
            agent: Some(AgentName::from(agent)),
            within: Some(record.id.clone()),
            ..CallContext::new(caller, trace)
        }
    }
}
