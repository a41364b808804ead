//! Seeded lives of a node: random trees under random rules, cut off at random points and started again on what was stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::budget::{Amount, BudgetWindow};
use chancery_core::{FreezeScope, RunError, Store as _, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{CancelTask, ErrorKind, Message, Request, TaskState};
use chancery_store::MemoryStore;
use chancery_testkit::{FaultPlan, HookedStore};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::governance::fan_out::within_caps_or;
use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata};

const AGENTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Does what the number in its message says: calls others, reports, asks, fails, and yields now and then.
fn dicing() -> impl TaskRunner {
    Acts(|turn: Turn, mut updates: TaskUpdateSink| async move {
        let seed: u64 = turn.message.first_text().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut dice = SmallRng::seed_from_u64(seed);
        for _ in 0..dice.random_range(0..4) {
            let next = AGENTS[dice.random_range(0..AGENTS.len())];
            let said = match dice.random_range(0..4) {
                0 => json!({ "ruvector": { "budget": { "usd": "0.30" } } }),
                1 => json!({ "ruvector": { "estimate": { "usd": "0.05" } } }),
                _ => Value::Null,
            };
            let call = turn.delegation.call(next, message(&dice.random::<u32>().to_string(), said).message.as_ref().clone());
            tokio::select! {
                _ = call => {}
                () = turn.cancelled.cancelled() => return Ok(updates.canceled()),
            }
            if dice.random_bool(0.4) {
                let cost = f64::from(dice.random_range(0..40_u32)) / 100.0;
                updates
                    .annotate(metadata(json!({ "usage": { "cost_usd": cost, "input_tokens": dice.random_range(0..900_u32) } })))
                    .await?;
            }
        }
        for _ in 0..dice.random_range(0..6) {
            tokio::task::yield_now().await;
        }
        if turn.cancelled.is_cancelled() {
            return Ok(updates.canceled());
        }
        match dice.random_range(0..10) {
            0 => Ok(updates.fail("as its dice said")),
            1 => Err(RunError::new("as its dice said")),
            2 => std::panic::resume_unwind(Box::new("as its dice said")),
            3 => {
                let question = updates.text("more?");
                Ok(updates.input_required(question))
            }
            4 => {
                turn.cancelled.cancelled().await;
                Ok(updates.canceled())
            }
            5 => std::future::pending().await,
            _ => Ok(updates.complete(None)),
        }
    })
}

fn rules(seed: u64) -> Value {
    let mut dice = SmallRng::seed_from_u64(seed);
    let mut prices = serde_json::Map::new();
    for agent in AGENTS {
        if dice.random_bool(0.7) {
            prices.insert(agent.to_owned(), json!(f64::from(dice.random_range(0..30_u32)) / 100.0));
        }
    }
    let overflow = if dice.random_bool(0.3) { json!({ "queue": { "max_queue_depth": 3 } }) } else { json!("shed") };
    let (global, tree) = (f64::from(dice.random_range(1..60_u32)) / 10.0, f64::from(dice.random_range(1..20_u32)) / 10.0);
    json!({
        "budget": {
            "global": { "max_usd_per_minute": global, "max_tokens_per_minute": 20_000, "overflow": overflow },
            "tree": { "max_usd": tree, "max_tasks": 40 },
            "agent": { "b": { "max_usd": "0.80", "window": "10s" } },
            "caller": { "*": { "max_usd": "2", "max_tasks": 60, "window": "1m" } },
        },
        "recursion": { "deny_revisit": dice.random_bool(0.5), "max_call_depth": 6 },
        "policy": { "default": { "max_duration_ms": dice.random_range(100..5_000_u32), "max_tokens": 3_000, "max_concurrency": 30 } },
        "prices": prices,
    })
}

fn governed_plane(seed: u64, store: &Arc<HookedStore>, clock: &Arc<chancery_testkit::ManualClock>) -> GovernedPlane {
    let mut plan = Plan::new(&rules(seed));
    plan.limits = TaskLimits { cancel_grace_ms: 20, budget_wait_ms: 2_000, ..TaskLimits::default() };
    plan.store = Arc::clone(store);
    plan.clock = Arc::clone(clock);
    AGENTS.into_iter().fold(plan, |plan, agent| plan.agent(agent, dicing())).build()
}

/// One caller's doings: it begins, goes on with, and cancels tasks.
async fn one_caller(plane: chancery_core::Chancery, seed: u64) {
    let mut dice = SmallRng::seed_from_u64(seed);
    let context = caller(["ada", "bob"][dice.random_range(0..2)]);
    for _ in 0..dice.random_range(1..4) {
        let mut send = message(&dice.random::<u32>().to_string(), Value::Null);
        send.configuration.return_immediately = true;
        let sent = plane.call(&context, Request::SendMessage(send)).await;
        let Ok(chancery_core::Answer::Reply(chancery_protocol::Reply::Sent(chancery_protocol::Sent::Task(shown)))) = sent else {
            continue;
        };
        let id = shown.task.id.clone();
        for _ in 0..dice.random_range(0..30) {
            tokio::task::yield_now().await;
        }
        match dice.random_range(0..4) {
            0 => drop(plane.call(&context, Request::CancelTask(CancelTask { tenant: None, id, metadata: None })).await),
            1 | 2 => {
                let mut more = message(&dice.random::<u32>().to_string(), Value::Null);
                more.message = Arc::new(Message { task_id: Some(id), ..more.message.as_ref().clone() });
                more.configuration.return_immediately = true;
                drop(plane.call(&context, Request::SendMessage(more)).await);
            }
            _ => {}
        }
    }
}

