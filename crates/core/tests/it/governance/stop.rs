//! The stop button: a freeze lets nothing more in, a cascade ends a tree from its leaves and says what it could not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use chancery_core::{CascadeOutcome, Finished, FreezeScope, RunError, Store as _, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{ErrorKind, Request, TaskState};
use chancery_store::MemoryStore;
use chancery_testkit::{FaultPlan, HookedStore};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, agent_caller, caller, message, patient, quick, to, until};

fn load(
    governed_plane: &GovernedPlane,
    callers: u32,
    stop: &Arc<AtomicBool>,
    refused: &Arc<AtomicU32>,
) -> Vec<tokio::task::JoinHandle<u32>> {
    let calling = |number: u32| {
        let (plane, stop, refused) = (governed_plane.plane.clone(), Arc::clone(stop), Arc::clone(refused));
        async move {
            let context = caller(&format!("c{number}"));
            let mut passed = 0;
            while !stop.load(Ordering::Relaxed) {
                match plane.call(&context, Request::SendMessage(message("work", Value::Null))).await {
                    Ok(_) => passed += 1,
                    Err(error) => {
                        assert_eq!(error.kind, ErrorKind::Frozen, "{error}");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
                tokio::task::yield_now().await;
            }
            passed
        }
    };
    (0..callers).map(|number| tokio::spawn(calling(number))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_admitted_after_a_freeze_has_returned() {
    let scopes = [FreezeScope::Everything, FreezeScope::Tenant("tenant".into()), FreezeScope::Agent("a".into())];
    for scope in scopes {
        let governed_plane = Plan::new(&json!({})).agent("a", quick()).build();
        let (stop, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let calls = load(&governed_plane, 16, &stop, &refused);
        until(|| governed_plane.store.logs().len() > 200).await;
        governed_plane.plane.freeze(scope.clone(), "operator", Some("a drill")).await.unwrap();
        let admitted = governed_plane.store.logs().len();
        until(|| refused.load(Ordering::Relaxed) > 500).await;
        assert_eq!(governed_plane.store.logs().len(), admitted, "{scope} let calls in after it was frozen");
        assert!(governed_plane.plane.thaw(&scope, "operator").await.unwrap());
        until(|| governed_plane.store.logs().len() > admitted + 50).await;
        stop.store(true, Ordering::Relaxed);
        for call in calls {
            assert!(call.await.unwrap() > 0, "each caller got through");
        }
    }
}

/// Calls the next again and again, as fast as it can, until it is refused.
fn busy(next: &'static str, refused: &Arc<AtomicU32>) -> impl TaskRunner {
    let refused = Arc::clone(refused);
    Acts(move |turn: Turn, updates: TaskUpdateSink| {
        let refused = Arc::clone(&refused);
        async move {
            while !turn.cancelled.is_cancelled() {
                if turn.delegation.call(next, message("on", Value::Null).message.as_ref().clone()).await.is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                tokio::task::yield_now().await;
            }
            Ok(updates.canceled())
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_frozen_tree_admits_nothing_more_and_others_go_on() {
    let refused = Arc::new(AtomicU32::new(0));
    let governed_plane = Plan::new(&json!({})).agent("a", busy("b", &refused)).agent("b", quick()).build();
    let frozen = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    let other = governed_plane.begin(&caller("bob"), Value::Null).await.unwrap();
    let size = async |root: &chancery_protocol::TaskId| governed_plane.plane.trees(root.as_str()).await.unwrap()[0].tasks.len();
    until(|| governed_plane.store.logs().len() > 100).await;
    governed_plane.plane.freeze(FreezeScope::Tree(frozen.id.as_str().into()), "operator", None).await.unwrap();
    let (before, other_before) = (size(&frozen.id).await, size(&other.id).await);
    until(|| refused.load(Ordering::Relaxed) > 100).await;
    assert_eq!(size(&frozen.id).await, before, "the frozen tree grew");
    while size(&other.id).await < other_before + 10 {
        tokio::task::yield_now().await;
    }
    governed_plane.cancel(&caller("ada"), &frozen.id).await.expect("what is frozen can be cancelled");
    governed_plane.cancel(&caller("bob"), &other.id).await.unwrap();
}

#[tokio::test]
async fn a_freeze_and_its_reason_outlive_the_node() {
    let governed_plane = Plan::new(&json!({})).agent("a", quick()).build();
    let scope = FreezeScope::caller(&caller("ada").caller);
    governed_plane.plane.freeze(scope.clone(), "operator", Some("too busy")).await.unwrap();
    let mut plan = Plan::new(&json!({})).agent("a", quick());
    plan.store = Arc::clone(&governed_plane.store);
    let after = plan.build();
    after.plane.recover().await.unwrap();
    let error = after.say(&caller("ada"), "go").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Frozen);
    assert!(error.message.contains("operator") && error.message.contains("too busy"), "{error}");
    after.say(&caller("bob"), "go").await.unwrap();
    assert!(after.plane.thaw(&scope, "operator").await.unwrap());
    after.say(&caller("ada"), "go").await.unwrap();
    assert!(!after.plane.thaw(&scope, "operator").await.unwrap(), "it was not frozen any more");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_line_is_kept_out_by_a_freeze() {
    let rules =
        json!({ "budget": { "global": { "max_tasks_per_minute": 1, "overflow": { "queue": { "max_queue_depth": 9 } } } } });
    let mut plan = Plan::new(&rules).agent("a", quick());
    plan.limits = TaskLimits { budget_wait_ms: 600_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    governed_plane.say(&caller("ada"), "fits").await.unwrap();
    let plane = governed_plane.plane.clone();
    let waiting =
        tokio::spawn(
            async move { plane.call(&caller("ada"), Request::SendMessage(message("waits", Value::Null))).await.map(drop) },
        );
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    governed_plane.plane.freeze(FreezeScope::Everything, "operator", None).await.unwrap();
    governed_plane.clock.advance(std::time::Duration::from_secs(120));
    assert_eq!(waiting.await.unwrap().unwrap_err().kind, ErrorKind::Frozen);
}

/// Calls those it is told to, all at once, and waits for them or for its end.
fn calls(next: &'static [&'static str]) -> impl TaskRunner {
    Acts(move |turn: Turn, updates: TaskUpdateSink| async move {
        let on = || message("on", Value::Null).message.as_ref().clone();
        let calls = next.iter().map(|agent| {
            let delegation = turn.delegation.clone();
            async move { delegation.call(agent, on()).await.map(drop) }
        });
        tokio::select! {
            _ = futures::future::join_all(calls) => turn.cancelled.cancelled().await,
            () = turn.cancelled.cancelled() => {}
        }
        Ok(updates.canceled())
    })
}

/// Speaks for an agent elsewhere that is gone: it cannot be told to stop.
struct Dead;

#[async_trait]
impl TaskRunner for Dead {
    async fn run(&self, turn: Turn, _updates: TaskUpdateSink) -> Result<Finished, RunError> {
        turn.cancelled.cancelled().await;
        Err(RunError::new("the agent was lost while it worked on the task"))
    }

    fn keeps_links(&self) -> bool {
        true
    }
}

/// The same, and not even that is noticed.
struct Silent;

#[async_trait]
impl TaskRunner for Silent {
    async fn run(&self, _turn: Turn, _updates: TaskUpdateSink) -> Result<Finished, RunError> {
        std::future::pending().await
    }

    fn keeps_links(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_cascade_over_three_levels_reports_the_dead_peers_and_cancels_the_rest() {
    let governed_plane = Plan::new(&json!({}))
        .agent("root", calls(&["left", "right"]))
        .agent("left", calls(&["leaf", "dead"]))
        .agent("right", calls(&["other-leaf", "silent"]))
        .agent("leaf", patient())
        .agent("other-leaf", patient())
        .agent("dead", Dead)
        .agent("silent", Silent)
        .build();
    let root = governed_plane.begin(&to("root", caller("ada")), Value::Null).await.unwrap();
    until(|| governed_plane.store.logs().len() == 7).await;
    let bystander = governed_plane.begin(&to("leaf", caller("bob")), Value::Null).await.unwrap();
    let cascaded = governed_plane.plane.cancel_tree(&root.id).await;
    let depths: Vec<u32> = cascaded.iter().map(|one| one.depth).collect();
    assert_eq!(depths, [2, 2, 2, 2, 1, 1, 0], "from the leaves up");
    for one in &cascaded {
        let expected =
            if ["dead", "silent"].contains(&&*one.agent) { CascadeOutcome::Unreachable } else { CascadeOutcome::Cancelled };
        assert_eq!(one.outcome, expected, "{one:?}");
        assert_eq!(one.reason.is_some(), expected == CascadeOutcome::Unreachable, "{one:?}");
    }
    let open: Vec<_> =
        governed_plane.store.logs().into_iter().filter(|(stored, _)| !stored.progress.state.is_terminal()).collect();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].0.task.id, bystander.id, "another tree of the same agent goes on");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_its_task_ends_all_that_was_done_for_it_and_so_does_the_operator() {
    for operator in [false, true] {
        let governed_plane =
            Plan::new(&json!({})).agent("a", calls(&["b"])).agent("b", calls(&["c"])).agent("c", patient()).build();
        let root = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
        until(|| governed_plane.store.logs().len() == 3).await;
        match operator {
            true => drop(governed_plane.plane.operator_cancel(root.id.as_str()).await.unwrap()),
            false => drop(governed_plane.cancel(&caller("ada"), &root.id).await.unwrap()),
        }
        let states: Vec<_> = governed_plane.store.logs().iter().map(|(stored, _)| stored.progress.state).collect();
        assert_eq!(states, [TaskState::Canceled; 3], "operator: {operator}");
    }
}

/// It answers each cancel of a child with another child, and does not stop when it is told to.
#[tokio::test(start_paused = true)]
async fn nothing_is_begun_for_a_task_that_is_being_cancelled() {
    let refused = Arc::new(AtomicU32::new(0));
    let stubborn = {
        let refused = Arc::clone(&refused);
        Acts(move |turn: Turn, _updates: TaskUpdateSink| {
            let refused = Arc::clone(&refused);
            async move {
                loop {
                    if turn.delegation.call("b", message("on", Value::Null).message.as_ref().clone()).await.is_err() {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        })
    };
    let governed_plane = Plan::new(&json!({})).agent("a", stubborn).agent("b", patient()).build();
    let root = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    until(|| governed_plane.store.logs().len() == 2).await;
    let cascaded = governed_plane.plane.cancel_tree(&root.id).await;
    assert!(cascaded.iter().all(|one| one.outcome == CascadeOutcome::Cancelled), "{cascaded:?}");
    let tasks = governed_plane.store.logs();
    assert_eq!(tasks.len(), 2, "nothing was begun for what was being cancelled");
    assert!(tasks.iter().all(|(stored, _)| stored.progress.state.is_terminal()));
    assert!(refused.load(Ordering::Relaxed) > 0, "it tried");
}

/// A call made for a task waits for room; the task is gone when there is some.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_line_is_refused_once_the_task_it_is_for_has_ended() {
    let rules =
        json!({ "budget": { "global": { "max_tasks_per_minute": 1, "overflow": { "queue": { "max_queue_depth": 9 } } } } });
    let mut plan = Plan::new(&rules).agent("a", patient()).agent("b", quick());
    plan.limits = TaskLimits { budget_wait_ms: 600_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    let parent = governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    let plane = governed_plane.plane.clone();
    let for_parent = to("b", agent_caller("a"));
    let waiting =
        tokio::spawn(async move { plane.call(&for_parent, Request::SendMessage(message("waits", Value::Null))).await.map(drop) });
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    governed_plane.cancel(&caller("ada"), &parent.id).await.unwrap();
    governed_plane.clock.advance(std::time::Duration::from_secs(120));
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::LineageInvalid, "{error}");
    assert!(error.facts.contains(&("check", "closed_parent".to_owned())), "{:?}", error.facts);
    assert_eq!(governed_plane.store.logs().len(), 1, "nothing was begun for it");
}

/// What a task was asked for goes on after the one that asked has ended, and so may what waits in line to be said to it.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_in_line_reaches_its_task_although_the_one_above_has_ended() {
    let rules =
        json!({ "budget": { "global": { "max_tasks_per_minute": 2, "overflow": { "queue": { "max_queue_depth": 9 } } } } });
    let asks = Acts(|_turn: Turn, updates: TaskUpdateSink| async move {
        let question = updates.text("more?");
        Ok(updates.input_required(question))
    });
    let leave = Arc::new(tokio::sync::Notify::new());
    let ends = {
        let leave = Arc::clone(&leave);
        Acts(move |_turn: Turn, updates: TaskUpdateSink| {
            let leave = Arc::clone(&leave);
            async move {
                leave.notified().await;
                Ok(updates.complete(None))
            }
        })
    };
    let mut plan = Plan::new(&rules).agent("a", ends).agent("b", asks);
    plan.limits = TaskLimits { budget_wait_ms: 600_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    let by_a = to("b", agent_caller("a"));
    let child = governed_plane.say(&by_a, "ask").await.unwrap();
    let mut answer = message("more", Value::Null);
    answer.message = Arc::new(chancery_protocol::Message { task_id: Some(child.id.clone()), ..answer.message.as_ref().clone() });
    let plane = governed_plane.plane.clone();
    let waiting = tokio::spawn(async move { plane.call(&by_a, Request::SendMessage(answer)).await.map(drop) });
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    leave.notify_one();
    until(|| governed_plane.store.logs()[0].0.progress.state == TaskState::Completed).await;
    governed_plane.clock.advance(std::time::Duration::from_secs(120));
    waiting.await.unwrap().unwrap();
}

/// Whoever gives up waiting for a freeze has asked for it: it is in the store and in force, or in neither.
#[tokio::test]
async fn a_freeze_that_nobody_waits_for_any_more_is_carried_out() {
    let mut plan = Plan::new(&json!({})).agent("a", quick());
    plan.store = Arc::new(HookedStore::with_faults(MemoryStore::new(), 1, FaultPlan { delay: 1, ..FaultPlan::default() }));
    let governed_plane = plan.build();
    for thawed in [false, true] {
        let mut changing = Box::pin(async {
            match thawed {
                false => governed_plane.plane.freeze(FreezeScope::Everything, "operator", None).await.map(drop),
                true => governed_plane.plane.thaw(&FreezeScope::Everything, "operator").await.map(drop),
            }
        });
        assert!(futures::poll!(&mut changing).is_pending(), "the store has written it and not yet said so");
        drop(changing);
        let frozen = usize::from(!thawed);
        assert_eq!(governed_plane.store.freezes().await.unwrap().len(), frozen);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(governed_plane.plane.freezes().await.len(), frozen, "thawed: {thawed}");
    }
}
