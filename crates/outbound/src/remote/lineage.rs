//! What an agent is told of the task's place in its tree: in our extension's member of the metadata and in the ADR's.

use chancery_core::{Delegation, GOVERNANCE_EXTENSION, Turn};
use chancery_protocol::{Json, Metadata};
use serde_json::{Map, Value, json};

/// The ADR's member.
const VENDOR: &str = "ruvector";

/// What the caller said, with our own words in the two members that speak of lineage: what it said there was about its own call.
pub(super) fn told(turn: &Turn) -> Option<Metadata> {
    let Some(told) = ours(&turn.delegation) else { return turn.metadata.clone() };
    let said = turn.metadata.clone().unwrap_or_else(|| Metadata::from_object(Map::new()));
    // The ADR knows the context only.
    let of_adr: Map<String, Value> =
        told.get_key_value("context").map(|(name, value)| (name.clone(), value.clone())).into_iter().collect();
    let vendor = match said.text().contains(VENDOR).then(|| said.get(VENDOR)).flatten() {
        Some(Value::Object(mut vendor)) => {
            vendor.extend(of_adr.clone());
            vendor
        }
        _ => of_adr,
    };
    let member = |object: Map<String, Value>| Json::from_value(&Value::Object(object));
    Some(said.with_member(GOVERNANCE_EXTENSION, &member(told)).with_member(VENDOR, &member(vendor)))
}

fn ours(delegation: &Delegation) -> Option<Map<String, Value>> {
    let mut told = Map::new();
    told.insert("context".to_owned(), serde_json::to_value(delegation.context()?).ok()?);
    if let Some(token) = delegation.hop_token() {
        told.insert("hop_token".to_owned(), json!(token));
    }
    let granted = delegation.granted();
    if granted.usd.is_some() || granted.tokens.is_some() {
        let mut budget = Map::new();
        granted.usd.map(|usd| budget.insert("usd".to_owned(), json!(usd)));
        granted.tokens.map(|tokens| budget.insert("tokens".to_owned(), json!(tokens)));
        told.insert("budget".to_owned(), Value::Object(budget));
    }
    Some(told)
}
