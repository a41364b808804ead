//! Why a call to somebody else did not come back with what was asked for.

/// The first characters of a body that is shown in an error.
const EXCERPT: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{url:?} is not an http or https URL")]
    BadUrl { url: String },
    #[error("this client cannot be set up: {source}")]
    Setup { source: reqwest::Error },
    /// What the caller wanted to show of itself cannot be used.
    #[error("{reason}")]
    Credentials { reason: String },
    /// Nobody answered, or not to the end, or not in time.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
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
    pub(crate) fn unreachable(url: &reqwest::Url, error: &reqwest::Error) -> Self {
        let reason = match error {
            error if error.is_timeout() => "it did not answer in time".to_owned(),
            error => innermost(error),
        };
        Self::Unreachable { url: url.to_string(), reason }
    }

    pub(crate) fn not_understood(url: &reqwest::Url, reason: impl Into<String>) -> Self {
        Self::NotUnderstood { url: url.to_string(), reason: reason.into() }
    }

    /// An HTTP status with a body that says nothing in the protocol's own words.
    pub(crate) fn status(url: &reqwest::Url, status: reqwest::StatusCode, body: &str) -> Self {
        let excerpt: String = body.trim().chars().take(EXCERPT).collect();
        Self::not_understood(url, format!("HTTP status {status} {excerpt}").trim_end())
    }
}

/// The outer ones only say that something was wrong.
fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
