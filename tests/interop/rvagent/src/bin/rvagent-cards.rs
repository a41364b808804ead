//! Signs and verifies a card with the `rvagent-a2a` crate: `rvagent-cards sign` and `rvagent-cards verify`, JSON in and out.

use std::io::Read;

use ed25519_dalek::SigningKey;
use rvagent_a2a::identity::{sign_card, verify_card};
use rvagent_a2a::types::AgentCard;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut given = String::new();
    std::io::stdin().read_to_string(&mut given)?;
    let mode = std::env::args().nth(1).unwrap_or_default();
    let answer = match mode.as_str() {
        "sign" => sign(&given)?,
        "verify" => verify(&given)?,
        _ => return Err("usage: rvagent-cards sign|verify".into()),
    };
    println!("{answer}");
    Ok(())
}

fn sign(given: &str) -> Result<Value, Failure> {
    let mut card: AgentCard = serde_json::from_str(given)?;
    // Any key will do; this one is nobody's.
    let key = SigningKey::from_bytes(&[0x2a; 32]);
    // The crate leaves it to its callers to have the object that the signature goes into.
    if card.metadata["ruvector"].is_null() {
        card.metadata["ruvector"] = json!({});
    }
    card.metadata["ruvector"]["signature"] = serde_json::to_value(sign_card(&card, &key)?)?;
    Ok(json!({ "card": card }))
}

fn verify(given: &str) -> Result<Value, Failure> {
    let given: Value = serde_json::from_str(given)?;
    let card: AgentCard = serde_json::from_value(given["card"].clone())?;
    Ok(match verify_card(&card) {
        Ok(agent) => json!({ "verified": true, "detail": "", "agent_id": agent }),
        Err(refusal) => json!({ "verified": false, "detail": refusal.to_string() }),
    })
}
