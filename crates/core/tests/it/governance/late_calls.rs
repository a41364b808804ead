//! Agents that answer first and call on afterwards: their calls are placed under the ended task, whatever else they work on, whoever
//! floods the node and however its clock is set.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::lineage::Attribution;
use chancery_protocol::{CallContext, Caller, ErrorKind};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Plan, agent_caller, caller, to};
use crate::governance::hop_tokens::Desk as HopDesk;
use crate::governance::open_node::{
    Given, Scene, at_address_of, instrumented, open_to, scene_of, trace_id_alone, traceparent_alone,
};

type Pass = fn(&Given, CallContext) -> CallContext;

/// What names an ended task with proof, for a caller with credentials or an address.
const PROOFS: [(&str, Pass); 3] = [
    ("token", |given, context| CallContext { hop_token: given.hop_token.clone(), ..context }),
    ("tracestate", |given, context| beside(instrumented(given, ""), context)),
    ("traceparent", |given, context| beside(traceparent_alone(given, ""), context)),
];

/// A trace that a caller brings.
fn beside(trace: CallContext, context: CallContext) -> CallContext {
    CallContext { trace: trace.trace, span: trace.span, tracestate: trace.tracestate, ..context }
}

fn scene(rules: &Value) -> Scene {
    let mut plan = Plan::new(rules);
    plan.hops = Some(Arc::new(HopDesk::default()));
    scene_of(plan)
}

/// Two roots at once of an agent that answers first: it calls on for the one it has answered while it works on the other.
#[tokio::test]
async fn a_busy_agent_calls_on_for_the_task_it_has_answered() {
    for known_by in ["key", "address"] {
        for (proof, pass) in PROOFS {
            let context = |target: &str| match known_by {
                "key" => to(target, agent_caller("a")),
                _ => at_address_of("a", target),
            };
            let client = |name: &str, target: &str| match known_by {
                "key" => to(target, caller(name)),
                _ => open_to(target),
            };
            let rules =
                json!({ "budget": { "tree": { "max_usd": "0.10" } }, "prices": { "a": "0.02", "b": "0.02", "c": "0.02" } });
            let scene = scene(&rules);
            let first = scene.done(&client("ada", "a")).await;
            // C waits for what A works on now.
            let of_c = scene.begin(&client("bob", "c"), Value::Null).await.unwrap();
            let from_c = pass(&of_c, if known_by == "key" { to("a", agent_caller("c")) } else { at_address_of("c", "a") });
            let second = scene.begin(&from_c, Value::Null).await.unwrap();
            let way = format!("{known_by}, {proof}");
            let placed = scene.placed(&pass(&first, context("b")), Value::Null).await;
            let kinship = placed.unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &first.task), "{way}");
            assert_eq!(
                (kinship.parent.as_ref(), kinship.depth),
                (Some(&first.task), 2),
                "{way}: one deeper than what it works on"
            );
            // It is for the first task, so it does not come back to C.
            let to_c = scene.placed(&pass(&first, context("c")), Value::Null).await;
            assert_eq!(to_c.map(|kinship| kinship.root), Ok(first.task.clone()), "{way}");
            // Nor has it more to spend than the task it works on.
            for _ in 0..3 {
                scene.begin(&pass(&second, context("b")), Value::Null).await.unwrap();
            }
            let broke = scene.placed(&pass(&first, context("b")), Value::Null).await;
            assert_eq!(broke.map(|kinship| kinship.root), Err(ErrorKind::BudgetExhausted), "{way}");
        }
    }
}

/// The trace of a tree that this node made, and nothing else: the only tasks it can come from are those of the agent it is for.
#[tokio::test]
async fn an_agent_that_calls_itself_by_its_trace_alone_comes_back_to_itself() {
    let of_itself = scene(&json!({}));
    let given = of_itself.begin(&open_to("a"), Value::Null).await.unwrap();
    let refused = of_itself.placed(&trace_id_alone(&given, "a"), Value::Null).await;
    assert_eq!(refused.map(|kinship| kinship.attribution), Err(ErrorKind::RecursionRevisit));
    // Where revisits are allowed it is charged to the tree, one deeper each time.
    let rules =
        json!({ "recursion": { "deny_revisit": false }, "budget": { "tree": { "max_usd": "0.05" } }, "prices": { "a": "0.02" } });
    let allowed = scene(&rules);
    let given = allowed.begin(&open_to("a"), Value::Null).await.unwrap();
    let kinship = allowed.placed(&trace_id_alone(&given, "a"), Value::Null).await.unwrap();
    assert_eq!((kinship.attribution, kinship.depth, &kinship.root), (Attribution::Inferred, 1, &given.task));
    let third = allowed.placed(&trace_id_alone(&given, "a"), Value::Null).await;
    assert_eq!(third.map(|kinship| kinship.depth), Err(ErrorKind::BudgetExhausted));
    // With another agent at work in the tree the call may come from there.
    let side_by_side = scene(&json!({}));
    let given = side_by_side.begin(&open_to("a"), Value::Null).await.unwrap();
    side_by_side.begin(&trace_id_alone(&given, "b"), Value::Null).await.unwrap();
    side_by_side.begin(&trace_id_alone(&given, "c"), Value::Null).await.unwrap();
    side_by_side.placed(&trace_id_alone(&given, "b"), Value::Null).await.expect("C calls B");
}