/// Lives until its time is up. The last life goes on until nothing is left to do.
async fn live(seed: u64, life: u64, governed_plane: &GovernedPlane, last: bool) {
    let mut dice = SmallRng::seed_from_u64(seed ^ (life << 32));
    governed_plane.plane.recover().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    // What a task of several turns cost counts as of its last turn, so a window may hold more than it did. Nothing comes to it.
    let windows = governed_plane.plane.budgets().into_iter().filter(|(_, standing)| standing.limit.window != BudgetWindow::Tree);
    let taken =
        windows.map(|(account, standing)| (account.scope().to_string(), standing.settled.saturating_add(standing.reserved)));
    let at_first: HashMap<String, Amount> = taken.collect();
    let check = |seed, life, governed_plane: &GovernedPlane, when: &str| {
        within_caps_or(&governed_plane.plane, &at_first)
            .unwrap_or_else(|passed| panic!("seed {seed}, life {life}, {when}: {passed}"));
    };
    check(seed, life, governed_plane, "after a start");
    let calls: Vec<_> = (0..4)
        .map(|number| tokio::spawn(one_caller(governed_plane.plane.clone(), seed.wrapping_mul(31) + life * 7 + number)))
        .collect();
    for step in 0..dice.random_range(20..300) {
        tokio::task::yield_now().await;
        check(seed, life, governed_plane, &format!("at step {step}"));
        match dice.random_range(0..60) {
            0 => governed_plane.clock.advance(Duration::from_millis(dice.random_range(1..20_000))),
            1 => tokio::time::sleep(Duration::from_millis(dice.random_range(1..200))).await,
            2 => {
                drop(governed_plane.plane.freeze(FreezeScope::Agent(AGENTS[dice.random_range(0..5)].into()), "dice", None).await)
            }
            3 => {
                for agent in AGENTS {
                    governed_plane.plane.thaw(&FreezeScope::Agent(agent.into()), "dice").await.unwrap();
                }
            }
            _ => {}
        }
    }
    if !last {
        return;
    }
    for call in calls {
        call.await.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    }
    // Time passes, so whatever never returns is stopped; then all that waits for its caller is cancelled.
    tokio::time::sleep(Duration::from_secs(60)).await;
    check(seed, life, governed_plane, "near the end");
    let open: Vec<_> =
        governed_plane.store.logs().into_iter().filter(|(stored, _)| !stored.progress.state.is_terminal()).collect();
    for (stored, _) in open {
        assert_eq!(stored.progress.state, TaskState::InputRequired, "seed {seed}: {}", stored.task.id);
        // One of them may have been below another.
        if let Err(error) = governed_plane.plane.operator_cancel(stored.task.id.as_str()).await {
            assert_eq!(error.kind, ErrorKind::TaskNotCancelable, "seed {seed}: {error}");
        }
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    check(seed, life, governed_plane, "at the end");
    for (account, standing) in governed_plane.plane.budgets() {
        assert_eq!(standing.reserved, Amount::default(), "seed {seed}: {} holds something for nobody", account.scope());
    }
    for (stored, _) in governed_plane.store.logs() {
        let governed = governed_plane.store.governed(&stored.task.id).await.unwrap().unwrap();
        assert_eq!(governed.spend.reserved, Amount::default(), "seed {seed}: the store holds something for {}", stored.task.id);
    }
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = if std::env::var_os("CHANCERY_SOAK").is_some() { 5_000 } else { 150 };
    first..first + count
}

#[test]
fn no_schedule_and_no_restart_passes_a_cap_or_leaves_something_held() {
    let mut tasks = 0;
    for seed in seeds() {
        let store = Arc::new(HookedStore::with_faults(MemoryStore::new(), seed, FaultPlan { delay: 3, faults_per_mille: 0 }));
        let clock = Arc::new(chancery_testkit::ManualClock::at(chancery_protocol::Timestamp::from_micros(1_000_000_000)));
        let lives = 1 + seed % 3;
        for life in 1..=lives {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let governed_plane = governed_plane(seed, &store, &clock);
            runtime.block_on(live(seed, life, &governed_plane, life == lives));
            // Everything that runs is gone in the middle of what it does.
            drop(runtime);
        }
        tasks += store.logs().len();
    }
    println!("{tasks} tasks");
    assert!(tasks > 500, "only {tasks} tasks: the schedules test too little");
}
