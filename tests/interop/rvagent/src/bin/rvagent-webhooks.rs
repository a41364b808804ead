//! Verifies a webhook with the `rvagent-a2a` crate: `rvagent-webhooks`, JSON `{body, token, hmac, pubkey, ed25519}` in, verdicts out.

use std::io::Read;

use rvagent_a2a::server::push::{verify_push_signature, verify_push_signature_ed25519};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut given = String::new();
    std::io::stdin().read_to_string(&mut given)?;
    let given: Value = serde_json::from_str(&given)?;
    let text = |name: &str| given[name].as_str().ok_or(format!("{name} is missing"));
    let body = text("body")?.as_bytes();
    let hmac = verify_push_signature(body, text("token")?, text("hmac")?);
    let ed25519 = verify_push_signature_ed25519(body, text("pubkey")?, text("ed25519")?);
    let verdict = |result: Result<(), _>| {
        result.map_or_else(|refusal: rvagent_a2a::server::push::PushError| refusal.to_string(), |()| "verified".into())
    };
    println!("{}", json!({ "hmac": verdict(hmac), "ed25519": verdict(ed25519) }));
    Ok(())
}
