//! Why a call to an agent has no answer, and whether the agent can have seen it.

use std::time::Duration;

use chancery_protocol::{Error, ErrorKind};
use chancery_wire::tolerant::Unreadable;

use crate::guard::{ConnectStage, GuardError};

/// Whether the agent can have seen the call. Only a call that it cannot have seen may be sent again without a
/// search for its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WasSent {
    /// The agent has not received the call.
    No,
    /// The agent may have received the call.
    Maybe,
}

/// How the way to the agent failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Transport {
    /// Before any byte of an answer, or because of its frame.
    #[error(transparent)]
    Guard(GuardError),
    /// The same below gRPC, once the call was on its way.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The agent did not answer within the time the call had.
    #[error("out of time: the answer")]
    OutOfTime { sent: WasSent },
    /// A stream or an answer that began and did not come to its end.
    #[error("the stream was cut: {0}")]
    Cut(String),
}

/// Why an answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotUnderstood {
    /// What could not be read.
    pub reason: String,
    /// Where in the JSON it is, and the shape of the JSON, if it is JSON at all.
    pub at: Option<Box<Unreadable>>,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The agent was not reached, or lost.
    #[error("{0}")]
    Transport(Transport),
    /// The agent answered something that is no answer. The reason names members and lengths, and quotes nothing.
    #[error("the agent's answer was not understood: {0}")]
    NotUnderstood(NotUnderstood),
    /// The agent's own error.
    #[error("the agent refused: {0}")]
    Refused(Error),
    /// One of our own limits on calls to this agent.
    #[error("too many calls to this agent: {limit}")]
    Busy { limit: &'static str, retry_after: Option<Duration> },
    /// The agent's version or binding has no words for the request, or the request is not well formed.
    #[error("not asked: {0}")]
    NotAsked(Error),
}

impl ClientError {
    /// Makes the error of an unreadable answer.
    pub fn not_understood(reason: impl Into<String>) -> Self {
        Self::NotUnderstood(NotUnderstood { reason: reason.into(), at: None })
    }

    /// Returns whether the agent may have received the message.
    pub fn sent(&self) -> WasSent {
        match self {
            Self::Transport(Transport::Guard(fault)) => guard_sent(fault),
            Self::Transport(Transport::OutOfTime { sent }) => *sent,
            Self::Transport(Transport::Connection(_) | Transport::Cut(_)) => WasSent::Maybe,
            Self::NotUnderstood(_) | Self::Refused(_) => WasSent::Maybe,
            Self::Busy { .. } | Self::NotAsked(_) => WasSent::No,
        }
    }

    /// A stream that did not come to its end: what it was about may well go on.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Transport(Transport::Cut(_)))
    }

    /// What kept the call from being made is this node's: its limits, or the words it has for the agent's version.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::NotAsked(_))
    }

    /// Whether a call for a stream was rejected because the agent does not stream, so that the same call may be made for one answer.
    pub fn is_no_streaming(&self) -> bool {
        let Self::Refused(error) = self else { return false };
        match error.kind {
            ErrorKind::MethodNotFound => true,
            // What is not supported may be another thing about the message; then its words say which.
            ErrorKind::UnsupportedOperation if is_generic(&error.message) => true,
            // The code of an internal error comes with any HTTP status, which may have given it another kind.
            _ => {
                let words = error.message.to_ascii_lowercase();
                words.contains("stream")
                    && ["support", "implemented", "available", "enabled"].iter().any(|word| words.contains(word))
            }
        }
    }

    /// How long the agent, or our own limit on it, asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(error) => error.retry_after,
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether there is no time left for anything else.
    pub(super) fn is_late(&self) -> bool {
        matches!(self, Self::Transport(Transport::OutOfTime { .. }))
    }

    /// Whether trying the same again at once may go better.
    pub(super) fn is_passing(&self) -> bool {
        let Self::Transport(Transport::Guard(fault)) = self else { return false };
        matches!(
            fault,
            GuardError::Unresolved { .. }
                | GuardError::Unreachable(_)
                | GuardError::Proxy(_)
                | GuardError::TimedOut(ConnectStage::Connect)
        )
    }

    /// The error for the caller. It names neither addresses nor internals of the node.
    pub fn public(&self) -> Error {
        match self {
            Self::Transport(Transport::Guard(fault)) => Error::new(ErrorKind::Unavailable, fault.public()),
            Self::Transport(Transport::OutOfTime { .. }) => {
                Error::new(ErrorKind::DeadlineExceeded, "the agent did not answer in time")
            }
            Self::Transport(Transport::Connection(_)) => Error::new(ErrorKind::Unavailable, "the agent could not be reached"),
            Self::Transport(Transport::Cut(_)) => Error::new(ErrorKind::Unavailable, "the connection to the agent was lost"),
            Self::NotUnderstood(reason) => {
                Error::new(ErrorKind::InvalidAgentResponse, format!("the agent's answer was not understood: {reason}"))
            }
            Self::Refused(error) | Self::NotAsked(error) => error.clone(),
            Self::Busy { retry_after, .. } => {
                Error { retry_after: *retry_after, ..Error::new(ErrorKind::RateLimited, "too many calls to this agent") }
            }
        }
    }
}

/// Whether the words of an unsupported operation are those that come with the code, and name nothing in particular.
fn is_generic(words: &str) -> bool {
    let words = words.trim().trim_end_matches('.').to_ascii_lowercase();
    ["", "this operation is not supported", "operation is not supported", "operation not supported", "unsupported operation"]
        .contains(&words.as_str())
}

/// Everything up to the first byte of the request is before the agent could see it.
fn guard_sent(fault: &GuardError) -> WasSent {
    match fault {
        GuardError::Blocked(_)
        | GuardError::Unresolved { .. }
        | GuardError::Unreachable(_)
        | GuardError::Proxy(_)
        | GuardError::Tls(_)
        | GuardError::TimedOut(ConnectStage::Connect | ConnectStage::Tls)
        | GuardError::Request(_) => WasSent::No,
        GuardError::TimedOut(ConnectStage::Exchange | ConnectStage::Idle)
        | GuardError::Protocol(_)
        | GuardError::Redirect(_)
        | GuardError::TooBig(_)
        | GuardError::Encoded(_)
        | GuardError::BrokeOff(_) => WasSent::Maybe,
    }
}

impl From<GuardError> for ClientError {
    fn from(fault: GuardError) -> Self {
        match fault {
            GuardError::TimedOut(ConnectStage::Exchange) => Self::Transport(Transport::OutOfTime { sent: WasSent::Maybe }),
            GuardError::TooBig(_) | GuardError::Encoded(_) | GuardError::Redirect(_) => Self::not_understood(fault.to_string()),
            GuardError::BrokeOff(_) | GuardError::TimedOut(ConnectStage::Idle) => {
                Self::Transport(Transport::Cut(fault.to_string()))
            }
            fault => Self::Transport(Transport::Guard(fault)),
        }
    }
}
