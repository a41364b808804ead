//! The card of an agent that somebody approved, and whether another one may take its place.

use std::fmt::Debug;
use std::sync::Arc;

use chancery_protocol::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Discovered, Verification, hex_digest, read};

/// An approved card. The whole of it is kept, so that it can be used while the agent shows another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Where the card was found.
    pub url: String,
    /// As it came, or as far as those who signed it vouched for it.
    pub text: String,
    pub structure: String,
    /// With the ids and keys of who signed it.
    pub verification: Verification,
    pub approved_at: Timestamp,
}

/// Remembers pins for longer than the process runs.
pub trait PinKeeper: Debug + Send + Sync {
    fn pin(&self, replica: &str) -> Option<Arc<Pin>>;
    fn keep(&self, replica: &str, pin: Pin) -> Result<(), String>;
    fn forget(&self, replica: &str) -> Result<(), String>;
}

/// What a pin says to a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It promises the same.
    Same,
    /// It promises something else, and somebody has to look at it.
    Changed,
    /// It is signed by somebody else.
    OtherSigner(String),
}

impl Pin {
    pub(crate) fn of(found: &Discovered, now: Timestamp) -> Self {
        Self {
            url: found.url.clone(),
            text: found.vouched.as_ref().unwrap_or(&found.text).clone(),
            structure: found.structure.clone(),
            verification: found.verification.clone(),
            approved_at: now,
        }
    }

    pub(crate) fn fit(&self, found: &Discovered) -> Fit {
        let (pinned, shown) = (self.verification.agent_ids(), found.verification.agent_ids());
        if !pinned.is_empty() && !shown.iter().any(|id| pinned.contains(id)) {
            let shown = if shown.is_empty() { "no agent's key".to_owned() } else { list(shown) };
            return Fit::OtherSigner(format!("it is signed by {shown}, and the approved one by {}", list(pinned)));
        }
        if self.structure == found.structure { Fit::Same } else { Fit::Changed }
    }

    /// The card as it was when it was approved. `None` if it can no longer be read.
    pub(crate) fn recall(&self) -> Option<Arc<Discovered>> {
        let (card, version) = read::read(&self.text).ok()?;
        Some(Arc::new(Discovered {
            card,
            version,
            url: self.url.clone(),
            digest: hex_digest(self.text.as_bytes()),
            text: self.text.clone(),
            vouched: None,
            verification: self.verification.clone(),
            structure: self.structure.clone(),
            fetched_at: self.approved_at,
            etag: None,
        }))
    }
}

fn list(ids: &[AgentId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
