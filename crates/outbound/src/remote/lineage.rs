//! What an agent is told of the task's place in its tree: in our extension's member of the metadata and in the ADR's.

use chancery_core::{Delegation, GOVERNANCE_EXTENSION, Turn};
use chancery_protocol::Metadata;
use serde_json::{Map, Value, json};

/// The ADR's member.
const VENDOR: &str = "ruvector";

/// What the caller said, with our own words in the two members that speak of lineage: what it said there was about its own call.
pub(super) fn told(turn: &Turn) -> Option<Metadata> {
    let Some(context) = turn.delegation.context().and_then(|context| serde_json::to_value(context).ok()) else {
        return turn.metadata.clone();
    };
    // The ADR knows the context only, beside what callers put there.
    let said_there = turn.metadata.as_ref().filter(|said| said.text().contains(VENDOR)).and_then(|said| said.get(VENDOR));
    let mut vendor = match said_there {
        Some(Value::Object(vendor)) => vendor,
        _ => Map::new(),
    };
    vendor.insert("context".to_owned(), context.clone());
    let mut ours = Map::new();
    ours.insert(GOVERNANCE_EXTENSION.to_owned(), governance(&turn.delegation, context));
    ours.insert(VENDOR.to_owned(), Value::Object(vendor));
    let ours = Metadata::from_object(ours);
    Some(turn.metadata.as_ref().map_or_else(|| ours.clone(), |said| said.merged(&ours)))
}

fn governance(delegation: &Delegation, context: Value) -> Value {
    let mut told = Map::new();
    told.insert("context".to_owned(), context);
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
    Value::Object(told)
}
