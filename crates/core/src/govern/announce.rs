//! Tells a caller that asked for it what a task cost, what the tasks below it cost, and what is left.

use std::sync::Arc;

use chancery_protocol::{Json, Message, Metadata, StatusChange, TaskEvent};
use serde_json::{Value, json};

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
        let metadata = metadata.unwrap_or_else(Metadata::empty);
        Some(metadata.with(GOVERNANCE_EXTENSION, account.clone()).with(VENDOR, account.clone()))
    };
    match withhold(event) {
        TaskEvent::Status(StatusChange { status, metadata, unknown }) => {
            TaskEvent::Status(StatusChange { status, metadata: with(metadata), unknown })
        }
        TaskEvent::Replied(mut message) => {
            let said = Arc::make_mut(&mut message);
            said.metadata = with(said.metadata.take());
            TaskEvent::Replied(message)
        }
        event => event,
    }
}

/// Takes out the account of another node, which was asked for by us and not by the caller.
pub(crate) fn withhold(event: TaskEvent) -> TaskEvent {
    match event {
        TaskEvent::Status(mut change) => {
            change.metadata = without_account(change.metadata);
            change.status.message = change.status.message.map(unsaid);
            TaskEvent::Status(change)
        }
        TaskEvent::Replied(message) => TaskEvent::Replied(unsaid(message)),
        event => event,
    }
}

fn unsaid(mut message: Arc<Message>) -> Arc<Message> {
    if message.metadata.as_ref().is_some_and(has_account) {
        let said = Arc::make_mut(&mut message);
        said.metadata = without_account(said.metadata.take());
    }
    message
}

/// Looks without parsing: hardly any metadata has one.
fn has_account(metadata: &Metadata) -> bool {
    metadata.text().contains(GOVERNANCE_EXTENSION)
}

fn without_account(metadata: Option<Metadata>) -> Option<Metadata> {
    let metadata = metadata?;
    let Some(account) = has_account(&metadata).then(|| metadata.member(GOVERNANCE_EXTENSION)).flatten() else {
        return Some(metadata);
    };
    let mirrored = metadata.member(VENDOR).is_some_and(|vendor| vendor == account);
    let rest = metadata.without(GOVERNANCE_EXTENSION)?;
    if mirrored { rest.without(VENDOR) } else { Some(rest) }
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

#[cfg(test)]
mod tests {
    use chancery_protocol::Role;

    use super::*;

    #[test]
    fn an_account_nobody_asked_for_goes_no_further_and_all_else_does() {
        let uri = GOVERNANCE_EXTENSION;
        for (said, passed) in [
            (format!(r#"{{"{uri}":{{"cost":1}},"ruvector":{{"cost":1}}}}"#), None),
            (format!(r#"{{"a":1.0,"{uri}":{{"cost":1}},"ruvector":{{"cost":1}}}}"#), Some(r#"{"a":1.0}"#)),
            (format!(r#"{{"{uri}":{{"cost":1}},"ruvector":{{"own":1}}}}"#), Some(r#"{"ruvector":{"own":1}}"#)),
            (r#"{"ruvector":{"cost":1.0}}"#.to_owned(), Some(r#"{"ruvector":{"cost":1.0}}"#)),
            (format!(r#"{{"see":"{uri}"}}"#), Some(&*format!(r#"{{"see":"{uri}"}}"#))),
        ] {
            let mut message = Message::text(Role::Agent, "m", "done");
            message.metadata = Some(serde_json::from_str(&said).unwrap());
            let TaskEvent::Replied(message) = withhold(TaskEvent::Replied(Arc::new(message))) else { panic!("another event") };
            assert_eq!(message.metadata.as_ref().map(Metadata::text), passed, "{said}");
        }
    }
}
