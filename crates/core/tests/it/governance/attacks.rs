//! What breaks a control plane that meters at the end, believes what it is told, or counts without holding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chancery_core::{MicroUsd, TaskUpdateSink, Turn};
use chancery_protocol::{ErrorKind, Request, TaskState};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata, quick, reason, reporting, to};

fn spawn(
    governed_plane: &GovernedPlane,
    context: chancery_protocol::CallContext,
) -> tokio::task::JoinHandle<Result<(), chancery_protocol::Error>> {
    let plane = governed_plane.plane.clone();
    tokio::spawn(async move { plane.call(&context, Request::SendMessage(message("work", Value::Null))).await.map(drop) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_tasks_that_report_five_dollars_under_a_cap_of_one() {
    for prices in [json!({}), json!({ "a": "0.01" })] {
        let rules = json!({
            "budget": { "caller": { "*": { "max_usd": "1", "window": "1h" } } },
            "policy": { "default": { "max_concurrency": 1_000 } },
            "prices": prices,
        });
        let ran = Arc::new(AtomicU32::new(0));
        let lying = {
            let ran = Arc::clone(&ran);
            Acts(move |_turn: Turn, mut updates: TaskUpdateSink| {
                ran.fetch_add(1, Ordering::Relaxed);
                async move {
                    tokio::task::yield_now().await;
                    let said = updates.text("done");
                    let said =
                        chancery_protocol::Message { metadata: Some(metadata(json!({ "usage": { "cost_usd": 5 } }))), ..said };
                    updates.working(None).await?;
                    Ok(updates.complete(Some(said)))
                }
            })
        };
        let governed_plane = Plan::new(&rules).agent("a", lying).build();
        let calls: Vec<_> = (0..200).map(|_| spawn(&governed_plane, caller("ada"))).collect();
        for call in calls {
            if let Err(error) = call.await.unwrap() {
                assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{error}");
            }
            let standing = governed_plane.standing("caller:tenant/ada").unwrap();
            assert!(standing.settled.usd.0 + standing.reserved.usd.0 <= 1_000_000, "{standing:?}");
        }
        let ran = ran.load(Ordering::Relaxed);
        assert!(ran <= 100, "{ran} ran; a hundred at a cent each is all that fits before the first report");
        let standing = governed_plane.standing("caller:tenant/ada").unwrap();
        assert!(standing.overrun.usd > MicroUsd(0), "what was reported past the cap is shown: {standing:?}");
        assert_eq!(governed_plane.say(&caller("ada"), "more").await.unwrap_err().kind, ErrorKind::BudgetExhausted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_at_a_time_with_fifty_at_once() {
    let rules = json!({ "policy": { "default": { "max_concurrency": 1 } } });
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let slow = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        Acts(move |_turn: Turn, updates: TaskUpdateSink| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(updates.complete(None))
            }
        })
    };
    let governed_plane = Plan::new(&rules).agent("a", slow).build();
    let mut passed = 0;
    for call in (0..50).map(|_| spawn(&governed_plane, caller("ada"))).collect::<Vec<_>>() {
        match call.await.unwrap() {
            Ok(()) => passed += 1,
            Err(error) => assert_eq!(error.kind, ErrorKind::ConcurrencyFull),
        }
    }
    assert_eq!(most.load(Ordering::SeqCst), 1, "never two at once");
    assert!(passed >= 1);
    assert_eq!(governed_plane.say(&caller("ada"), "the slot is free again").await.unwrap().status.state, TaskState::Completed);
}

#[tokio::test]
async fn a_legitimate_child_at_depth_one_passes() {
    let parent = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        match turn.delegation.call("b", message("on", Value::Null).message.as_ref().clone()).await {
            Ok(_) => Ok(updates.complete(None)),
            Err(error) => Ok(updates.fail(error.message.into_owned())),
        }
    });
    let rules = json!({ "recursion": { "max_call_depth": 1 } });
    let governed_plane = Plan::new(&rules).agent("a", parent).agent("b", quick()).build();
    let task = governed_plane.say(&to("a", caller("ada")), "go").await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed, "{}", reason(&task));
}

