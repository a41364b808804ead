//! A call as one node forwards it to another through the store, and its answer. Both are sealed: a row that no node wrote
//! speaks for no caller.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_protocol::objects::from_json;
use chancery_protocol::{
    AgentId, AgentName, Binding, CallContext, Caller, CallerStanding, Error, ErrorKind, FieldViolation, IdentityProof, MayCall,
    PeerConnection, SendMessage, TaskId, TraceId, Version,
};
use serde::{Deserialize, Serialize};

use crate::{CallAnswer, Cascaded, ForwardedCallNumber, NodeNumber, ReplyMode, Seal};

const CALL: &str = "forwarded-call";
const ANSWER: &str = "forwarded-answer";

/// So many names of facts in errors are kept; facts with other names are left out.
const MOST_FACT_NAMES: usize = 512;

/// The request to another node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForwardedOperation {
    Message {
        context: Box<ForwardedContext>,
        send: Box<SendMessage>,
        reply: ForwardedReplyMode,
    },
    /// Cancel the task and all below it. The record names who requested it.
    Cancel {
        by: Arc<str>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct SealedCall<T> {
    task: TaskId,
    to: i64,
    call: T,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum ForwardedReplyMode {
    Blocking,
    Immediate,
    Stream,
}

/// All that is known of a call beside its request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ForwardedContext {
    version: Version,
    wrapped: bool,
    binding: String,
    tenant: Arc<str>,
    caller: Arc<str>,
    proof: u8,
    agent_id: Option<AgentId>,
    is_agent: Option<AgentName>,
    /// Nothing for everything.
    may_call: Option<Vec<String>>,
    unlisted: bool,
    agent: Option<AgentName>,
    extensions: Vec<String>,
    idempotency_key: Option<Arc<str>>,
    trace: TraceId,
    span: Option<u64>,
    tracestate: Option<Arc<str>>,
    hop_token: Option<Arc<str>>,
    within: Option<TaskId>,
    via: Option<AgentName>,
    network: Option<std::net::IpAddr>,
}

/// What the other node answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForwardedOutcome {
    /// The message is this entry of the task.
    Taken(u64),
    Cancelled(Vec<Cascaded>),
    Refused(ForwardedError),
}

#[derive(Debug, Serialize, Deserialize)]
struct SealedOutcome<T> {
    number: i64,
    outcome: T,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ForwardedError {
    reason: String,
    message: String,
    violations: Vec<(String, String)>,
    facts: Vec<(String, String)>,
    retry_after_ms: Option<u64>,
}

const BINDINGS: [Binding; 4] = [Binding::JsonRpc, Binding::Rest, Binding::Grpc, Binding::Swp];
const PROOFS: [IdentityProof; 5] =
    [IdentityProof::None, IdentityProof::ApiKey, IdentityProof::Token, IdentityProof::Certificate, IdentityProof::Signature];

impl ForwardedOperation {
    pub(super) fn sealed(&self, seal: &dyn Seal, task: &TaskId, to: NodeNumber) -> Result<Vec<u8>, serde_json::Error> {
        let content = serde_json::to_vec(&SealedCall { task: task.clone(), to: to.0, call: self })?;
        Ok(seal.seal(CALL, &content).into_bytes())
    }

    /// Nothing for what no node of this cluster wrote for this task and this node.
    pub(super) fn opened(seal: &dyn Seal, body: &[u8], task: &TaskId, to: NodeNumber) -> Option<Self> {
        let content = seal.open(CALL, std::str::from_utf8(body).ok()?)?;
        let sealed: SealedCall<Self> = from_json(std::str::from_utf8(&content).ok()?).ok()?;
        (sealed.task == *task && sealed.to == to.0).then_some(sealed.call)
    }
}

impl ForwardedOutcome {
    pub(super) fn sealed(&self, seal: &dyn Seal, number: ForwardedCallNumber) -> CallAnswer {
        // Its members are plain: writing them cannot fail.
        let content = serde_json::to_vec(&SealedOutcome { number: number.0, outcome: self }).unwrap_or_default();
        CallAnswer { number, body: seal.seal(ANSWER, &content).into_bytes() }
    }

