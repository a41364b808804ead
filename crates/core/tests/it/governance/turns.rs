//! A task of several turns is charged for each once: also for messages that wait in line, and after a restart.

use std::sync::Arc;

use chancery_core::{MicroUsd, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Message, SendMessage, TaskId, TaskState};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata, until};

fn going_on(id: &TaskId, text: &str) -> SendMessage {
    let mut send = message(text, Value::Null);
    send.message = Arc::new(Message { task_id: Some(id.clone()), ..send.message.as_ref().clone() });
    send.configuration.return_immediately = true;
    send
}

/// Waits for leave, says what the task cost so far, and asks for more until it is told `end`.
fn asking(leave: &Arc<Semaphore>) -> impl TaskRunner {
    let leave = Arc::clone(leave);
    Acts(move |turn: Turn, mut updates: TaskUpdateSink| {
        let leave = Arc::clone(&leave);
        async move {
            tokio::select! {
                permit = leave.acquire() => permit.unwrap().forget(),
                () = turn.cancelled.cancelled() => return Ok(updates.canceled()),
            }
            let text = turn.message.first_text().unwrap_or_default();
            if let Some(cost) = text.strip_prefix("cost ") {
                updates.annotate(metadata(json!({ "usage": { "cost_usd": cost } }))).await?;
            }
            if text == "end" {
                return Ok(updates.complete(None));
            }
            let question = updates.text("more?");
            Ok(updates.input_required(question))
        }
    })
}

fn rules() -> Value {
    json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "0.20" } })
}

async fn spent(governed_plane: &GovernedPlane, id: &TaskId) -> (MicroUsd, MicroUsd) {
    let (governed, _) = governed_plane.plane.explain_task(id).await.unwrap().unwrap();
    (governed.spend.settled.usd, governed.spend.reserved.usd)
}

#[tokio::test]
async fn a_message_that_never_had_its_turn_costs_nothing() {
    let leave = Arc::new(Semaphore::new(0));
    let governed_plane = Plan::new(&rules()).agent("a", asking(&leave)).build();
    let ada = caller("ada");
    let task = governed_plane.begin(&ada, Value::Null).await.unwrap();
    for _ in 0..3 {
        governed_plane.send(&ada, going_on(&task.id, "wait in line")).await.unwrap();
    }
    let standing = governed_plane.standing("tree").unwrap();
    assert_eq!(standing.reserved.usd, MicroUsd(800_000), "each is held money for");
    assert_eq!(spent(&governed_plane, &task.id).await, (MicroUsd(0), MicroUsd(800_000)), "and the store knows it");
    let account = governed_plane.plane.budgets().remove(0).0;
    governed_plane.cancel(&ada, &task.id).await.unwrap();
    let (settled, reserved) = spent(&governed_plane, &task.id).await;
    assert_eq!((settled, reserved), (MicroUsd(200_000), MicroUsd(0)), "only the turn that ran is paid for, of {account:?}");
}

#[tokio::test]
async fn what_a_task_reports_is_counted_once_over_turns_that_waited_in_line() {
    let leave = Arc::new(Semaphore::new(0));
    let governed_plane = Plan::new(&rules()).agent("a", asking(&leave)).build();
    let ada = caller("ada");
    let mut first = message("cost 0.15", Value::Null);
    first.configuration.return_immediately = true;
    let task = governed_plane.send(&ada, first).await.unwrap();
    governed_plane.send(&ada, going_on(&task.id, "cost 0.30")).await.unwrap();
    governed_plane.send(&ada, going_on(&task.id, "cost 0.45")).await.unwrap();
    leave.add_permits(3);
    until(|| leave.available_permits() == 0 && governed_plane.standing("tree").unwrap().reserved.usd == MicroUsd(0)).await;
    assert_eq!(governed_plane.standing("tree").unwrap().settled.usd, MicroUsd(450_000), "0.15 for each of three turns");
    assert_eq!(spent(&governed_plane, &task.id).await, (MicroUsd(450_000), MicroUsd(0)));
}

#[tokio::test]
async fn what_a_later_turn_was_given_is_held_again_after_a_restart() {
    let leave = Arc::new(Semaphore::new(1));
    let governed_plane = Plan::new(&rules()).agent("a", asking(&leave)).build();
    let ada = caller("ada");
    let task = governed_plane.say(&ada, "cost 0.10").await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
    governed_plane.send(&ada, going_on(&task.id, "work on")).await.unwrap();
    assert_eq!(spent(&governed_plane, &task.id).await, (MicroUsd(100_000), MicroUsd(200_000)));
    // The node dies here; the next finds a turn that nobody knows the cost of.
    let mut plan = Plan::new(&rules()).agent("a", asking(&leave));
    plan.store = Arc::clone(&governed_plane.store);
    let after = plan.build();
    after.plane.recover().await.unwrap();
    assert_eq!(spent(&after, &task.id).await, (MicroUsd(300_000), MicroUsd(0)), "it counts at what was held");
}

