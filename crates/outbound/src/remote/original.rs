//! Metadata for agents of the original protocol: those built on `rvagent-a2a` refuse a task without it.

use chancery_protocol::{Json, Metadata, TraceId};
use serde_json::{Value, json};

const VENDOR: &str = "ruvector";

/// What the caller said, with a skill and a lineage where it said nothing of them.
pub(crate) fn told(metadata: Option<&Metadata>, skill: &str, trace: TraceId) -> Metadata {
    let said = metadata.cloned().unwrap_or_else(Metadata::empty);
    let Ok(mut vendor) = said.member(VENDOR).map_or_else(|| Ok(Metadata::empty()), Metadata::try_from) else {
        return said;
    };
    // An agent without a name is nobody in particular.
    let nobodys = || json!({ "trace_id": trace.to_string(), "depth": 0, "root_agent_id": "" });
    let context = vendor.member("context").map_or_else(nobodys, |context| without_the_root(context.to_value()));
    vendor = vendor.with("context", Json::from_value(&context));
    if vendor.member("skill").is_none() {
        vendor = vendor.with("skill", Json::from_value(&json!(skill)));
    }
    said.with(VENDOR, vendor.into_json())
}

/// Servers of that crate take a task for a loop whose path begins with its root, as every path does.
fn without_the_root(mut context: Value) -> Value {
    let root = context.get("root_agent_id").cloned();
    if let Some(visited) = context.get_mut("visited_agents").and_then(Value::as_array_mut) {
        visited.retain(|agent| Some(agent) != root.as_ref());
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(value: Value) -> Metadata {
        let Value::Object(object) = value else { unreachable!() };
        Metadata::from_object(object)
    }

    #[test]
    fn what_the_caller_said_stays_and_the_rest_is_added() {
        let said = metadata(json!({ "a": 1, "ruvector": { "skill": "paint", "policy": {} } }));
        let told = told(Some(&said), "obey", TraceId(0xab)).to_object();
        assert_eq!(told["a"], json!(1));
        let context = json!({ "trace_id": "000000000000000000000000000000ab", "depth": 0, "root_agent_id": "" });
        assert_eq!(told["ruvector"], json!({ "skill": "paint", "policy": {}, "context": context }));
    }

    #[test]
    fn the_root_is_not_among_those_that_were_visited() {
        let context = json!({ "depth": 1, "root_agent_id": "a", "visited_agents": ["a", "b"] });
        let told = told(Some(&metadata(json!({ "ruvector": { "context": context } }))), "obey", TraceId(1)).to_object();
        assert_eq!(told["ruvector"]["context"]["visited_agents"], json!(["b"]));
    }

    #[test]
    fn a_skill_and_a_lineage_are_named_when_the_caller_named_none() {
        let told = told(None, "obey", TraceId(1)).to_object();
        assert_eq!(told["ruvector"]["skill"], json!("obey"));
        assert_eq!(told["ruvector"]["context"]["depth"], json!(0));
    }
}
