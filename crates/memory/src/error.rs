//! The errors of memory access, and the part of each that a caller sees.

use chancery_protocol::{Error, ErrorKind};
use ruvector_rulake::RuLakeError;

/// Why a grant does not open what was asked for.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GrantRefusal {
    /// The call presents no grant.
    #[error("there is no grant for it")]
    NoGrant,
    /// The text is not a grant.
    #[error("not a grant: {0}")]
    Malformed(&'static str),
    /// The node does not trust the issuer.
    #[error("no key that this node trusts signed the grant")]
    UnknownIssuer,
    /// The signature is not the issuer's.
    #[error("the signature of the grant is wrong")]
    BadSignature,
    /// The grant has expired.
    #[error("the grant has expired")]
    Expired,
    /// The grant is not valid yet.
    #[error("the grant is not valid yet")]
    NotYet,
    /// The grant was revoked.
    #[error("the grant was revoked")]
    Revoked,
    /// The grant is for another agent.
    #[error("the grant is for another agent")]
    OtherGrantee,
    /// Another agent has to present the grant.
    #[error("the grant is to be handed over by another agent")]
    OtherPresenter,
    /// The grant is for another shard.
    #[error("the grant is for another shard")]
    OtherShard,
    /// The grant is for another content.
    #[error("the grant is for another witness")]
    OtherWitness,
    /// The grant does not have the capability.
    #[error("the grant does not allow {0}")]
    Capability(&'static str),
    /// The grant was given for something else.
    #[error("the witness was not handed over for {0}")]
    HandedFor(&'static str),
}

impl GrantRefusal {
    /// The word for it in records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoGrant => "no_grant",
            Self::Malformed(_) => "malformed_grant",
            Self::UnknownIssuer => "unknown_issuer",
            Self::BadSignature => "bad_signature",
            Self::Expired => "expired",
            Self::NotYet => "not_yet",
            Self::Revoked => "revoked",
            Self::OtherGrantee => "other_grantee",
            Self::OtherPresenter => "other_presenter",
            Self::OtherShard => "other_shard",
            Self::OtherWitness => "other_witness",
            Self::Capability(_) => "capability",
            Self::HandedFor(_) => "handed_for",
        }
    }
}

/// Why an operation of the memory failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The grant does not allow the operation.
    #[error(transparent)]
    Refused(#[from] GrantRefusal),
    /// A reference is wrong.
    #[error("{field}: {reason}")]
    Reference {
        /// The field of the reference.
        field: &'static str,
        /// What is wrong with the field.
        reason: &'static str,
    },
    /// There is no such collection.
    #[error("nothing is kept here by the witness {0}")]
    Unknown(String),
    /// What is in the tier is not what its name says.
    #[error("tampered: {0}")]
    Tampered(&'static str),
    /// The content is larger than the limit.
    #[error("{what} of {bytes} bytes; at most {limit} are taken")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The size.
        bytes: u64,
        /// The largest size.
        limit: u64,
    },
    /// The content is not a collection of vectors.
    #[error("not vectors: {0}")]
    NotVectors(&'static str),
    /// The query has another number of dimensions than the collection.
    #[error("the query has {found} dimensions, the collection {wanted}")]
    Dimensions {
        /// The number of dimensions of the collection.
        wanted: usize,
        /// The number of dimensions of the query.
        found: usize,
    },
    /// The storage tier failed.
    #[error("the tier: {0}")]
    Tier(String, #[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The index of vectors failed.
    #[error("ruLake: {0}")]
    Lake(#[from] RuLakeError),
    /// The node has no key for grants.
    #[error("no key signs grants at this time")]
    NoKey,
}

impl MemoryError {
    pub(crate) fn io(doing: &str, error: std::io::Error) -> Self {
        Self::Tier(format!("{doing}: {error}"), Some(Box::new(error)))
    }

    /// The word for it in records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Reference { .. } => "reference",
            Self::Unknown(_) => "unknown_witness",
            Self::Tampered(_) => "tampered",
            Self::TooLarge { .. } => "too_large",
            Self::NotVectors(_) => "not_vectors",
            Self::Dimensions { .. } => "dimensions",
            Self::Tier(..) | Self::Lake(_) | Self::NoKey => "tier",
        }
    }

    /// What a caller may see. Where things lie on this machine it may not.
    pub fn public(&self) -> Error {
        let said = |kind, text: String| Error::new(kind, text).with_fact("memory", self.code());
        match self {
            Self::Refused(_) => said(ErrorKind::PermissionDenied, format!("memory: {self}")),
            Self::Reference { field, reason } => Error::invalid_field(*field, *reason).with_fact("memory", self.code()),
            Self::TooLarge { .. } => said(ErrorKind::TooLarge, format!("memory: {self}")),
            Self::Unknown(_) | Self::Tampered(_) | Self::NotVectors(_) | Self::Dimensions { .. } => {
                said(ErrorKind::InvalidParams, format!("memory: {self}"))
            }
            Self::Tier(..) | Self::Lake(_) | Self::NoKey => {
                said(ErrorKind::Internal, "memory: the tier did not answer".to_owned())
            }
        }
    }
}