#[tokio::test]
async fn a_flood_of_other_agents_tasks_leaves_late_calls_in_their_place() {
    let scene = scene(&json!({ "lineage": { "max_ended": 100 } }));
    let given = scene.done(&open_to("quick")).await;
    for _ in 0..1_000 {
        scene.done(&open_to("b")).await;
    }
    for context in [at_address_of("quick", "d"), instrumented(&given, "d"), traceparent_alone(&given, "d")] {
        let kinship = scene.placed(&context, Value::Null).await.unwrap();
        assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &given.task));
    }
}

/// The same at one agent that several tenants use.
#[tokio::test]
async fn a_flood_of_another_tenants_tasks_leaves_late_calls_in_their_place() {
    let scene = scene(&json!({ "lineage": { "max_ended": 100 } }));
    let given = scene.done(&to("quick", caller("ada"))).await;
    let of_globex = CallContext { caller: Caller::new("globex", "eve"), ..caller("eve") };
    for _ in 0..200 {
        scene.done(&to("quick", of_globex.clone())).await;
    }
    let kinship = scene.placed(&to("d", agent_caller("quick")), Value::Null).await.unwrap();
    assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &given.task));
}

#[tokio::test]
async fn so_many_ended_tasks_are_remembered_and_the_oldest_goes_first() {
    for (more, attribution) in [(99, Attribution::Late), (100, Attribution::Root)] {
        let scene = scene(&json!({ "lineage": { "max_ended": 100 } }));
        let first = scene.done(&open_to("quick")).await;
        let mut last = first.clone();
        for _ in 0..more {
            last = scene.done(&open_to("quick")).await;
        }
        let kinship = scene.placed(&traceparent_alone(&first, "d"), Value::Null).await.unwrap();
        assert_eq!(kinship.attribution, attribution, "the oldest of {}", more + 1);
        let kinship = scene.placed(&traceparent_alone(&last, "d"), Value::Null).await.unwrap();
        assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &last.task));
    }
}

#[tokio::test]
async fn setting_the_machines_clock_ends_no_late_placement_and_keeps_none() {
    for (set_by, later, attribution) in [
        (7_200, 0, Attribution::Late),
        (-7_200, 59, Attribution::Late),
        (7_200, 60, Attribution::Root),
        (-7_200, 60, Attribution::Root),
    ] {
        let ways: [fn(&Given) -> CallContext; 3] =
            [|_| at_address_of("quick", "d"), |given| instrumented(given, "d"), |given| traceparent_alone(given, "d")];
        for way in ways {
            let scene = scene(&json!({}));
            let given = scene.done(&open_to("quick")).await;
            scene.governed_plane.clock.set_wall_by(set_by);
            scene.governed_plane.clock.advance(Duration::from_secs(later));
            let kinship = scene.placed(&way(&given), Value::Null).await.unwrap();
            assert_eq!(kinship.attribution, attribution, "set by {set_by} s, {later} s later");
        }
    }
}

/// A worker that still has the handle of a task that ended long ago calls for something else. It is not the agent that it calls.
#[tokio::test]
async fn a_handle_that_is_too_old_is_no_reason_to_refuse() {
    let scene = scene(&json!({}));
    let given = scene.done(&open_to("quick")).await;
    let late = scene.placed(&instrumented(&given, "d"), Value::Null).await.unwrap();
    assert_eq!((late.attribution, &late.root), (Attribution::Late, &given.task));
    scene.governed_plane.clock.advance(Duration::from_secs(60));
    let kinship = scene.placed(&instrumented(&given, "d"), Value::Null).await.unwrap();
    assert_eq!(kinship.attribution, Attribution::Root);
}

#[tokio::test]
async fn after_a_restart_the_span_of_a_task_places_calls_again() {
    let before = scene(&json!({}));
    let given = before.done(&open_to("quick")).await;
    let mut plan = Plan::new(&json!({}));
    plan.store = Arc::clone(&before.governed_plane.store);
    let after = scene_of(plan);
    after.governed_plane.plane.recover().await.unwrap();
    let kinship = after.placed(&traceparent_alone(&given, "d"), Value::Null).await.unwrap();
    assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &given.task));
}

/// The last task that an agent ended for one tenant, while another tenant's ended later.
#[tokio::test]
async fn the_last_ended_task_of_each_tenant_is_its_own() {
    let scene = scene(&json!({}));
    let of_acme = CallContext { caller: Caller::new("acme", "ada"), ..caller("ada") };
    let of_globex = CallContext { caller: Caller::new("globex", "eve"), ..caller("eve") };
    let ours = scene.done(&to("quick", of_acme.clone())).await;
    for _ in 0..10 {
        scene.done(&to("quick", of_globex.clone())).await;
    }
    let by_quick = agent_caller("quick");
    let context = CallContext { caller: Caller::new("acme", "key-of-quick"), ..to("d", by_quick.clone()) };
    let kinship = scene.placed(&context, Value::Null).await.unwrap();
    assert_eq!((kinship.attribution, &kinship.root), (Attribution::Late, &ours.task));
    let context = CallContext { caller: Caller::new("initech", "key-of-quick"), ..to("d", by_quick) };
    assert_eq!(scene.placed(&context, Value::Null).await.unwrap().attribution, Attribution::Root);
}