#[tokio::test]
async fn what_a_running_task_got_more_is_known_after_a_restart() {
    let reporting = Acts(|_turn: Turn, mut updates: TaskUpdateSink| async move {
        updates.annotate(metadata(json!({ "usage": { "cost_usd": "0.70" } }))).await?;
        std::future::pending().await
    });
    let governed_plane = Plan::new(&rules()).agent("a", reporting).build();
    let task = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    assert_eq!(spent(&governed_plane, &task.id).await, (MicroUsd(0), MicroUsd(700_000)));
    let mut plan = Plan::new(&rules()).agent("a", crate::governance::governed_plane::quick());
    plan.store = Arc::clone(&governed_plane.store);
    let after = plan.build();
    after.plane.recover().await.unwrap();
    assert_eq!(spent(&after, &task.id).await, (MicroUsd(700_000), MicroUsd(0)));
}

#[tokio::test]
async fn turns_count_at_their_own_times_after_a_restart_too() {
    let window = json!({ "max_usd": "1", "window": "1m" });
    let rules = json!({ "budget": { "caller": { "ada": window }, "tree": { "max_usd": "10" } }, "prices": { "a": "0.90" } });
    let leave = Arc::new(Semaphore::new(3));
    let governed_plane = Plan::new(&rules).agent("a", asking(&leave)).build();
    let ada = caller("ada");
    let task = governed_plane.say(&ada, "first").await.unwrap();
    for text in ["second", "third"] {
        governed_plane.clock.advance(std::time::Duration::from_secs(120));
        governed_plane.send(&ada, going_on(&task.id, text)).await.unwrap();
        until(|| governed_plane.standing("tree").unwrap().reserved.usd == MicroUsd(0)).await;
    }
    governed_plane.clock.advance(std::time::Duration::from_secs(10));
    let of_caller = |governed_plane: &GovernedPlane| governed_plane.standing("caller:tenant/ada").unwrap().settled.usd;
    assert_eq!(of_caller(&governed_plane), MicroUsd(900_000));
    let mut plan = Plan::new(&rules).agent("a", asking(&leave));
    (plan.store, plan.clock) = (Arc::clone(&governed_plane.store), Arc::clone(&governed_plane.clock));
    let after = plan.build();
    after.plane.recover().await.unwrap();
    assert_eq!(of_caller(&after), MicroUsd(900_000), "of three turns one is in the window");
    assert_eq!(after.standing("tree").unwrap().settled.usd, MicroUsd(2_700_000), "and all are in the tree");
}

/// The parent holds all there is and lent half of it when the node died: both together never pass the cap.
#[tokio::test]
async fn a_lender_and_its_borrower_are_within_the_cap_after_a_restart() {
    let rules =
        json!({ "budget": { "tree": { "max_usd": "1" }, "global": { "max_usd_per_minute": "2" } }, "prices": { "b": "0.50" } });
    let lending = || {
        Acts(|turn: Turn, updates: TaskUpdateSink| async move {
            let _ = turn.delegation.call("b", message("wait", Value::Null).message.as_ref().clone()).await;
            Ok(updates.complete(None))
        })
    };
    let governed_plane = Plan::new(&rules).agent("a", lending()).agent("b", crate::governance::governed_plane::patient()).build();
    let root = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    until(|| governed_plane.store.logs().len() == 2).await;
    assert_eq!(governed_plane.standing("tree").unwrap().reserved.usd, MicroUsd(1_000_000));
    let mut plan = Plan::new(&rules).agent("a", lending()).agent("b", crate::governance::governed_plane::patient());
    plan.store = Arc::clone(&governed_plane.store);
    let after = plan.build();
    after.plane.recover().await.unwrap();
    let tasks = after.plane.trees(root.id.as_str()).await.unwrap().remove(0).tasks;
    let cost: i64 = tasks.iter().map(|task| task.spend.settled.usd.0 + task.spend.overrun.usd.0).sum();
    assert!(cost <= 1_000_000, "{tasks:?}");
    assert!(tasks.iter().all(|task| task.state == TaskState::Failed && task.spend.reserved.usd == MicroUsd(0)), "{tasks:?}");
    let global = after.standing("global").unwrap();
    assert_eq!(global.settled.usd.0, cost, "the node's own budget counts the same");
}

/// Nobody says what `a` costs but the policy, at most: that is what each turn is held at.
#[tokio::test]
async fn a_turn_that_reports_nothing_costs_its_estimate_whatever_the_turns_before_it_reported() {
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "policy": { "default": { "max_cost_usd": "0.10" } } });
    let leave = Arc::new(Semaphore::new(0));
    let governed_plane = Plan::new(&rules).agent("a", asking(&leave)).build();
    let ada = caller("ada");
    let mut first = message("cost 0.05", Value::Null);
    first.configuration.return_immediately = true;
    let task = governed_plane.send(&ada, first).await.unwrap();
    governed_plane.send(&ada, going_on(&task.id, "say nothing of cost")).await.unwrap();
    leave.add_permits(2);
    until(|| leave.available_permits() == 0 && governed_plane.standing("tree").unwrap().reserved.usd == MicroUsd(0)).await;
    assert_eq!(
        spent(&governed_plane, &task.id).await,
        (MicroUsd(150_000), MicroUsd(0)),
        "0.05 as reported, and 0.10 as estimated"
    );
    // What was never reported is no observation: the next turn is held at what the first one cost.
    governed_plane.send(&ada, going_on(&task.id, "wait")).await.unwrap();
    assert_eq!(governed_plane.standing("tree").unwrap().reserved.usd, MicroUsd(50_000));
}
