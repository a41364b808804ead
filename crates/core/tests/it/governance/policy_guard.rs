//! Each bound of a policy: three are asked before any work, two while it goes on, and a slot is given back exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use chancery_core::{RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{ErrorKind, Message, TaskState};
use chancery_store::MemoryStore;
use chancery_testkit::{FaultPlan, HookedStore};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata, patient, quick, reason, until};

/// An agent whose work is counted.
fn counted(ran: &Arc<AtomicU32>) -> impl TaskRunner {
    let ran = Arc::clone(ran);
    Acts(move |_turn: Turn, updates: TaskUpdateSink| {
        ran.fetch_add(1, Ordering::Relaxed);
        async move { Ok(updates.complete(None)) }
    })
}

#[tokio::test]
async fn a_skill_that_is_not_allowed_is_refused_before_any_work() {
    let ran = Arc::default();
    let rules = json!({ "policy": { "default": { "allowed_skills": ["search"] } } });
    let governed_plane = Plan::new(&rules).skilled("a", &["search", "write"], counted(&ran)).build();
    for said in [json!({ "skill": "write" }), json!({ "ruvector": { "skill": "write" } }), Value::Null] {
        let error = governed_plane.send(&caller("ada"), message("work", said.clone())).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::SkillDenied, "{said}");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    governed_plane.send(&caller("ada"), message("work", json!({ "skill": "search" }))).await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn two_places_that_name_different_skills_are_not_played_against_each_other() {
    let rules = json!({ "policy": { "default": { "allowed_skills": ["search"] } } });
    let governed_plane = Plan::new(&rules).skilled("a", &["search", "write"], quick()).build();
    let both = json!({ "skill": "search", "ruvector": { "skill": "write" } });
    let error = governed_plane.send(&caller("ada"), message("work", both)).await.map(drop).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::SkillDenied | ErrorKind::InvalidParams), "{error}");
}

#[tokio::test]
async fn one_more_than_may_run_at_once_is_refused_before_any_work() {
    let rules = json!({ "policy": { "default": { "max_concurrency": 2 } } });
    let governed_plane = Plan::new(&rules).agent("a", patient()).build();
    let ada = caller("ada");
    let first = governed_plane.begin(&ada, Value::Null).await.unwrap();
    governed_plane.begin(&ada, Value::Null).await.unwrap();
    let error = governed_plane.begin(&ada, Value::Null).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConcurrencyFull);
    assert_eq!(governed_plane.store.logs().len(), 2, "the refused call made no task");
    governed_plane.begin(&caller("bob"), Value::Null).await.expect("each caller has slots of its own");
    governed_plane.cancel(&ada, &first.id).await.unwrap();
    governed_plane.begin(&ada, Value::Null).await.expect("a slot came free");
}

#[tokio::test]
async fn work_that_costs_more_than_the_policy_allows_is_refused_before_any_work() {
    let ran = Arc::default();
    let rules = json!({ "policy": { "default": { "max_cost_usd": "0.05" } }, "prices": { "a": "0.06", "b": "0.05" } });
    let governed_plane = Plan::new(&rules).agent("a", counted(&ran)).agent("b", counted(&ran)).build();
    let error = governed_plane.say(&caller("ada"), "work").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::CostOverPolicy);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    governed_plane.say(&crate::governance::governed_plane::to("b", caller("ada")), "work").await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

