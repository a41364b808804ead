//! Cards to sign, and every small way to change one.

use chancery_identity::SigningKey;
use chancery_identity::keys::Cards;
use serde_json::{Value, json};

pub(crate) fn key(number: u8) -> SigningKey<Cards> {
    SigningKey::from_seed(&format!("{number:02x}").repeat(32)).unwrap()
}

pub(crate) fn original_card() -> Value {
    json!({
        "name": "écho \u{1f600}", "description": "Says it again\n", "url": "https://agent.example/", "version": "1.2.3",
        "provider": {"organization": "Example", "url": "https://example.com"},
        "documentationUrl": "https://example.com/docs",
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": false},
        "authentication": {"schemes": ["bearer"]},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "inputModes": ["text/plain"], "outputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": ["t"], "examples": ["hi"], "inputModes": [], "outputModes": []}],
        "metadata": {"ruvector": {"memory": {"witness_format_version": 2, "share": 0.25, "of": 1e21}}},
    })
}

pub(crate) fn card_1_0() -> Value {
    json!({
        "name": "écho \u{1f600}", "description": "Says it again\n", "version": "1.2.3",
        "supportedInterfaces": [
            {"url": "https://agent.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "agent.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "t"}],
        "provider": {"organization": "Example", "url": "https://example.com"},
        "documentationUrl": "https://example.com/docs", "iconUrl": "https://example.com/icon",
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": true, "extensions": [
            {"uri": "urn:x", "description": "d", "required": true, "params": {"n": 1.5, "list": [1, "two", true], "more": {"a": "b"}}}]},
        "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "oauth": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://i.example", "scopes": {"s": "all"}}}}}},
        "securityRequirements": [{"schemes": {"oauth": {"list": ["s"]}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": ["t"], "examples": ["hi"]}],
    })
}

/// The same with empty members, which the specification's form and the SDKs' treat differently.
pub(crate) fn sparse_card_1_0() -> Value {
    let mut card = card_1_0();
    card["description"] = json!("");
    card["skills"][0]["tags"] = json!([]);
    card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
    card["securitySchemes"]["mtls"] = json!({"mtlsSecurityScheme": {}});
    card["capabilities"]["extensions"][0]["required"] = json!(false);
    card
}

pub(crate) fn card_0_3() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "écho", "description": "Says it again", "url": "https://agent.example/",
        "preferredTransport": "JSONRPC", "version": "1.2.3",
        "additionalInterfaces": [{"url": "https://agent.example/", "transport": "JSONRPC"}],
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": false},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}, "security": [{"key": []}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Say", "description": "Says", "tags": []}],
    })
}

/// The text with one bit changed, for every bit that leaves it UTF-8.
pub(crate) fn flips(text: &str) -> impl Iterator<Item = String> {
    let bits = text.len() * 8;
    (0..bits).filter_map(move |bit| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        String::from_utf8(bytes).ok()
    })
}

/// Each member and item replaced, removed, and something added, one at a time, named by what was done.
pub(crate) fn every_change(card: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    collect(card, String::new(), &mut paths);
    let mut changes = Vec::new();
    for path in &paths {
        let mut replaced = card.clone();
        let place = replaced.pointer_mut(path).unwrap();
        *place = match place {
            Value::Bool(set) => json!(!*set),
            Value::String(text) => json!(format!("{text}.")),
            Value::Number(number) => json!(number.as_f64().unwrap() + 1e22),
            _ => json!("other"),
        };
        changes.push((format!("{path} replaced"), replaced));
        let mut removed = card.clone();
        let (parent, name) = path.rsplit_once('/').unwrap();
        match removed.pointer_mut(parent).unwrap() {
            Value::Object(members) => drop(members.remove(name)),
            Value::Array(items) => drop(items.remove(name.parse().unwrap())),
            _ => unreachable!("only containers have places"),
        }
        changes.push((format!("{path} removed"), removed));
    }
    let mut added = card.clone();
    added["added"] = json!("more");
    changes.push(("/added added".to_owned(), added));
    changes
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    let mut go = |name: &str, inner: &Value| {
        let here = format!("{path}/{name}");
        paths.push(here.clone());
        collect(inner, here, paths);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| go(name, inner)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, inner)| go(&at.to_string(), inner)),
        _ => {}
    }
}
