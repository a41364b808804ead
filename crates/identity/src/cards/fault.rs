//! Why a card is not signed, or not believed.

use crate::jcs::CanonicalFault;
use crate::keys::KeyFault;
use crate::strict_json::StrictJsonFault;

#[derive(Debug, thiserror::Error)]
pub enum CardFault {
    #[error("the card is {0}")]
    Json(#[from] StrictJsonFault),
    #[error("not a card: {0}")]
    NotACard(String),
    #[error("the card is not signed")]
    Unsigned,
    #[error("the card has {0} signatures, more than we look at")]
    TooManySignatures(usize),
    /// The name is the ADR's.
    #[error("the signature of the card is not valid: {0}")]
    CardSignatureInvalid(String),
    #[error("the card cannot be signed: {0}")]
    NotSignable(String),
    #[error(transparent)]
    Canonical(#[from] CanonicalFault),
    #[error(transparent)]
    Key(#[from] KeyFault),
}

impl CardFault {
    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::CardSignatureInvalid(reason.into())
    }
}