/// Each of these is a claim: it counts against the call that makes it, and never for it.
#[tokio::test]
async fn forged_visited_agents_stop_their_own_call_and_let_none_through() {
    let rules = json!({});
    let loops = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let innocent = json!({ "ruvector": { "context": { "visited_agents": [], "depth": 0, "trace_id": "f".repeat(32) } } });
        match turn.delegation.call("a", message("again", innocent).message.as_ref().clone()).await {
            Ok(_) => Ok(updates.complete(None)),
            Err(error) => Ok(updates.fail(error.message.into_owned())),
        }
    });
    let governed_plane = Plan::new(&rules).agent("a", loops).build();
    for (claim, kind) in [
        (json!({ "visited_agents": ["a"], "depth": 99 }), ErrorKind::RecursionDepth),
        (json!({ "visited_agents": vec!["a"; 10_000], "depth": 0 }), ErrorKind::RecursionRevisit),
    ] {
        let blamed = json!({ "ruvector": { "context": claim } });
        let refused = governed_plane.send(&caller("ada"), message("go", blamed)).await.unwrap_err();
        assert_eq!(refused.kind, kind, "{refused}");
    }
    let task = governed_plane.send(&caller("ada"), message("go", Value::Null)).await.expect("nobody claims anything");
    assert!(reason(&task).starts_with("RECURSION_REVISIT"), "a claim lets nobody through: {}", reason(&task));
}

#[tokio::test]
async fn reports_that_make_no_sense_change_nothing() {
    let nonsense = [
        json!({ "cost_usd": "NaN" }),
        json!({ "cost_usd": -1 }),
        json!({ "cost_usd": "-0.01" }),
        json!({ "cost_usd": "inf" }),
        json!({ "cost_usd": 1e308 }),
        json!({ "cost_usd": true }),
        json!({ "cost_usd": null }),
        json!({ "cost_usd": 0 }),
        json!({ "input_tokens": -5, "output_tokens": "many" }),
        json!({}),
    ];
    for usage in nonsense {
        let rules = json!({ "budget": { "caller": { "*": { "max_usd": "1", "window": "1h" } } }, "prices": { "a": "0.25" } });
        let governed_plane = Plan::new(&rules).agent("a", reporting(usage.clone())).build();
        for _ in 0..4 {
            let task = governed_plane.say(&caller("ada"), "go").await.unwrap_or_else(|error| panic!("{usage}: {error}"));
            assert_eq!(task.status.state, TaskState::Completed, "{usage}: {}", reason(&task));
        }
        let standing = governed_plane.standing("caller:tenant/ada").unwrap();
        assert_eq!((standing.settled.usd, standing.overrun.usd), (MicroUsd(1_000_000), MicroUsd(0)), "{usage}");
        governed_plane.say(&caller("ada"), "a fifth").await.unwrap_err();
    }
}

/// Nobody knows what it costs and it never says: it may run again and again, but one at a time.
#[tokio::test]
async fn work_without_a_price_runs_one_at_a_time() {
    let rules = json!({ "budget": { "caller": { "*": { "max_usd": "1", "window": "1h" } } } });
    let governed_plane = Plan::new(&rules).agent("a", crate::governance::governed_plane::patient()).build();
    let first = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    assert_eq!(governed_plane.begin(&caller("ada"), Value::Null).await.unwrap_err().kind, ErrorKind::BudgetExhausted);
    governed_plane.begin(&caller("bob"), Value::Null).await.unwrap();
    governed_plane.cancel(&caller("ada"), &first.id).await.unwrap();
    governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_completed_task_is_not_cancelled_and_a_stranger_learns_nothing_of_it() {
    let governed_plane = Plan::new(&json!({})).agent("a", quick()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    let none = governed_plane.cancel(&caller("eve"), &"no-such-task".into()).await.unwrap_err();
    let foreign = governed_plane.cancel(&caller("eve"), &task.id).await.unwrap_err();
    assert_eq!((foreign.kind, &foreign.message, &foreign.facts), (none.kind, &none.message, &none.facts));
    assert_eq!(foreign.kind, ErrorKind::TaskNotFound);
    assert_eq!(governed_plane.cancel(&caller("ada"), &task.id).await.unwrap_err().kind, ErrorKind::TaskNotCancelable);
    assert!(governed_plane.plane.cancel_tree(&task.id).await.is_empty(), "nothing of it is open");
    let (stored, _) = governed_plane.plane.operator_get(task.id.as_str()).await.unwrap();
    assert_eq!(stored.progress.state, TaskState::Completed);
}
