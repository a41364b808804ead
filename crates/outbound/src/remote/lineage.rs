//! What an agent is told of the task's place in its tree: in our extension's member of the metadata and in the ADR's.

use chancery_core::{Delegation, GOVERNANCE_EXTENSION, Turn};
use chancery_protocol::{Json, Metadata};
use serde_json::{Map, Value, json};

/// The ADR's member.
const VENDOR: &str = "ruvector";

/// What those members say of one call only. What the caller said of its own call is neither true of ours nor the agent's to have.
const OF_ONE_CALL: [&str; 4] = ["context", "hop_token", "budget", "estimate"];

/// What goes beside the message: what the caller said there, with our own words on lineage.
pub(super) fn told(turn: &Turn) -> Option<Metadata> {
    let Some(context) = turn.delegation.context().and_then(|context| serde_json::to_value(context).ok()) else {
        return turn.metadata.clone();
    };
    let empty = Metadata::empty();
    let said = turn.metadata.as_ref().unwrap_or(&empty);
    // The ADR knows the context only.
    let of_adr = Map::from_iter([("context".to_owned(), context.clone())]);
    let mut ours = Map::new();
    ours.insert(
        GOVERNANCE_EXTENSION.to_owned(),
        Value::Object(member(said, GOVERNANCE_EXTENSION, governance(&turn.delegation, context))),
    );
    ours.insert(VENDOR.to_owned(), Value::Object(member(said, VENDOR, of_adr)));
    Some(said.merged(&Metadata::from_object(ours)))
}

/// The metadata of the message itself, without what its caller said of its own call.
pub(super) fn passed_on(said: &Metadata) -> Metadata {
    let mut passed_on = said.clone();
    for name in [GOVERNANCE_EXTENSION, VENDOR].into_iter().filter(|name| may_have(said, name)) {
        if let Some(Value::Object(object)) = said.get(name)
            && OF_ONE_CALL.iter().any(|word| object.contains_key(*word))
        {
            passed_on = passed_on.with(name, Json::from_value(&Value::Object(member(said, name, Map::new()))));
        }
    }
    passed_on
}

/// What the caller said in a member, with this in the place of what was about its own call.
fn member(said: &Metadata, name: &str, told: Map<String, Value>) -> Map<String, Value> {
    match may_have(said, name).then(|| said.get(name)).flatten() {
        Some(Value::Object(mut object)) => {
            object.retain(|word, _| !OF_ONE_CALL.contains(&word.as_str()));
            object.extend(told);
            object
        }
        _ => told,
    }
}

/// Looks without parsing. A name can be written with escapes.
fn may_have(said: &Metadata, name: &str) -> bool {
    said.text().contains(name) || said.text().contains('\\')
}

fn governance(delegation: &Delegation, context: Value) -> Map<String, Value> {
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
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(value: &Value) -> Metadata {
        Metadata::from_object(value.as_object().unwrap().clone())
    }

    #[test]
    fn what_a_caller_said_of_its_own_call_does_not_reach_the_agent_and_all_else_does() {
        let of_call = json!({ "hop_token": "t", "budget": { "usd": 5 }, "estimate": { "usd": 1 }, "context": {}, "skill": "s", "more": [1] });
        let said = metadata(&json!({ "a": 1, "ruvector": of_call, GOVERNANCE_EXTENSION: of_call }));
        let kept = json!({ "skill": "s", "more": [1] });
        let expected = json!({ "a": 1, "ruvector": kept, GOVERNANCE_EXTENSION: kept });
        assert_eq!(Value::Object(passed_on(&said).to_object()), expected);
        let other = metadata(&json!({ "ruvector": { "skill": "s" }, "hop_token": "of another kind" }));
        assert_eq!(passed_on(&other), other);
        let escaped: Metadata = serde_json::from_str(r#"{"\u0072uvector":{"hop_token":"t"}}"#).unwrap();
        assert_eq!(Value::Object(passed_on(&escaped).to_object()), json!({ "ruvector": {} }));
    }
}
