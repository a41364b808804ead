//! The approved card of an agent, and whether another card may replace it.

use std::fmt::Debug;
use std::sync::Arc;

use chancery_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Discovered, Verification, deviations, hex_digest, read, structure};

/// An approved card. The whole of it is kept, so that it can be used while the agent shows another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Where the card was found.
    pub url: String,
    /// As received, or as far as the signatures cover it.
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
    /// It promises something else, and an operator has to review it.
    Changed,
    /// It has another signer.
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
        match other_signer(&self.verification, &found.verification) {
            Some(reason) => Fit::OtherSigner(reason),
            // It may have been approved with what nobody vouched for, of which no more is used than before.
            None if self.structure == found.structure || self.is_all_of(found) => Fit::Same,
            None => Fit::Changed,
        }
    }

    /// Whether the approved card is the one that came, before it was cut down to what its signers vouched for.
    fn is_all_of(&self, found: &Discovered) -> bool {
        let came = found.vouched.as_ref().and_then(|_| read::read(&found.text).ok());
        came.is_some_and(|(card, ..)| structure(&card) == self.structure)
    }

    /// The card as it was when it was approved. `None` if it can no longer be read.
    pub(crate) fn recall(&self) -> Option<Arc<Discovered>> {
        let (card, version, leniencies) = read::read(&self.text).ok()?;
        Some(Arc::new(Discovered {
            card,
            version,
            leniencies,
            url: self.url.clone(),
            digest: hex_digest(self.text.as_bytes()),
            deviations: deviations(&self.text),
            text: self.text.clone(),
            vouched: None,
            verification: self.verification.clone(),
            structure: self.structure.clone(),
            fetched_at: self.approved_at,
            etag: None,
        }))
    }
}

/// Why a card does not have the signers of the approved one, if it does not. Agents are compared by their
/// ids, and other keys by their own.
pub(crate) fn other_signer(approved: &Verification, shown: &Verification) -> Option<String> {
    let Verification::Verified { agent_ids, kids } = approved else { return None };
    let (shares_one, shown, approved) = if agent_ids.is_empty() {
        (shown.kids().iter().any(|kid| kids.contains(kid)), list(shown.kids(), "no key"), list(kids, "no key"))
    } else {
        let (ids, none) = (shown.agent_ids(), "no agent's key");
        (ids.iter().any(|id| agent_ids.contains(id)), list(ids, none), list(agent_ids, none))
    };
    (!shares_one).then(|| format!("it is signed by {shown}, and the approved one by {approved}"))
}

fn list<T: ToString>(names: &[T], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::AgentId;

    fn verified(ids: &[u8], kids: &[&str]) -> Verification {
        Verification::Verified {
            agent_ids: ids.iter().map(|byte| AgentId::from_digest(&[*byte; 32])).collect(),
            kids: kids.iter().map(|&kid| kid.to_owned()).collect(),
        }
    }

    #[test]
    fn whoever_signed_the_approved_card_has_to_have_signed_the_next_one_also_with_a_key_that_is_no_agents() {
        let (agent, key) = (verified(&[1], &["a"]), verified(&[], &["a", "b"]));
        for (approved, shown) in [
            (&agent, verified(&[2, 1], &["c"])),
            (&key, verified(&[], &["b", "c"])),
            (&key, verified(&[1], &["a"])),
            (&Verification::Unsigned, agent.clone()),
            (&Verification::NotLookedAt, Verification::Unsigned),
        ] {
            assert_eq!(other_signer(approved, &shown), None, "{approved:?}, then {shown:?}");
        }
        let no_key = Verification::NoKey(String::new());
        for shown in [verified(&[2], &["c"]), verified(&[], &["c"]), Verification::Unsigned, no_key, Verification::NotLookedAt] {
            for approved in [&agent, &key] {
                assert!(other_signer(approved, &shown).is_some(), "{approved:?}, then {shown:?}");
            }
        }
        assert!(other_signer(&agent, &key).is_some(), "the key alone is not the agent");
    }
}
