//! Why a card is not signed, or not believed.

use crate::jcs::CanonicalFault;
use crate::keys::KeyFault;
use crate::strict_json::StrictJsonFault;

/// Why a card cannot be verified or signed.
#[derive(Debug, thiserror::Error)]
pub enum CardFault {
    /// The text is not strict JSON.
    #[error("the card is {0}")]
    Json(#[from] StrictJsonFault),
    /// The JSON is not a card.
    #[error("not a card: {0}")]
    NotACard(String),
    /// The card is not signed.
    #[error("the card is not signed")]
    Unsigned,
    /// The card has more signatures than the node verifies.
    #[error("the card has {0} signatures, more than we look at")]
    TooManySignatures(usize),
    /// The name is the ADR's.
    #[error("the signature of the card is not valid: {0}")]
    CardSignatureInvalid(String),
    /// The card cannot be signed.
    #[error("the card cannot be signed: {0}")]
    NotSignable(String),
    /// The card has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalFault),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFault),
}

impl CardFault {
    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::CardSignatureInvalid(reason.into())
    }
}
