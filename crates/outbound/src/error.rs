//! The reasons for which a call to another server failed.

use chancery_protocol::{ErrorKind, Version};
use chancery_wire::errors::json_rpc_code;
use http::StatusCode;

use crate::client::{ClientError, Transport};
use crate::guard::{Guard, GuardError};

/// The first characters of a body that is shown in an error.
const EXCERPT: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{url:?} is not {expected}")]
    BadUrl { url: String, expected: &'static str },
    /// The call cannot be made as it was asked for; the reason says what to change.
    #[error("{reason}")]
    NotPossible { reason: String },
    /// What the caller wanted to show of itself cannot be used.
    #[error("{reason}")]
    Credentials { reason: String },
    /// The server did not answer, or not to the end, or not in time.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    /// A rule about addresses says no, before anything was sent.
    #[error("{url} is not called: {reason}")]
    Blocked { url: String, reason: String },
    /// There is no card at any place where agents keep them.
    #[error("no card was found for {url}{}; a card is at /.well-known/agent-card.json or /.well-known/agent.json", last(*status))]
    NoCard { url: String, status: Option<StatusCode> },
    /// The other side understood and said no. The code is the one of its protocol.
    #[error("{message} ({code})")]
    Refused { code: i64, message: String },
    /// The other side does not let this caller in: it does not know who it is (401), or knows and says no (403).
    #[error("{message} ({status})")]
    TurnedAway {
        status: u16,
        message: String,
        /// Whether anything was shown that could have been accepted.
        shown: bool,
    },
    /// The other side answered something this protocol has no place for.
    #[error("{url} gave no answer this client understands: {reason}")]
    NotUnderstood { url: String, reason: String },
}

impl CallError {
    pub(crate) fn not_understood(url: &str, reason: impl Into<String>) -> Self {
        Self::NotUnderstood { url: url.to_owned(), reason: reason.into() }
    }

    /// An HTTP status with a body that says nothing in the protocol's own words.
    pub(crate) fn status(url: &str, status: StatusCode, body: &str) -> Self {
        let excerpt: String = body.trim().chars().take(EXCERPT).collect();
        Self::not_understood(url, format!("HTTP status {status} {excerpt}").trim_end())
    }

    /// The fault of the connection to a server, in words for the user of a command line.
    pub(crate) fn of_guard(url: &str, fault: &GuardError, guard: &Guard) -> Self {
        let asked = if guard.was_asked_for_certificate() { "; it asks for a certificate, and none was shown" } else { "" };
        let reason = match fault {
            GuardError::Blocked(blocked) => return Self::Blocked { url: url.to_owned(), reason: blocked.to_string() },
            GuardError::Redirect(status) => {
                let reason = format!("it redirects ({status}), and redirects are not followed; use the address it leads to");
                return Self::not_understood(url, reason);
            }
            GuardError::TooBig(_) | GuardError::Encoded(_) => return Self::not_understood(url, fault.to_string()),
            GuardError::Request(reason) => return Self::NotPossible { reason: format!("{url}: {reason}") },
            GuardError::Unreachable(why) => why.clone(),
            GuardError::TimedOut(stage) => format!("it did not answer in time ({stage})"),
            other => other.to_string(),
        };
        Self::Unreachable { url: url.to_owned(), reason: format!("{reason}{asked}") }
    }

    /// What a call to an agent came to.
    pub fn of_client(url: &str, error: &ClientError, guard: &Guard, shown: bool) -> Self {
        let url = || url.to_owned();
        let asked = if guard.was_asked_for_certificate() { "; it asks for a certificate, and none was shown" } else { "" };
        match error {
            ClientError::Transport(Transport::Guard(fault)) => Self::of_guard(&url(), fault, guard),
            ClientError::Transport(Transport::OutOfTime { .. }) => {
                Self::Unreachable { url: url(), reason: "it did not answer in time; wait longer with --timeout".to_owned() }
            }
            ClientError::Transport(fault) => Self::Unreachable { url: url(), reason: format!("{fault}{asked}") },
            ClientError::NotUnderstood(reason) => Self::NotUnderstood { url: url(), reason: reason.to_string() },
            ClientError::Busy { limit, .. } => Self::NotPossible { reason: format!("too many calls at once ({limit})") },
            ClientError::NotAsked(error) => Self::NotPossible { reason: error.to_string() },
            ClientError::Refused(error) => {
                let message = error.to_string();
                match error.kind {
                    ErrorKind::Unauthenticated => Self::TurnedAway { status: 401, message, shown },
                    ErrorKind::PermissionDenied => Self::TurnedAway { status: 403, message, shown },
                    kind => Self::Refused { code: json_rpc_code(kind, Version::V1_0).into(), message },
                }
            }
        }
    }
}

fn last(status: Option<StatusCode>) -> String {
    status.map(|status| format!(" (the last place asked answered {status})")).unwrap_or_default()
}
