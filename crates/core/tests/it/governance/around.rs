//! A call that comes back around through another node is charged once: where it was done.

use std::sync::Arc;

use chancery_core::{GOVERNANCE_EXTENSION, MicroUsd, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::CallContext;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, agent_caller, caller, metadata, quick, to, until};

/// Stands for a node elsewhere: it is done when it may be, and says what all that was done for the task cost.
fn gateway(leave: &Arc<Notify>, says: Value) -> impl TaskRunner {
    let leave = Arc::clone(leave);
    Acts(move |_turn: Turn, mut updates: TaskUpdateSink| {
        let (leave, says) = (Arc::clone(&leave), says.clone());
        async move {
            leave.notified().await;
            updates.annotate(metadata(json!({ GOVERNANCE_EXTENSION: says }))).await?;
            Ok(updates.complete(None))
        }
    })
}

/// What the task cost that went around, and all of its tree, when `c` was called for it at 0.01.
async fn cost(says: Value, asked: bool) -> (MicroUsd, MicroUsd) {
    let leave = Arc::new(Notify::new());
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "c": "0.01" } });
    let governed_plane: GovernedPlane = Plan::new(&rules).agent("p", gateway(&leave, says)).agent("c", quick()).build();
    let root = governed_plane.begin(&caller("ada"), json!({ "ruvector": { "estimate": { "usd": "0.50" } } })).await.unwrap();
    let extensions = if asked { vec![GOVERNANCE_EXTENSION.to_owned()] } else { Vec::new() };
    governed_plane.say(&CallContext { extensions, ..to("c", agent_caller("p")) }, "around").await.unwrap();
    leave.notify_one();
    until(|| governed_plane.store.logs().iter().all(|(stored, _)| stored.progress.state.is_terminal())).await;
    let tasks = governed_plane.plane.trees(root.id.as_str()).await.unwrap().remove(0).tasks;
    assert_eq!(tasks.len(), 2, "the call was put under the task");
    let all = tasks.iter().map(|task| task.spend.settled.usd.0).sum();
    (tasks[0].spend.settled.usd, MicroUsd(all))
}

fn usd(micros: i64, all: i64) -> (MicroUsd, MicroUsd) {
    (MicroUsd(micros), MicroUsd(all))
}

#[tokio::test]
async fn what_was_done_here_for_a_node_that_reports_it_again_is_charged_once() {
    let says = json!({ "cost": { "usd": "0.05" }, "subtree_cost": { "usd": "0.06", "tasks": 2 } });
    assert_eq!(cost(says, true).await, usd(50_000, 60_000));
    let says = json!({ "subtree_cost": { "usd": "0.06", "tasks": 2 } });
    assert_eq!(cost(says, true).await, usd(50_000, 60_000), "also where it does not say what is its own");
}

#[tokio::test]
async fn what_an_agent_says_is_its_own_is_charged_whatever_was_done_here() {
    let says = json!({ "cost": { "usd": "0.06" }, "subtree_cost": { "usd": "0.06", "tasks": 1 } });
    assert_eq!(cost(says, true).await, usd(60_000, 70_000));
    let says = json!({ "cost": { "usd": "0.06" } });
    assert_eq!(cost(says, true).await, usd(60_000, 70_000), "it does not speak of what others did");
    let says = json!({ "cost": { "usd": "0" }, "subtree_cost": { "usd": "0.004", "tasks": 1 } });
    assert_eq!(cost(says, true).await, usd(0, 10_000), "and never less than nothing");
}

#[tokio::test]
async fn what_nobody_was_told_of_is_not_in_what_they_report() {
    let says = json!({ "cost": { "usd": "0.05" }, "subtree_cost": { "usd": "0.06", "tasks": 2 } });
    assert_eq!(cost(says, false).await, usd(60_000, 70_000));
}
