//! The signature of the `rvagent-a2a` crate (0.1.0), which covers the card as that crate's own types hold it.
//!
//! Members it does not know are not covered, defaults it fills in are. The bytes are those of serde_json with the names sorted by
//! their bytes, which is not the canonical form of RFC 8785.

use chancery_protocol::AgentId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::CardFault;
use crate::keys::{Algorithm, Cards, KeyFault, PublicKey, SigningKey};

const ALGORITHM: &str = "ed25519-hex";
const SIGNATURE: &str = "signature";

/// The card as that crate reads and writes it. The fields are in the order of their names.
#[derive(Serialize, Deserialize)]
struct View {
    authentication: Authentication,
    capabilities: Capabilities,
    description: String,
    #[serde(default)]
    metadata: Value,
    name: String,
    provider: Provider,
    skills: Vec<Skill>,
    url: String,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct Authentication {
    #[serde(default)]
    schemes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default)]
    push_notifications: bool,
    #[serde(default)]
    streaming: bool,
}

#[derive(Serialize, Deserialize)]
struct Provider {
    organization: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Skill {
    description: String,
    id: String,
    #[serde(default)]
    input_modes: Vec<String>,
    name: String,
    #[serde(default)]
    output_modes: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardSignature {
    alg: String,
    signature: String,
    public_key: String,
}

/// Sets `metadata.ruvector.signature`. What else is in `metadata` must be there before: it is covered.
pub fn sign_rvagent_view(card: &mut Value, key: &SigningKey<Cards>) -> Result<AgentId, CardFault> {
    let other = KeyFault::OtherAlgorithm { wanted: Algorithm::EdDsa, found: key.algorithm() };
    let agent_id = key.agent_id().ok_or(other)?;
    if !card.is_object() {
        return Err(CardFault::NotACard("it is not an object".to_owned()));
    }
    // The object stays in what is signed when the signature is taken out of it, so it has to be there before.
    let metadata = object_at(card, "metadata")?;
    let ruvector = object_at(metadata, "ruvector")?;
    ruvector[SIGNATURE] = Value::Null;
    let bytes = signed_bytes(card)?;
    let signature = key.sign_bytes(&bytes)?;
    card["metadata"]["ruvector"][SIGNATURE] =
        json!({ "alg": ALGORITHM, "signature": hex(&signature), "public_key": hex(key.public().raw()) });
    Ok(agent_id)
}

/// Who signed the card's view, for a card that was read strictly before.
pub fn verify_rvagent_card(card: &Value) -> Result<AgentId, CardFault> {
    let signature = card.pointer("/metadata/ruvector/signature").ok_or(CardFault::Unsigned)?;
    let signature = CardSignature::deserialize(signature).map_err(|fault| CardFault::invalid(fault.to_string()))?;
    if signature.alg != ALGORITHM {
        return Err(CardFault::invalid(format!("its alg is not {ALGORITHM}")));
    }
    let bytes =
        |text: &str, name: &str| unhex(text).ok_or_else(|| CardFault::invalid(format!("{name} is not in lower-case hex")));
    let key = PublicKey::from_raw(Algorithm::EdDsa, &bytes(&signature.public_key, "public_key")?)
        .map_err(|fault| CardFault::invalid(fault.to_string()))?;
    let signed = signed_bytes(card).map_err(|fault| CardFault::invalid(fault.to_string()))?;
    if !key.verify_bytes(&signed, &bytes(&signature.signature, SIGNATURE)?) {
        return Err(CardFault::invalid("the key did not sign this card"));
    }
    key.agent_id().ok_or_else(|| CardFault::invalid("no agent has such a key"))
}

/// The card as far as such a signature covers it.
pub(super) fn view(card: &Value) -> Result<Value, CardFault> {
    let not_one = |fault: serde_json::Error| CardFault::NotACard(fault.to_string());
    serde_json::to_value(View::deserialize(card).map_err(not_one)?).map_err(not_one)
}

fn signed_bytes(card: &Value) -> Result<Vec<u8>, CardFault> {
    let mut view = View::deserialize(card).map_err(|fault| CardFault::NotACard(fault.to_string()))?;
    if let Some(ruvector) = view.metadata.get_mut("ruvector").and_then(Value::as_object_mut) {
        ruvector.remove(SIGNATURE);
    }
    sort(&mut view.metadata);
    serde_json::to_vec(&view).map_err(|fault| CardFault::NotACard(fault.to_string()))
}

/// Sorts the members, which makes the order of the map type irrelevant.
fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(sort);
            members.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

fn object_at<'a>(value: &'a mut Value, name: &str) -> Result<&'a mut Value, CardFault> {
    let member = &mut value[name];
    if member.is_null() {
        *member = json!({});
    }
    if member.is_object() { Ok(member) } else { Err(CardFault::NotSignable(format!("its {name} is not an object"))) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lower case only: one signature, one way to write it.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let bytes = text.as_bytes();
    let whole = bytes.len().is_multiple_of(2);
    whole.then(|| bytes.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect())?
}
