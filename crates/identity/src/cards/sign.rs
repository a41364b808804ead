//! Signs 1.0 and 0.3 cards.

use serde_json::{Map, Value, json};

use super::forms::{self, CardShape, SIGNATURES};
use super::{CardFault, MAX_SIGNATURES, schema};
use crate::jws;
use crate::keys::{Cards, SigningKey};

/// Adds to `signatures` one signature of each key for each form in which the card's readers verify it. For a 1.0 card that is one,
/// or two if it has empty members, which the specification's form keeps and the official SDKs' does not; for a 0.3 card it is two
/// as a rule. The card is otherwise left as it is.
///
/// A 1.0 card with members outside the schema is refused: no SDK's signature would cover them, and readers would take them for
/// signed.
pub fn sign_card(card: &mut Value, shape: CardShape, keys: &[&SigningKey<Cards>], jku: Option<&str>) -> Result<(), CardFault> {
    let Value::Object(members) = card else { return Err(CardFault::NotACard("it is not an object".to_owned())) };
    if CardShape::of(members) != shape {
        return Err(CardFault::NotSignable(format!("it is not of the shape {shape:?}")));
    }
    let unsigned: Map<_, _> =
        members.iter().filter(|(name, _)| *name != SIGNATURES).map(|(n, v)| (n.clone(), v.clone())).collect();
    if let (CardShape::V1_0, Some(path)) = (shape, schema::first_unknown(&unsigned)) {
        return Err(CardFault::NotSignable(format!("{path} is not a member of a 1.0 card, and no signature would cover it")));
    }
    let mut made = Vec::new();
    for payload in forms::to_sign(members, shape)? {
        for key in keys {
            let signature = jws::sign(&payload.bytes, key, jku)?;
            made.push(json!({ "protected": signature.protected, "signature": signature.signature }));
        }
    }
    let present = match members.get(SIGNATURES) {
        None => &[][..],
        Some(Value::Array(present)) => present,
        Some(_) => return Err(CardFault::NotACard("its signatures are not a list".to_owned())),
    };
    let all: Vec<Value> = present.iter().cloned().chain(made).collect();
    if all.len() > MAX_SIGNATURES {
        return Err(CardFault::NotSignable(format!(
            "it would have {} signatures, at most {MAX_SIGNATURES} are allowed",
            all.len()
        )));
    }
    members.insert(SIGNATURES.to_owned(), Value::Array(all));
    Ok(())
}
