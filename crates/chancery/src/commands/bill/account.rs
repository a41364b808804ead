//! What an answer says of cost and lineage, on one line.

use chancery::protocol::Metadata;
use chancery_core::GOVERNANCE_EXTENSION;
use serde_json::Value;

use crate::commands::show;

/// Nothing if the answer has no such account.
pub(in crate::commands) fn line(metadata: Option<&Metadata>) -> Option<String> {
    let account = metadata?.get(GOVERNANCE_EXTENSION)?;
    let (cost, subtree, left, lineage) = (&account["cost"], &account["subtree_cost"], &account["remaining"], &account["lineage"]);
    let mut said = vec![format!("cost {} USD ({})", show::text(&cost["usd"]), show::text(&cost["source"]))];
    let tokens = |name: &str| account[name].as_u64();
    if let (Some(input), Some(output)) = (tokens("gen_ai.usage.input_tokens"), tokens("gen_ai.usage.output_tokens")) {
        said.push(format!("{input}+{output} tokens"));
    }
    if subtree["tasks"].as_u64().is_some_and(|tasks| tasks > 1) {
        said.push(format!("{} USD in {} tasks", show::text(&subtree["usd"]), subtree["tasks"]));
    }
    let left = [("usd", "USD"), ("tokens", "tokens")].into_iter().filter(|(of, _)| !left[of].is_null());
    said.extend(left.map(|(of, unit)| format!("{} {unit} left", show::text(&account["remaining"][of]))));
    let place = |name: &str| match &lineage[name] {
        Value::Null => String::new(),
        known => show::text(known),
    };
    said.push(format!("trace {} depth {} ({})", place("trace_id"), place("depth"), place("attribution")));
    Some(said.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(account: Value) -> Option<String> {
        let Value::Object(metadata) = json!({ GOVERNANCE_EXTENSION: account }) else { unreachable!() };
        line(Some(&Metadata::from_object(metadata)))
    }

    #[test]
    fn an_account_is_one_line_with_only_what_there_is_to_say() {
        let lineage = json!({ "trace_id": "ab", "depth": 0, "attribution": "root" });
        let least = json!({
            "cost": { "usd": "0", "source": "estimated" }, "subtree_cost": { "usd": "0", "tasks": 1 },
            "remaining": { "usd": null, "tokens": null }, "lineage": lineage,
        });
        assert_eq!(told(least).unwrap(), "cost 0 USD (estimated), trace ab depth 0 (root)");
        let most = json!({
            "cost": { "usd": "0.02", "source": "reported" }, "subtree_cost": { "usd": "0.05", "tasks": 3 },
            "remaining": { "usd": "0.95", "tokens": 10 }, "lineage": lineage,
            "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2,
        });
        let line =
            "cost 0.02 USD (reported), 7+2 tokens, 0.05 USD in 3 tasks, 0.95 USD left, 10 tokens left, trace ab depth 0 (root)";
        assert_eq!(told(most).unwrap(), line);
        assert_eq!(line_of_nothing(), None);
    }

    fn line_of_nothing() -> Option<String> {
        line(Some(&Metadata::from_object(serde_json::Map::new()))).or_else(|| line(None))
    }
}
