//! Whether a card is its agent's, and what to do if that cannot be said.

use chancery_identity::cards::{
    CardFault, KeyHint, VerifyRules, card_key_urls, check_signature_forms, covered_original_card, verify_card_signatures,
    verify_original_card,
};
use chancery_identity::{Jwks, KeyUse, PublicKey};
use chancery_protocol::{AgentId, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DiscoveryConfig, DiscoveryError, PeerLocation};
use crate::guard::{Fetch, GuardedClient};

/// Bytes of a peer's list of keys.
const MOST_KEY_BYTES: u64 = 256 * 1024;

/// How much a card has to prove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CardVerification {
    /// Nothing is looked at.
    #[serde(rename = "off")]
    Off,
    /// A card without signatures is taken. Signatures that are there must be well-formed, and good where their key is known.
    #[default]
    #[serde(rename = "if-present")]
    IfPresent,
    /// Without a good signature there is no call.
    #[serde(rename = "require")]
    Require,
}

/// What a look at a card's signatures showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    NotLookedAt,
    Unsigned,
    /// There are signatures, and no key to check them with.
    NoKey(String),
    Verified {
        agent_ids: Vec<AgentId>,
        kids: Vec<String>,
    },
    Invalid(String),
}

impl Verification {
    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotLookedAt => "not looked at",
            Self::Unsigned => "unsigned",
            Self::NoKey(_) => "no key",
            Self::Verified { .. } => "verified",
            Self::Invalid(_) => "invalid",
        }
    }

    /// Who signed it, as far as that is proven.
    pub fn agent_ids(&self) -> &[AgentId] {
        match self {
            Self::Verified { agent_ids, .. } => agent_ids,
            _ => &[],
        }
    }

    /// The keys it is signed with, as far as that is proven.
    pub fn kids(&self) -> &[String] {
        match self {
            Self::Verified { kids, .. } => kids,
            _ => &[],
        }
    }
}

/// What a look at a card's signatures shows, and of a card that is verified as much as they cover.
pub(super) async fn verify(
    client: &GuardedClient,
    config: &DiscoveryConfig,
    peer: &PeerLocation,
    url: &str,
    text: &str,
    version: Version,
) -> (Verification, Option<Value>) {
    if peer.verify == CardVerification::Off && peer.agent_id.is_none() {
        return (Verification::NotLookedAt, None);
    }
    if version == Version::Original {
        return match original(text) {
            Ok((agent_id, covered)) => (Verification::Verified { agent_ids: vec![agent_id], kids: Vec::new() }, Some(covered)),
            Err(CardFault::Unsigned) => (Verification::Unsigned, None),
            Err(fault) => (Verification::Invalid(fault.to_string()), None),
        };
    }
    let rules = VerifyRules { card_url: Some(url.to_owned()), jku_origins: config.key_origins.clone() };
    let mut keys = peer.keys.clone();
    let pinned = keys.len();
    match card_key_urls(text, &rules) {
        Err(CardFault::Unsigned) => return (Verification::Unsigned, None),
        Err(fault) => return (Verification::Invalid(fault.to_string()), None),
        // A pinned key is the only one that counts.
        Ok(_) if pinned > 0 => {}
        Ok(urls) => {
            for url in urls {
                keys.extend(published(client, &url).await);
            }
        }
    }
    if keys.is_empty() {
        if let Err(fault) = check_signature_forms(text) {
            return (Verification::Invalid(fault.to_string()), None);
        }
        return (Verification::NoKey("its signatures name no list of keys that may be fetched".to_owned()), None);
    }
    let candidates = move |hint: &KeyHint<'_>| {
        let mut fitting: Vec<PublicKey> = keys.iter().filter(|key| key.algorithm() == hint.algorithm).cloned().collect();
        // The one it names first; it may still be another.
        fitting.sort_by_key(|key| hint.kid != Some(key.kid().as_str()));
        fitting
    };
    match verify_card_signatures(text, &candidates, &rules) {
        Ok(verified) => {
            let agent_ids = verified.by.iter().filter_map(|signature| signature.agent_id.clone()).collect();
            let kids = verified.by.into_iter().map(|signature| signature.kid).collect();
            (Verification::Verified { agent_ids, kids }, Some(verified.card))
        }
        Err(fault) => (Verification::Invalid(fault.to_string()), None),
    }
}

fn original(text: &str) -> Result<(AgentId, Value), CardFault> {
    let card = serde_json::from_str(text).map_err(|fault| CardFault::NotACard(fault.to_string()))?;
    Ok((verify_original_card(&card)?, covered_original_card(&card)?))
}

async fn published(client: &GuardedClient, url: &str) -> Vec<PublicKey> {
    let fetched = client.fetch(Fetch { most_bytes: Some(MOST_KEY_BYTES), ..Fetch::get(url) }).await;
    let keys = fetched.ok().filter(|fetched| fetched.status.is_success());
    let keys = keys.and_then(|fetched| serde_json::from_slice::<Jwks>(&fetched.body).ok());
    // Keys with a use of their own that is not cards are keys for something else.
    let for_cards = |use_of: &Option<String>| use_of.as_deref().is_none_or(|name| name == KeyUse::Cards.as_str());
    keys.map_or(Vec::new(), |jwks| {
        jwks.keys.iter().filter(|jwk| for_cards(&jwk.key_use)).filter_map(|jwk| jwk.public_key().ok()).collect()
    })
}

/// Whether the peer may be called. What speaks against it is said once, here, with the ids it is about.
pub(super) fn judge(peer: &PeerLocation, verification: &Verification) -> Result<(), DiscoveryError> {
    let refusal = match (verification, &peer.agent_id, peer.verify) {
        (Verification::Verified { agent_ids, .. }, Some(expected), _) if !agent_ids.contains(expected) => {
            let found = agent_ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Some(format!("it is signed by {}, not by {expected}", if found.is_empty() { "no agent's key" } else { &found }))
        }
        (Verification::Verified { .. }, _, _) => None,
        (Verification::Invalid(reason), ..) => Some(reason.clone()),
        (other, Some(expected), _) => Some(format!("it should prove to be {expected} and is {}", other.name())),
        (Verification::NoKey(reason), None, CardVerification::Require) => Some(reason.clone()),
        (other, None, CardVerification::Require) => Some(format!("it is {}, and a signature is required", other.name())),
        (_, None, CardVerification::Off | CardVerification::IfPresent) => None,
    };
    match refusal {
        None => Ok(()),
        Some(reason) => {
            let expected = peer.agent_id.as_ref().map_or("any agent", AgentId::as_str);
            tracing::warn!(peer = %peer.name, url = peer.url, expected, reason, "rejected the card of an agent; the node does not call the agent");
            Err(DiscoveryError::refused(peer, reason))
        }
    }
}
