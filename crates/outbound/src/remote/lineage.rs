//! What an agent is told of the task's place in its tree: in our extension's member of the metadata and in the ADR's.

use chancery_core::{GOVERNANCE_EXTENSION, MicroUsd, Turn};
use chancery_protocol::{Json, Metadata};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The ADR's member.
const VENDOR: &str = "ruvector";

/// What those members say of one call only. What the caller said of its own call is neither true of ours nor the agent's to have.
const OF_ONE_CALL: [&str; 4] = ["context", "hop_token", "budget", "estimate"];

/// What an agent is told, in the shape it is told in.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(rename = "https://chancery.dev/a2a/governance/v1")]
    governance: Governance<'a>,
    /// The ADR knows the context only.
    ruvector: Adr<'a>,
}

#[derive(Serialize)]
struct Governance<'a> {
    context: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    hop_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
}

#[derive(Serialize)]
struct Adr<'a> {
    context: &'a RawValue,
}

#[derive(Serialize)]
struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

/// What goes beside the message: what the caller said there, with our own words on lineage.
pub(super) fn told(turn: &Turn) -> Option<Metadata> {
    let Some(context) = turn.delegation.context().and_then(|context| to_raw_value(&context).ok()) else {
        return turn.metadata.clone();
    };
    let (token, granted) = (turn.delegation.hop_token(), turn.delegation.granted());
    let capped = granted.usd.is_some() || granted.tokens.is_some();
    let told = Metadata::of(&Told {
        governance: Governance {
            context: &context,
            hop_token: token.as_deref(),
            budget: capped.then_some(Budget { usd: granted.usd, tokens: granted.tokens }),
        },
        ruvector: Adr { context: &context },
    });
    let Some(said) = &turn.metadata else { return Some(told) };
    if [GOVERNANCE_EXTENSION, VENDOR].iter().all(|name| !may_have(said, name)) {
        return Some(said.merged(&told));
    }
    let both = |name: &str| {
        let told = match told.get(name) {
            Some(Value::Object(told)) => told,
            _ => Map::new(),
        };
        Json::from_value(&Value::Object(member(said, name, told)))
    };
    Some(said.with(GOVERNANCE_EXTENSION, both(GOVERNANCE_EXTENSION)).with(VENDOR, both(VENDOR)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