    pub(super) fn opened(seal: &dyn Seal, body: &[u8], number: ForwardedCallNumber) -> Option<Self> {
        let content = seal.open(ANSWER, std::str::from_utf8(body).ok()?)?;
        let sealed: SealedOutcome<Self> = from_json(std::str::from_utf8(&content).ok()?).ok()?;
        (sealed.number == number.0).then_some(sealed.outcome)
    }
}

impl From<ReplyMode> for ForwardedReplyMode {
    fn from(mode: ReplyMode) -> Self {
        match mode {
            ReplyMode::Blocking => Self::Blocking,
            ReplyMode::Immediate => Self::Immediate,
            ReplyMode::Stream => Self::Stream,
        }
    }
}

impl From<ForwardedReplyMode> for ReplyMode {
    fn from(mode: ForwardedReplyMode) -> Self {
        match mode {
            ForwardedReplyMode::Blocking => Self::Blocking,
            ForwardedReplyMode::Immediate => Self::Immediate,
            ForwardedReplyMode::Stream => Self::Stream,
        }
    }
}

impl ForwardedContext {
    pub(super) fn of(context: &CallContext) -> Self {
        let CallContext { version, wrapped, binding, caller, standing, agent, extensions, idempotency_key, .. } = context;
        let may_call = match &standing.may_call {
            MayCall::Everything => None,
            MayCall::Only(grants) => Some(grants.iter().map(ToString::to_string).collect()),
        };
        Self {
            version: *version,
            wrapped: *wrapped,
            binding: binding.as_str().to_owned(),
            tenant: Arc::clone(&caller.tenant),
            caller: Arc::clone(&caller.name),
            proof: PROOFS.iter().position(|proof| *proof == standing.proof).and_then(|at| u8::try_from(at).ok()).unwrap_or(0),
            agent_id: standing.agent_id.clone(),
            is_agent: standing.agent.clone(),
            may_call,
            unlisted: standing.unlisted,
            agent: agent.clone(),
            extensions: extensions.clone(),
            idempotency_key: idempotency_key.clone(),
            trace: context.trace,
            span: context.span,
            tracestate: context.tracestate.clone(),
            hop_token: context.hop_token.clone(),
            within: context.within.clone(),
            via: context.via.clone(),
            network: context.unlisted_at.map(|connection| connection.network),
        }
    }