/// The task of a call that is waited for, once it has ended.
async fn ended(governed_plane: &GovernedPlane, said: Value) -> Arc<chancery_protocol::Task> {
    governed_plane.send(&caller("ada"), message("work", said)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_is_told_to_stop_and_fails_with_the_reason() {
    let rules = json!({ "policy": { "default": { "max_duration_ms": 5_000, "max_concurrency": 1 } } });
    let told = Arc::new(AtomicU32::new(0));
    let cooperative = {
        let told = Arc::clone(&told);
        Acts(move |turn: Turn, updates: TaskUpdateSink| {
            let told = Arc::clone(&told);
            async move {
                turn.cancelled.cancelled().await;
                told.fetch_add(1, Ordering::Relaxed);
                Ok(updates.canceled())
            }
        })
    };
    let governed_plane = Plan::new(&rules).agent("a", cooperative).build();
    let began = tokio::time::Instant::now();
    let task = ended(&governed_plane, Value::Null).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(reason(&task).starts_with("POLICY_TIMEOUT"), "{}", reason(&task));
    assert_eq!(told.load(Ordering::Relaxed), 1, "it was told");
    assert_eq!(began.elapsed().as_millis(), 5_000, "in its own time");
    ended(&governed_plane, Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ignores_being_told_is_dropped_after_its_grace() {
    let rules = json!({ "policy": { "default": { "max_duration_ms": 5_000, "max_concurrency": 1 } } });
    let deaf = Acts(|_turn: Turn, _updates: TaskUpdateSink| async move { std::future::pending().await });
    let mut plan = Plan::new(&rules).agent("a", deaf);
    plan.limits = TaskLimits { cancel_grace_ms: 700, ..TaskLimits::default() };
    let governed_plane = plan.build();
    let began = tokio::time::Instant::now();
    let task = ended(&governed_plane, Value::Null).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(reason(&task).starts_with("POLICY_TIMEOUT"), "{}", reason(&task));
    assert_eq!(began.elapsed().as_millis(), 5_700);
    assert_eq!(ended(&governed_plane, Value::Null).await.status.state, TaskState::Failed, "its slot is free again");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_many_tokens_is_stopped_on_the_way() {
    let rules = json!({ "policy": { "default": { "max_tokens": 100, "max_concurrency": 1 } } });
    let said = Arc::new(AtomicU32::new(0));
    let greedy = {
        let said = Arc::clone(&said);
        Acts(move |turn: Turn, mut updates: TaskUpdateSink| {
            let said = Arc::clone(&said);
            async move {
                for step in 1..=10_u32 {
                    if turn.cancelled.is_cancelled() {
                        return Ok(updates.canceled());
                    }
                    said.store(step, Ordering::Relaxed);
                    let usage = json!({ "usage": { "input_tokens": step * 20, "output_tokens": step * 10 } });
                    updates.annotate(metadata(usage)).await?;
                    tokio::task::yield_now().await;
                }
                Ok(updates.complete(None))
            }
        })
    };
    let governed_plane = Plan::new(&rules).agent("a", greedy).build();
    let task = ended(&governed_plane, Value::Null).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(reason(&task).contains("max_tokens"), "{}", reason(&task));
    assert_eq!(said.load(Ordering::Relaxed), 4, "at 120 tokens, the first report past 100");
    ended(&governed_plane, Value::Null).await;
}

/// Whatever happens to a task, the one slot there is comes free once: the next gets it, and a second beside it does not.
#[tokio::test(start_paused = true)]
async fn a_slot_is_given_back_exactly_once_whatever_happens() {
    let rules = json!({ "policy": { "default": { "max_duration_ms": 1_000, "max_concurrency": 1 } } });
    let agent = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        match turn.message.first_text().unwrap_or_default() {
            "complete" => Ok(updates.complete(None)),
            "fail" => Ok(updates.fail("as told")),
            "error" => Err(RunError::new("gave up")),
            "panic" => panic!("as told"),
            "ask" => {
                let question = updates.text("more?");
                Ok(updates.input_required(question))
            }
            _ => {
                turn.cancelled.cancelled().await;
                Ok(updates.canceled())
            }
        }
    });
    let governed_plane = Plan::new(&rules).agent("a", agent).build();
    let ada = caller("ada");
    for round in 0..3 {
        for how in ["complete", "fail", "error", "panic", "ask", "time out"] {
            governed_plane.say(&ada, how).await.unwrap_or_else(|error| panic!("{round} {how}: {error}"));
            one_slot_is_free(&governed_plane, how).await;
        }
    }
    // A task that waits for its caller gives its slot back, and asks for one when it goes on.
    let asking = governed_plane.say(&ada, "ask").await.unwrap();
    let held = governed_plane.begin(&ada, Value::Null).await.unwrap();
    let mut more = message("complete", Value::Null);
    more.message = Arc::new(Message { task_id: Some(asking.id.clone()), ..more.message.as_ref().clone() });
    assert_eq!(governed_plane.send(&ada, more.clone()).await.unwrap_err().kind, ErrorKind::ConcurrencyFull);
    governed_plane.cancel(&ada, &held.id).await.unwrap();
    governed_plane.send(&ada, more).await.unwrap();
    one_slot_is_free(&governed_plane, "a second turn").await;
}

async fn one_slot_is_free(governed_plane: &GovernedPlane, after: &str) {
    let ada = caller("ada");
    let task = governed_plane.begin(&ada, Value::Null).await.unwrap_or_else(|error| panic!("no slot after {after}: {error}"));
    let second = governed_plane.begin(&ada, Value::Null).await.map(drop);
    assert_eq!(second.unwrap_err().kind, ErrorKind::ConcurrencyFull, "two slots after {after}");
    governed_plane.cancel(&ada, &task.id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_gives_slot_and_budget_back() {
    let rules = json!({
        "policy": { "default": { "max_concurrency": 1 } },
        "budget": { "global": { "max_usd_per_minute": "1000" } },
        "prices": { "a": "0.01" },
    });
    let seed = 7;
    println!("seed {seed}");
    let store = Arc::new(HookedStore::with_faults(MemoryStore::new(), seed, FaultPlan { delay: 2, faults_per_mille: 300 }));
    let mut plan = Plan::new(&rules).agent("a", quick());
    plan.store = Arc::clone(&store);
    let governed_plane = plan.build();
    let (mut refused, mut taken) = (0, 0);
    for round in 0..300 {
        match governed_plane.say(&caller("ada"), "work").await {
            Ok(_) => taken += 1,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable, "round {round}: {error}");
                refused += 1;
            }
        }
        until(|| governed_plane.standing("global").is_none_or(|standing| standing.reserved.tasks == 0)).await;
    }
    assert!(refused > 50 && taken > 50, "{refused} were refused, {taken} taken");
}

#[tokio::test]
async fn callers_that_prove_nothing_have_no_slots_to_count() {
    let governed_plane = Plan::new(&json!({})).agent("a", patient()).build();
    let known = caller("ada");
    let nobody = chancery_testkit::call_context();
    for _ in 0..16 {
        governed_plane.begin(&known, Value::Null).await.unwrap();
        governed_plane.begin(&nobody, Value::Null).await.unwrap();
    }
    assert_eq!(governed_plane.begin(&known, Value::Null).await.unwrap_err().kind, ErrorKind::ConcurrencyFull);
    governed_plane.begin(&nobody, Value::Null).await.unwrap();
}
