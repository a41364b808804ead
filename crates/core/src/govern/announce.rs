//! Tells a caller that asked for it what a task cost, what the tasks below it cost, and what is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_protocol::raw_json::member;
use chancery_protocol::{Message, Metadata, StatusChange, TaskEvent, TraceId};
use chancery_rules::MicroUsd;
use chancery_rules::budget::ActualSource;
use chancery_rules::lineage::Attribution;
use serde::Serialize;
use serde_json::Value;

use super::allot::SettledTurn;
use super::node::{SubtreeCost, TreeNode};
use super::report::CostReport;
use super::terms::GOVERNANCE_EXTENSION;
use crate::memory_looks::MemoryLooks;

/// The ADR's place for the same.
const VENDOR: &str = "ruvector";

/// Adds the account to the metadata of a task's last event.
pub(crate) fn announce(
    event: TaskEvent,
    node: &TreeNode,
    closed: &SettledTurn,
    report: &CostReport,
    memory_looks: &MemoryLooks,
) -> TaskEvent {
    let account = account(node, closed, report, memory_looks).into_json();
    let with = |metadata: Option<Metadata>| {
        let ours = Metadata::of(&BTreeMap::from([(GOVERNANCE_EXTENSION, &account), (VENDOR, &account)]));
        Some(metadata.map_or_else(|| ours.clone(), |metadata| metadata.merged(&ours)))
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
    let account = has_account(&metadata).then(|| member(metadata.text(), GOVERNANCE_EXTENSION)).flatten();
    let Some(account) = account else { return Some(metadata) };
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let mirrors = |text: &str| text == account || value(text).is_some_and(|said| Some(said) == value(account));
    metadata.retained(|name, text| !(name == GOVERNANCE_EXTENSION || name == VENDOR && mirrors(text)))
}

/// The account, in its wire shape.
#[derive(Serialize)]
struct Account<'a> {
    cost: Cost,
    subtree_cost: SubtreeCost,
    remaining: Remaining,
    lineage: Lineage<'a>,
    #[serde(flatten)]
    tokens: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overrun: Option<Overrun>,
    #[serde(skip_serializing_if = "MemoryLooks::is_empty")]
    memory_looks: &'a MemoryLooks,
}

#[derive(Serialize)]
struct Cost {
    usd: MicroUsd,
    source: Option<ActualSource>,
}

#[derive(Serialize)]
struct Remaining {
    usd: Option<MicroUsd>,
    tokens: Option<u64>,
}

#[derive(Serialize)]
struct Lineage<'a> {
    trace_id: TraceId,
    depth: u32,
    attribution: &'a Attribution,
}

#[derive(Serialize)]
struct Overrun {
    usd: MicroUsd,
}

fn account(node: &TreeNode, closed: &SettledTurn, report: &CostReport, memory_looks: &MemoryLooks) -> Metadata {
    let SettledTurn { spend, subtree, remaining } = *closed;
    let kinship = &node.kinship;
    Metadata::of(&Account {
        cost: Cost { usd: spend.settled.saturating_add(spend.overrun).usd, source: spend.known_by },
        subtree_cost: subtree,
        remaining: Remaining { usd: remaining.usd, tokens: remaining.tokens },
        lineage: Lineage { trace_id: kinship.trace, depth: kinship.depth, attribution: &kinship.attribution },
        tokens: report.tokens_by_name().collect(),
        overrun: (spend.overrun.usd.0 > 0).then_some(Overrun { usd: spend.overrun.usd }),
        memory_looks,
    })
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