    /// Nothing where a word of it is unknown here.
    pub(super) fn into_context(self) -> Option<CallContext> {
        let binding = BINDINGS.into_iter().find(|binding| binding.as_str() == self.binding)?;
        let may_call = match self.may_call {
            None => MayCall::Everything,
            Some(grants) => MayCall::Only(grants.iter().map(|grant| grant.parse()).collect::<Result<_, _>>().ok()?),
        };
        let standing = CallerStanding {
            proof: *PROOFS.get(usize::from(self.proof))?,
            agent_id: self.agent_id,
            agent: self.is_agent,
            may_call,
            unlisted: self.unlisted,
        };
        Some(CallContext {
            version: self.version,
            wrapped: self.wrapped,
            binding,
            standing: Arc::new(standing),
            agent: self.agent,
            extensions: self.extensions,
            idempotency_key: self.idempotency_key,
            span: self.span,
            tracestate: self.tracestate,
            hop_token: self.hop_token,
            within: self.within,
            via: self.via,
            // Numbers of connections are each node's own; 0 is none of them.
            unlisted_at: self.network.map(|network| PeerConnection { network, number: 0 }),
            ..CallContext::new(Caller { tenant: self.tenant, name: self.caller }, self.trace)
        })
    }
}

impl From<&Error> for ForwardedError {
    fn from(error: &Error) -> Self {
        let violation = |violation: &FieldViolation| (violation.field.clone(), violation.description.clone());
        Self {
            reason: error.kind.reason().to_owned(),
            message: error.message.clone().into_owned(),
            violations: error.violations.iter().map(violation).collect(),
            facts: error.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            retry_after_ms: error.retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl From<ForwardedError> for Error {
    fn from(error: ForwardedError) -> Self {
        let kind = ErrorKind::ALL.into_iter().rfind(|kind| kind.reason() == error.reason).unwrap_or(ErrorKind::Internal);
        let violations = error.violations.into_iter().map(|(field, description)| FieldViolation { field, description });
        let facts = error.facts.into_iter().filter_map(|(name, value)| Some((known_name(&name)?, value)));
        Self {
            violations: violations.collect(),
            facts: facts.collect(),
            retry_after: error.retry_after_ms.map(Duration::from_millis),
            ..Self::new(kind, error.message)
        }
    }
}

/// The name of a fact as text that lives as long as the process: there are few, and each is kept once.
fn known_name(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(*known);
    }
    if names.len() >= MOST_FACT_NAMES {
        return None;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{CallGrant, Message, Role};

    /// Appends the purpose and a key, for want of a real one.
    #[derive(Debug)]
    struct KeySeal(u8);

    impl Seal for KeySeal {
        fn seal(&self, purpose: &str, content: &[u8]) -> String {
            format!("{}.{purpose}.{}", String::from_utf8_lossy(content), self.0)
        }

        fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
            Some(token.strip_suffix(&format!(".{purpose}.{}", self.0))?.as_bytes().to_vec())
        }

        fn mark(&self, _: &str, _: &[u8]) -> [u8; 32] {
            [self.0; 32]
        }

        fn digest(&self, _: &[u8]) -> [u8; 32] {
            [0; 32]
        }
    }

    fn context() -> CallContext {
        let standing = CallerStanding {
            proof: IdentityProof::Certificate,
            agent_id: Some(AgentId::from_digest(&[7; 32])),
            agent: Some("planner".into()),
            may_call: MayCall::Only(vec!["echo/say".parse::<CallGrant>().unwrap(), "sum".parse().unwrap()]),
            unlisted: true,
        };
        CallContext {
            version: Version::V0_3,
            wrapped: true,
            binding: Binding::Grpc,
            standing: Arc::new(standing),
            agent: Some("echo".into()),
            extensions: vec!["https://example.com/x".into()],
            idempotency_key: Some("key".into()),
            span: Some(9),
            tracestate: Some("a=b".into()),
            hop_token: Some("token".into()),
            within: Some("above".into()),
            via: Some("sum".into()),
            unlisted_at: Some(PeerConnection::new("192.0.2.7".parse().unwrap(), 4)),
            ..CallContext::new(Caller::new("acme", "ada"), TraceId(5))
        }
    }

    fn operation() -> ForwardedOperation {
        let mut message = Message::text(Role::User, "m", "text with \"quotes\" and \u{1}");
        assert!(message.unknown.insert("extra", serde_json::from_str("{\"deep\": [1.50]}").unwrap()));
        message.task_id = Some("t".into());
        let send = SendMessage::new(message);
        let context = Box::new(ForwardedContext::of(&context()));
        ForwardedOperation::Message { context, send: Box::new(send), reply: ForwardedReplyMode::Stream }
    }

    #[test]
    fn the_owner_sees_the_call_as_its_caller_made_it() {
        let (seal, task, to) = (KeySeal(1), TaskId::from("t"), NodeNumber(3));
        let body = operation().sealed(&seal, &task, to).unwrap();
        let Some(ForwardedOperation::Message { context: read, send, reply }) =
            ForwardedOperation::opened(&seal, &body, &task, to)
        else {
            panic!("not opened");
        };
        let read = read.into_context().unwrap();
        let network = context().unlisted_at.map(|connection| PeerConnection { number: 0, ..connection });
        assert_eq!(format!("{read:?}"), format!("{:?}", CallContext { unlisted_at: network, ..context() }));
        let ForwardedOperation::Message { send: before, .. } = operation() else { unreachable!() };
        assert_eq!(format!("{send:?}"), format!("{before:?}"));
        assert!(matches!(ReplyMode::from(reply), ReplyMode::Stream));
    }

    #[test]
    fn a_row_that_was_made_up_moved_or_kept_for_later_speaks_for_nobody() {
        let (seal, task, to) = (KeySeal(1), TaskId::from("t"), NodeNumber(3));
        let body = operation().sealed(&seal, &task, to).unwrap();
        let opened = |seal: &KeySeal, body: &[u8], task: &str, to| {
            ForwardedOperation::opened(seal, body, &TaskId::from(task), NodeNumber(to)).is_some()
        };
        assert!(opened(&seal, &body, "t", 3));
        assert!(!opened(&KeySeal(2), &body, "t", 3), "another key");
        assert!(!opened(&seal, &body, "u", 3), "another task");
        assert!(!opened(&seal, &body, "t", 4), "another node, or this one after a restart");
        assert!(!opened(&seal, &[0xff], "t", 3) && !opened(&seal, b"{}", "t", 3));
        let answer = ForwardedOutcome::Taken(7).sealed(&seal, ForwardedCallNumber(1));
        assert!(!opened(&seal, &answer.body, "t", 3), "an answer is no call");
        assert!(matches!(
            ForwardedOutcome::opened(&seal, &answer.body, ForwardedCallNumber(1)),
            Some(ForwardedOutcome::Taken(7))
        ));
        assert!(ForwardedOutcome::opened(&seal, &answer.body, ForwardedCallNumber(2)).is_none(), "of another call");
    }

    #[test]
    fn a_refusal_reaches_the_caller_as_the_owner_said_it() {
        let refused =
            Error { retry_after: Some(Duration::from_millis(1_500)), ..Error::invalid_field("message.contextId", "no") };
        let refused = refused.with_fact("limit", 7).with_fact("a_name_of_no_other_fact", "x");
        let outcome = ForwardedOutcome::Refused(ForwardedError::from(&refused));
        let answer = outcome.sealed(&KeySeal(1), ForwardedCallNumber(1));
        let Some(ForwardedOutcome::Refused(read)) = ForwardedOutcome::opened(&KeySeal(1), &answer.body, ForwardedCallNumber(1))
        else {
            panic!("not opened");
        };
        assert_eq!(Error::from(read), refused);
        for kind in ErrorKind::ALL {
            let read = Error::from(ForwardedError::from(&Error::new(kind, "m")));
            assert_eq!(read.kind.reason(), kind.reason());
        }
    }
}
