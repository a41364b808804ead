//! Signs one agent's cards with the keys it has now, and says on them who the agent is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chancery_core::MEMORY_EXTENSION;
use chancery_core::push::PUSH_EXTENSION;
use chancery_identity::cards::{CardFault, CardShape, IdentityFacts, sign_card, sign_original_card};
use chancery_identity::keys::{Cards, Push};
use chancery_identity::{Algorithm, Jwks, KeyRing, SigningKey};
use chancery_protocol::{
    ARTIFACT_KIND_VERSION, AgentCard, AgentCardSignature, Metadata, SecurityRequirement, SecurityScheme, Timestamp, Version,
};
use serde_json::{Map, Value, json};

/// The ADR's word for notifications that are signed with the node's key.
const ED25519: &str = "ed25519";

/// The keys of one agent. Without any its cards go out unsigned.
#[derive(Debug)]
pub(crate) struct Signer<'a> {
    keys: Vec<SigningKey<Cards>>,
    identity: Option<IdentityFacts>,
    jwks_url: &'a str,
    /// How callers authenticate; nothing on an open node.
    declared: Option<&'a Declared>,
    /// The public key of the node's notifications, in base64.
    webhook_key: Option<String>,
}

/// Security schemes, and which of them are enough.
pub(crate) type Declared = (BTreeMap<String, SecurityScheme>, Vec<SecurityRequirement>);

impl<'a> Signer<'a> {
    pub(crate) fn of(
        keys: &KeyRing,
        agent: &str,
        jwks_url: &'a str,
        declared: Option<&'a Declared>,
        now: Timestamp,
    ) -> Result<Self, CardFault> {
        let webhook_key = keys.signing::<Push>(None, Algorithm::EdDsa, now).map(|key| STANDARD.encode(key.public().raw()));
        let in_use = |algorithm| keys.signing::<Cards>(Some(agent), algorithm, now);
        let keys: Vec<_> = [Algorithm::EdDsa, Algorithm::Es256].into_iter().filter_map(in_use).collect();
        let agents_own = keys.iter().find(|key| key.algorithm() == Algorithm::EdDsa);
        let identity = agents_own.map(|key| IdentityFacts::of(key, Some(jwks_url))).transpose()?;
        Ok(Self { keys, identity, jwks_url, declared, webhook_key })
    }

    /// Which keys these are.
    pub(crate) fn names(&self) -> String {
        self.keys.iter().map(SigningKey::kid).collect::<Vec<_>>().join(" ")
    }

    /// The card with the agent's identity and the authentication of callers declared on it, without a
    /// signature. On an open node the author's own declaration of the latter stays.
    pub(crate) fn introduce(&self, card: &AgentCard) -> AgentCard {
        let mut card = AgentCard { signatures: Vec::new(), ..card.clone() };
        if let Some((schemes, requirements)) = self.declared {
            card.security_schemes.clone_from(schemes);
            card.security_requirements.clone_from(requirements);
        }
        card.capabilities.extensions.extend(self.identity.as_ref().map(IdentityFacts::extension));
        card
    }

    pub(crate) fn sign(&self, card: &[u8], version: Version) -> Result<Vec<u8>, CardFault> {
        let shape = if version == Version::V1_0 { CardShape::V1_0 } else { CardShape::V0_3 };
        self.signed(card, |card| {
            let keys: Vec<&SigningKey<Cards>> = self.keys.iter().collect();
            sign_card(card, shape, &keys, Some(self.jwks_url))
        })
    }

    /// The card of the original protocol's path, for both of its kinds of readers.
    pub(crate) fn sign_original(&self, model: &AgentCard, card: &[u8]) -> Result<Vec<u8>, CardFault> {
        let Some(key) = self.keys.iter().find(|key| key.algorithm() == Algorithm::EdDsa) else { return Ok(card.to_vec()) };
        self.signed(card, |card| {
            if let Some(identity) = &self.identity {
                let mut vendor = json!({
                    "identity": identity.metadata(),
                    "artifact_kind_version": ARTIFACT_KIND_VERSION,
                    "artifact_kind_versions_supported": [ARTIFACT_KIND_VERSION],
                });
                // What other versions declare as an extension is there too, where this protocol's readers look for it.
                if let Some(facts) = declared(model, MEMORY_EXTENSION) {
                    vendor["memory"] = Value::Object(facts);
                }
                if let Some(facts) = declared(model, PUSH_EXTENSION) {
                    let algorithms = webhook_algorithms(&facts);
                    let key = self.webhook_key.as_deref().filter(|_| algorithms.contains(&ED25519));
                    if let Some(key) = key {
                        vendor["webhook_ed25519_pubkey"] = json!(key);
                    }
                    vendor["webhook_algos"] = json!(algorithms);
                }
                card["metadata"] = json!({ "ruvector": vendor });
            }
            sign_original_card(card, key).map(drop)
        })
    }

    fn signed(&self, card: &[u8], sign: impl FnOnce(&mut Value) -> Result<(), CardFault>) -> Result<Vec<u8>, CardFault> {
        if self.keys.is_empty() {
            return Ok(card.to_vec());
        }
        let not_a_card = |fault: serde_json::Error| CardFault::NotACard(fault.to_string());
        let mut card: Value = serde_json::from_slice(card).map_err(not_a_card)?;
        sign(&mut card)?;
        serde_json::to_vec(&card).map_err(not_a_card)
    }
}

/// What a card says in an extension.
fn declared(card: &AgentCard, uri: &str) -> Option<Map<String, Value>> {
    let found = card.capabilities.extensions.iter().find(|extension| extension.uri == uri);
    found.and_then(|extension| extension.params.as_ref()).map(Metadata::to_object)
}

/// How notifications are signed, in the words of the ADR.
fn webhook_algorithms(facts: &Map<String, Value>) -> Vec<&'static str> {
    let signs_with =
        |scheme: &str| facts.get("algs").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == scheme));
    let known = [("v1", "hmac-sha256"), ("v1a", ED25519)];
    known.iter().filter(|(scheme, _)| signs_with(scheme)).map(|(_, name)| *name).collect()
}

/// The signatures on a card that was signed as JSON.
pub(crate) fn signatures(card: &[u8]) -> Vec<AgentCardSignature> {
    #[derive(serde::Deserialize)]
    struct Signed {
        #[serde(default)]
        signatures: Vec<AgentCardSignature>,
    }
    serde_json::from_slice(card).map_or(Vec::new(), |card: Signed| card.signatures)
}

/// The public keys of the node, as JSON.
pub(crate) fn jwks(keys: &KeyRing, now: Timestamp) -> Vec<u8> {
    serde_json::to_vec(&Jwks::of(keys, now)).unwrap_or_default()
}
