//! How an agent calls other agents for the task it works on: with the task's lineage and out of its budget.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use chancery_protocol::{
    AgentName, Binding, CallContext, Caller, Error, ErrorKind, Message, Reply, Request, SendConfiguration, SendMessage, Sent,
    Standing, Timestamp, Version,
};
use chancery_rules::budget::Caps;
use chancery_rules::lineage::{TaskContext, TokenClaims};

use crate::govern::trees::Node;
use crate::publish::Subscription;
use crate::service::{Answer, Chancery, Inner};
use crate::{Hop, TaskRecord};

/// A hop token is good for as long as its task may take, but no longer than this.
const LONGEST_MICROS: i64 = 3_600_000_000;

/// One that has no more time left than this is made anew for whoever asks for it, if the task may take longer.
const RENEWED_MICROS: i64 = 600_000_000;

/// Carries the lineage and the budget of a task into the calls that are made for it.
#[derive(Clone)]
pub struct Delegation(Arc<Inside>);

struct Inside {
    plane: Weak<Inner>,
    record: Arc<TaskRecord>,
    node: Option<Arc<Node>>,
    deadline: Option<Timestamp>,
    granted: Caps,
    tokens: Mutex<Option<Tokens>>,
    /// The tokens that the task came with. Those of other nodes are theirs, and go on with it.
    brought: Option<Arc<str>>,
}

/// What goes with a call, and until when it is good.
#[derive(Clone)]
struct Tokens {
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
        plane: &Arc<Inner>,
        record: Arc<TaskRecord>,
        node: Option<Arc<Node>>,
        deadline: Option<Timestamp>,
        granted: Caps,
        brought: Option<Arc<str>>,
    ) -> Self {
        Self(Arc::new(Inside {
            plane: Arc::downgrade(plane),
            record,
            node,
            deadline,
            granted,
            tokens: Mutex::default(),
            brought,
        }))
    }

    /// Where a call made for this task stands.
    pub fn context(&self) -> Option<TaskContext> {
        let node = self.0.node.as_ref()?;
        Some(node.context().child(self.0.record.id.clone(), self.0.record.agent.clone()))
    }

    /// What the task may spend, its own work and all that is done for it elsewhere, where there is a cap on it.
    pub fn granted(&self) -> Caps {
        self.0.granted
    }

    /// The tokens to send with a call for this task: ours, signed when first asked for and again before it ends, and those of other
    /// nodes that came with it.
    pub fn hop_token(&self) -> Option<Arc<str>> {
        let plane = self.0.plane.upgrade()?;
        let now = plane.clock.now();
        let mut tokens = self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let expires = self.expires(now);
        let ends = |tokens: &Tokens| tokens.expires.micros().saturating_sub(now.micros()) <= RENEWED_MICROS;
        // One that ends with its task would not last longer if it were made anew.
        if tokens.as_ref().is_none_or(|tokens| ends(tokens) && tokens.expires < expires) {
            *tokens = Some(Tokens { text: self.tokens(&plane, now, expires), expires });
        }
        tokens.as_ref().and_then(|tokens| tokens.text.clone())
    }

    fn expires(&self, now: Timestamp) -> Timestamp {
        let latest = Timestamp::from_micros(now.micros().saturating_add(LONGEST_MICROS));
        self.0.deadline.map_or(latest, |deadline| deadline.min(latest))
    }

    fn tokens(&self, plane: &Inner, now: Timestamp, expires: Timestamp) -> Option<Arc<str>> {
        let brought = self.0.brought.as_deref().and_then(|tokens| plane.foreign_tokens(tokens));
        match (self.mint(plane, now, expires), brought) {
            (Some(own), Some(brought)) => Some(format!("{own},{brought}").into()),
            (own, brought) => own.or(brought).map(Arc::from),
        }
    }

    fn mint(&self, plane: &Inner, issued: Timestamp, expires: Timestamp) -> Option<String> {
        let Inside { record, node, .. } = &*self.0;
        let node = node.as_ref()?;
        let context = self.context()?;
        let hop = Hop {
            claims: TokenClaims {
                tenant: Arc::clone(&record.owner.tenant),
                root_task: node.kinship.root.clone(),
                parent_task: record.id.clone(),
                trace_id: node.kinship.trace,
                depth: node.kinship.depth,
                audience: record.agent.clone(),
            },
            path: context.visited_agents,
            budget: self.0.granted,
            issued,
            expires,
        };
        plane.hops.as_ref()?.mint(&hop)
    }

    /// Sends a message to another agent of this node and waits for its answer.
    pub async fn call(&self, agent: &str, message: Message) -> Result<Sent, Error> {
        let request = Request::SendMessage(send(message));
        match self.plane()?.call(&self.call_context(agent), request).await? {
            Answer::Reply(Reply::Sent(sent)) => Ok(sent),
            _ => Err(Error::new(ErrorKind::Internal, "a message was answered with something else")),
        }
    }

    /// Sends a message to another agent of this node and watches it work.
    pub async fn stream(&self, agent: &str, message: Message) -> Result<Subscription, Error> {
        let request = Request::StreamMessage(send(message));
        match self.plane()?.call(&self.call_context(agent), request).await? {
            Answer::Stream(subscription) => Ok(*subscription),
            Answer::Reply(_) | Answer::Late(_) => {
                Err(Error::new(ErrorKind::Internal, "a stream was answered with something else"))
            }
        }
    }

    fn plane(&self) -> Result<Chancery, Error> {
        let gone = || Error::new(ErrorKind::Unavailable, "the node is shutting down");
        self.0.plane.upgrade().map(Chancery).ok_or_else(gone)
    }

    fn call_context(&self, agent: &str) -> CallContext {
        let record = &self.0.record;
        CallContext {
            version: Version::V1_0,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller: Caller { tenant: Arc::clone(&record.owner.tenant), name: format!("agent:{}", record.agent).into() },
            standing: Arc::new(Standing { agent: Some(record.agent.clone()), ..Standing::default() }),
            agent: Some(AgentName::from(agent)),
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace: self.0.node.as_ref().map_or(chancery_protocol::TraceId(0), |node| node.kinship.trace),
            tracestate: None,
            hop_token: None,
            within: Some(record.id.clone()),
        }
    }
}

fn send(message: Message) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}
