//! Tells a caller that asked for it what a task cost, what the tasks below it cost, and what is left.

use std::sync::Arc;

use chancery_protocol::{Json, Metadata, StatusChange, TaskEvent};
use serde_json::{Map, Value, json};

use super::allot::Closed;
use super::report::Report;
use super::terms::GOVERNANCE_EXTENSION;
use super::trees::Node;

/// The ADR's place for the same.
const VENDOR: &str = "ruvector";

/// Adds the account to the metadata of a task's last event.
pub(crate) fn announce(event: TaskEvent, node: &Node, closed: &Closed, report: &Report) -> TaskEvent {
    let account = Json::from_value(&account(node, closed, report));
    let with = |metadata: Option<Metadata>| {
        let metadata = metadata.unwrap_or_else(|| Metadata::from_object(Map::new()));
        Some(metadata.with_member(GOVERNANCE_EXTENSION, &account).with_member(VENDOR, &account))
    };
    match event {
        TaskEvent::Status(StatusChange { status, metadata }) => {
            TaskEvent::Status(StatusChange { status, metadata: with(metadata) })
        }
        TaskEvent::Replied(mut message) => {
            let said = Arc::make_mut(&mut message);
            said.metadata = with(said.metadata.take());
            TaskEvent::Replied(message)
        }
        event => event,
    }
}

fn account(node: &Node, closed: &Closed, report: &Report) -> Value {
    let Closed { spend, subtree, remaining } = closed;
    let cost = spend.settled.saturating_add(spend.overrun);
    let mut account = json!({
        "cost": { "usd": cost.usd, "source": spend.known_by },
        "subtree_cost": { "usd": subtree.usd, "tasks": subtree.tasks },
        "remaining": { "usd": remaining.usd, "tokens": remaining.tokens },
        "lineage": {
            "trace_id": node.kinship.trace.to_string(),
            "depth": node.kinship.depth,
            "attribution": node.kinship.attribution,
        },
    });
    for (name, tokens) in report.tokens_by_name() {
        account[name] = json!(tokens);
    }
    if spend.overrun.usd.0 > 0 {
        account["overrun"] = json!({ "usd": spend.overrun.usd });
    }
    account
}
