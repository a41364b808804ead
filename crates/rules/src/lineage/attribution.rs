//! How sure the place of a call is, and why a call has none.

use std::fmt;

use chancery_protocol::ErrorKind;

/// How sure the place of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// By a token of ours.
    Verified,
    /// By this node's own mark in the trace of the call.
    Traced,
    /// The only task it can come from: a bound, not a fact.
    Inferred,
    /// One of several, bound by all of them.
    Ambiguous,
    /// What the call says of itself made it deeper, or charges it to a tree.
    Claimed,
    /// Made for a task that ended a moment ago.
    Late,
    /// It comes from no task here.
    Root,
}

impl Attribution {
    /// Every way to place a call.
    pub const ALL: [Self; 7] =
        [Self::Verified, Self::Traced, Self::Inferred, Self::Ambiguous, Self::Claimed, Self::Late, Self::Root];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Traced => "traced",
            Self::Inferred => "inferred",
            Self::Ambiguous => "ambiguous",
            Self::Claimed => "claimed",
            Self::Late => "late",
            Self::Root => "root",
        }
    }
}

impl fmt::Display for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenCheck {
    /// The text is not a hop token.
    Malformed,
    /// The token is too large.
    TooLarge,
    /// The node does not know the key of the token.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    NotYetValid,
    /// The token belongs to another tenant.
    Tenant,
    /// The token was made for another agent.
    Audience,
    /// The node does not have the task of the token.
    UnknownParent,
    /// The task of the token has ended.
    ClosedParent,
    /// Root, trace or depth are not those of the task it names.
    Parent,
}

impl TokenCheck {
    /// Returns the name of the result.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Tenant => "tenant",
            Self::Audience => "audience",
            Self::UnknownParent => "unknown_parent",
            Self::ClosedParent => "closed_parent",
            Self::Parent => "parent",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Malformed => "it is not a hop token",
            Self::TooLarge => "it is too large",
            Self::UnknownKey => "it is signed with an unknown key",
            Self::Signature => "its signature is wrong",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::Tenant => "it belongs to another tenant",
            Self::Audience => "it was given to another agent",
            Self::UnknownParent => "it names a task that this node does not know",
            Self::ClosedParent => "the task that it names has ended",
            Self::Parent => "it does not match the task that it names",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineageError {
    /// An invalid token is worse than none: it was forged, stolen or kept too long.
    Invalid(TokenCheck),
    /// An agent called at the address of another agent.
    Address,
    /// An agent called without a token where one is required.
    Required,
}

impl LineageError {
    /// The check that the call did not pass, by its name.
    pub fn check(self) -> Option<&'static str> {
        match self {
            Self::Invalid(check) => Some(check.as_str()),
            Self::Address => Some("address"),
            Self::Required => None,
        }
    }

    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::Address => ErrorKind::LineageInvalid,
            Self::Required => ErrorKind::LineageRequired,
        }
    }
}

impl fmt::Display for LineageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(check) => write!(f, "the hop token is not valid: {}", check.told()),
            Self::Address => f.write_str("the credentials belong to one agent, and the address to another"),
            Self::Required => f.write_str("the agent must send the hop token of the task that it works on"),
        }
    }
}

impl std::error::Error for LineageError {}
