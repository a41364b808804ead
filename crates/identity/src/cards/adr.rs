//! The ADR's signature: Ed25519 over the whole card but for the signature itself, by the key that makes the agent id.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chancery_protocol::AgentId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::CardFault;
use crate::keys::{Algorithm, Cards, KeyFault, PublicKey, SigningKey};
use crate::{jcs, strict_json};

pub(super) const SIGNATURE: &str = "signature";
pub(super) const AGENT_ID: &str = "agent_id";
const JCS: &str = "jcs";

/// We write padding, and read base64 without it too: the ADR does not say. Anything else that could be written in two ways (the
/// other alphabet, bits left over) is refused.
const READ: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardSignature {
    pubkey_ed25519: String,
    sig_ed25519: String,
    canonicalization: String,
}

/// What is signed: the JCS form of the card without its top-level `signature`.
pub fn canonical_card_bytes(card: &Value) -> Result<Vec<u8>, CardFault> {
    let mut unsigned = members(card)?.clone();
    unsigned.remove(SIGNATURE);
    Ok(jcs::canonical(&Value::Object(unsigned))?)
}

/// Sets `agent_id` and `signature`.
pub fn sign_adr_card(card: &mut Value, key: &SigningKey<Cards>) -> Result<AgentId, CardFault> {
    let other = KeyFault::OtherAlgorithm { wanted: Algorithm::EdDsa, found: key.algorithm() };
    let agent_id = key.agent_id().ok_or(other)?;
    members(card)?;
    card[AGENT_ID] = json!(agent_id);
    let signature = key.sign_bytes(&canonical_card_bytes(card)?)?;
    card[SIGNATURE] = json!({
        "pubkey_ed25519": STANDARD.encode(key.public().raw()),
        "sig_ed25519": STANDARD.encode(signature),
        "canonicalization": JCS,
    });
    Ok(agent_id)
}

/// Who signed the card. The text is read strictly, so that no two readers can see two cards in it.
pub fn verify_card(text: &str) -> Result<AgentId, CardFault> {
    verify_card_value(&strict_json::parse(text)?)
}

/// As [`verify_card`], for a card that was read strictly before.
pub fn verify_card_value(card: &Value) -> Result<AgentId, CardFault> {
    let signature = members(card)?.get(SIGNATURE).ok_or(CardFault::Unsigned)?;
    let signature = CardSignature::deserialize(signature).map_err(|fault| CardFault::invalid(fault.to_string()))?;
    if signature.canonicalization != JCS {
        return Err(CardFault::invalid("its canonicalization is not jcs"));
    }
    let bytes = |text: &str, name: &str| READ.decode(text).map_err(|_| CardFault::invalid(format!("{name} is not base64")));
    let key = PublicKey::from_raw(Algorithm::EdDsa, &bytes(&signature.pubkey_ed25519, "pubkey_ed25519")?)
        .map_err(|fault| CardFault::invalid(fault.to_string()))?;
    let agent_id = key.agent_id().ok_or_else(|| CardFault::invalid("no agent has such a key"))?;
    if card.get(AGENT_ID).and_then(Value::as_str) != Some(agent_id.as_str()) {
        return Err(CardFault::invalid("agent_id is not that of the key"));
    }
    let signed = canonical_card_bytes(card).map_err(|fault| CardFault::invalid(fault.to_string()))?;
    if !key.verify_bytes(&signed, &bytes(&signature.sig_ed25519, "sig_ed25519")?) {
        return Err(CardFault::invalid("the key did not sign this card"));
    }
    Ok(agent_id)
}

fn members(card: &Value) -> Result<&Map<String, Value>, CardFault> {
    card.as_object().ok_or_else(|| CardFault::NotACard("it is not an object".to_owned()))
}
