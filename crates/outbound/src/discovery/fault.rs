//! Why a peer's card could not be had, or is not believed. The names of the kinds are the ADR's.

use http::StatusCode;

use super::PeerLocation;
use crate::guard::GuardError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The peer answered, but not with a card.
    #[error("{peer} has no card that can be read: {reason}")]
    Discovery { peer: String, reason: String },
    /// The peer could not be reached, or not safely. Its words are for callers, and `cause` is for the operator alone.
    #[error("{peer} cannot be reached: {reason}")]
    Transport { peer: String, reason: &'static str, cause: String },
    /// The card is not the one of the agent it should be.
    #[error("the card of {peer} is refused: {reason}")]
    CardSignatureInvalid { peer: String, reason: String },
}

impl DiscoveryError {
    pub(super) fn bad_url(peer: &PeerLocation) -> Self {
        Self::Discovery { peer: peer.name.to_string(), reason: "its URL is invalid".to_owned() }
    }

    pub(super) fn gone(peer: &PeerLocation) -> Self {
        let reason = "the node no longer uses this agent";
        Self::Transport { peer: peer.name.to_string(), reason, cause: reason.to_owned() }
    }

    pub(super) fn transport(peer: &PeerLocation, error: &GuardError) -> Self {
        Self::Transport { peer: peer.name.to_string(), reason: error.public(), cause: error.to_string() }
    }

    /// The error with its cause, for logs and the admin API. Callers get the words of `Display`, which do not
    /// reveal what listens where.
    pub fn for_operator(&self) -> String {
        match self {
            Self::Transport { peer, cause, .. } => format!("{peer} cannot be reached: {cause}"),
            Self::Discovery { .. } | Self::CardSignatureInvalid { .. } => self.to_string(),
        }
    }

    pub(super) fn no_card(peer: &PeerLocation, status: Option<StatusCode>) -> Self {
        let reason = status.map_or("nothing was found".to_owned(), |status| format!("the last place answered {status}"));
        Self::Discovery { peer: peer.name.to_string(), reason }
    }

    pub(super) fn not_a_card(peer: &PeerLocation, reason: impl Into<String>) -> Self {
        Self::Discovery { peer: peer.name.to_string(), reason: reason.into() }
    }

    pub(crate) fn refused(peer: &PeerLocation, reason: impl Into<String>) -> Self {
        Self::CardSignatureInvalid { peer: peer.name.to_string(), reason: reason.into() }
    }
}
