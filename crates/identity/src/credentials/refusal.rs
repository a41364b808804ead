//! Why a credential was not accepted: all of it for the log, next to nothing for the caller.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use chancery_protocol::{Error, ErrorKind};

/// The retry delay for a caller whose credentials could not be checked.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// Nothing was presented, and this node asks for something.
    Missing,
    /// Well-formed, but of no caller of this node; a revoked credential is one of these.
    Unknown,
    Expired,
    WrongAudience,
    WrongAlgorithm,
    /// A signature that was already used once.
    Replayed,
    /// Made in the future, or too long ago to tell whether it was used before.
    ClockSkew,
    /// Two credentials that do not mean the same caller.
    Conflict,
    Malformed,
    /// A signature, of a token or of a request, that is not what its key gives.
    BadSignature,
    /// The caller is proven, and is not accepted.
    NotAllowed,
    /// Nothing is wrong with the credential as far as is known: it could not be checked now.
    Unavailable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialRefusal {
    pub kind: RefusalKind,
    /// For the log. Never holds a credential or a part of one.
    pub reason: Cow<'static, str>,
}

impl CredentialRefusal {
    pub fn new(kind: RefusalKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, reason: reason.into() }
    }

    pub fn missing() -> Self {
        Self::new(RefusalKind::Missing, "no credentials were presented")
    }

    /// The message for the caller. The failed check is not named: it would help only a client that guesses
    /// credentials.
    pub fn to_error(&self) -> Error {
        match self.kind {
            RefusalKind::Missing => Error::new(ErrorKind::Unauthenticated, "Credentials are required"),
            RefusalKind::NotAllowed => Error::new(ErrorKind::PermissionDenied, "This caller is not allowed here"),
            RefusalKind::Unavailable => Error {
                retry_after: Some(RETRY_AFTER),
                ..Error::new(ErrorKind::Unavailable, "Credentials cannot be checked at the moment")
            },
            _ => Error::new(ErrorKind::Unauthenticated, "The credentials were not accepted"),
        }
    }
}

impl fmt::Display for CredentialRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.reason)
    }
}

impl std::error::Error for CredentialRefusal {}
