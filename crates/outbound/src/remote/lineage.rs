//! What metadata tells an agent of the task's place in its tree: our extension's member, and the ADR's.

use chancery_core::lineage::{AgentPath, TaskContext};
use chancery_core::{GOVERNANCE_EXTENSION, LineageHeaders, MicroUsd, SentLineage, Turn, token_header_bytes};
use chancery_protocol::{Json, Metadata};
use serde::Serialize;
use serde_json::{Map, Value};

use super::lineage_form::{LineageForm, LineageMembers, VENDOR};

/// What those members say of one call only. What the caller said of its own call is neither true of ours nor the agent's to have.
const OF_ONE_CALL: [&str; 4] = ["context", "hop_token", "budget", "estimate"];

/// The lineage for an agent, in its wire shape.
#[derive(Serialize)]
struct LineageMetadata<'a> {
    #[serde(rename = "https://chancery.dev/a2a/governance/v1", skip_serializing_if = "LineageMember::is_empty")]
    extension: LineageMember<'a>,
    #[serde(skip_serializing_if = "LineageMember::is_empty")]
    ruvector: LineageMember<'a>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct LineageMember<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a TaskContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hop_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
}

#[derive(Clone, Copy, Serialize)]
struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<MicroUsd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

impl LineageMember<'_> {
    fn is_empty(&self) -> bool {
        self.context.is_none() && self.hop_token.is_none() && self.budget.is_none()
    }
}

/// What goes beside the message: what the caller said there, with our own words on lineage. `complete` adds what a version wants
/// beside them. Notes how many bytes lineage adds to the call.
pub(super) fn told(
    turn: &Turn,
    form: LineageForm,
    complete: impl FnOnce(Option<Metadata>) -> Option<Metadata>,
) -> Option<Metadata> {
    let headers = turn.delegation.lineage_headers(turn.tracestate.as_ref());
    let in_header = headers.hop_token.as_deref().filter(|_| !form.token_in_header).map_or(0, token_header_bytes);
    let in_headers = headers.bytes - in_header;
    let (ours, cut) = members(turn, form, &headers, headers.max_bytes.saturating_sub(in_headers));
    let told = complete(joined(turn.metadata.as_ref(), ours));
    let length = |metadata: Option<&Metadata>| metadata.map_or(0, |metadata| metadata.text().len());
    let added = length(told.as_ref()).saturating_sub(length(turn.metadata.as_ref()));
    let (bytes, max_bytes) = (in_headers + added, headers.max_bytes);
    turn.delegation.note_sent(SentLineage { by: form.name(), bytes, max_bytes, cut: cut || headers.cut });
    told
}

/// The node's members, in at most so many bytes, and whether something was left out for that: the oldest
/// agents of the path, then the context, then the token. A budget is never left out, because it binds the
/// called agent.
fn members(turn: &Turn, form: LineageForm, headers: &LineageHeaders, room: usize) -> (Option<Metadata>, bool) {
    let granted = turn.delegation.granted();
    let capped = granted.usd.is_some() || granted.tokens.is_some();
    let budget = capped.then_some(Budget { usd: granted.usd, tokens: granted.tokens });
    let mut hop_token = headers.hop_token.as_deref().filter(|_| form.token_in_metadata);
    if form.members == LineageMembers::None {
        return (None, false);
    }
    let mut context = turn.delegation.written_context(form.naming);
    let mut cut = false;
    loop {
        let (nothing, all) = (LineageMember::default(), LineageMember { context: context.as_ref(), hop_token, budget });
        let told = Metadata::of(&match form.members {
            LineageMembers::None | LineageMembers::Extension => LineageMetadata { extension: all, ruvector: nothing },
            LineageMembers::Vendor => LineageMetadata { extension: nothing, ruvector: all },
            LineageMembers::Both => {
                let ruvector = LineageMember { context: all.context, ..nothing };
                LineageMetadata { extension: LineageMember { context: None, ..all }, ruvector }
            }
        });
        if told.text().len() <= room {
            return (Some(told), cut);
        }
        match &mut context {
            Some(shorter) if !shorter.visited_agents.is_empty() => {
                let newer = shorter.visited_agents.to_vec().into_iter().skip(1);
                shorter.visited_agents = AgentPath::new(newer);
            }
            Some(_) => context = None,
            None if hop_token.is_some() => hop_token = None,
            None => return (Some(told), cut),
        }
        cut = true;
    }
}

/// What the caller said with our members in it.
fn joined(said: Option<&Metadata>, ours: Option<Metadata>) -> Option<Metadata> {
    let Some(said) = said else { return ours };
    let Some(ours) = ours else { return Some(passed_on(said)) };
    if [GOVERNANCE_EXTENSION, VENDOR].iter().all(|name| !may_have(said, name)) {
        return Some(said.merged(&ours));
    }
    let mut joined = passed_on(said);
    for name in [GOVERNANCE_EXTENSION, VENDOR] {
        if let Some(Value::Object(told)) = ours.get(name) {
            joined = joined.with(name, Json::from_value(&Value::Object(member(said, name, told))));
        }
    }
    Some(joined)
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

/// Whether metadata may have one of our members.
pub(super) fn may_speak_of_call(metadata: &Metadata) -> bool {
    [GOVERNANCE_EXTENSION, VENDOR].iter().any(|name| may_have(metadata, name))
}

/// The metadata of an answer, without our own words to the agent. `None` if there is nothing else.
pub(super) fn returned(said: &Metadata) -> Option<Metadata> {
    let cleaned = passed_on(said);
    let is_emptied = |name: &str| {
        let empty = Value::Object(Map::new());
        cleaned.get(name).is_some_and(|now| now == empty) && said.get(name).is_some_and(|before| before != empty)
    };
    let emptied = [GOVERNANCE_EXTENSION, VENDOR].map(is_emptied);
    if emptied == [false, false] {
        return Some(cleaned);
    }
    cleaned.retained(|name, _| !([GOVERNANCE_EXTENSION, VENDOR].iter().zip(emptied).any(|(ours, gone)| gone && name == *ours)))
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
    fn what_an_agent_copies_of_our_words_is_taken_out_of_its_answer() {
        let ours = json!({ "context": { "depth": 1 }, "hop_token": "t" });
        let copied = metadata(&json!({ "own": 1, "ruvector": { "context": {} }, GOVERNANCE_EXTENSION: ours }));
        assert_eq!(returned(&copied).map(|left| Value::Object(left.to_object())), Some(json!({ "own": 1 })));
        let account =
            metadata(&json!({ "ruvector": { "context": {} }, GOVERNANCE_EXTENSION: { "cost": { "usd": 1 }, "context": {} } }));
        let left = json!({ GOVERNANCE_EXTENSION: { "cost": { "usd": 1 } } });
        assert_eq!(returned(&account).map(|left| Value::Object(left.to_object())), Some(left));
        assert_eq!(returned(&metadata(&json!({ GOVERNANCE_EXTENSION: ours }))), None);
        let empty = metadata(&json!({ "ruvector": {} }));
        assert_eq!(returned(&empty), Some(empty));
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
        assert_eq!(returned(&other), Some(other));
        let escaped: Metadata = serde_json::from_str(r#"{"\u0072uvector":{"hop_token":"t"}}"#).unwrap();
        assert_eq!(Value::Object(passed_on(&escaped).to_object()), json!({ "ruvector": {} }));
    }
}
