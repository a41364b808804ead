//! Budgets: refused at once or in line, fair, bounded, and as the window slides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chancery_core::{MicroUsd, RunError, Store as _, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Error, ErrorKind, Request, Task, TaskState};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, quick, reason, reporting, until};

fn per_minute(overflow: Value) -> Value {
    json!({
        "budget": { "global": { "max_usd_per_minute": 1.0, "overflow": overflow } },
        "policy": { "default": { "max_concurrency": 1_000 } },
        "prices": { "a": "0.005" },
    })
}

/// Moves the node's clock with the runtime's, so that windows slide while calls wait.
fn tick(governed_plane: &GovernedPlane) -> tokio::task::JoinHandle<()> {
    let clock = Arc::clone(&governed_plane.clock);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.advance(Duration::from_millis(100));
        }
    })
}

async fn two_hundred(governed_plane: &GovernedPlane) {
    for task in 0..200 {
        governed_plane.say(&caller("ada"), "cheap").await.unwrap_or_else(|error| panic!("task {task}: {error}"));
    }
}

#[tokio::test]
async fn two_hundred_cheap_tasks_fit_and_the_next_is_shed_with_the_time_to_come_again() {
    let governed_plane = Plan::new(&per_minute(json!("shed"))).agent("a", quick()).build();
    two_hundred(&governed_plane).await;
    let error = governed_plane.say(&caller("ada"), "one more").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BudgetExhausted);
    assert!(error.message.starts_with("BUDGET_EXHAUSTED global"), "{error}");
    let wait = error.retry_after.expect("it says when");
    assert!(wait > Duration::ZERO && wait <= Duration::from_secs(61), "{wait:?}");
    governed_plane.clock.advance(wait - Duration::from_millis(1));
    assert_eq!(governed_plane.say(&caller("ada"), "too early").await.unwrap_err().kind, ErrorKind::BudgetExhausted);
    governed_plane.clock.advance(Duration::from_millis(1));
    governed_plane.say(&caller("ada"), "as it was told").await.unwrap();
}

#[tokio::test]
async fn a_burst_across_a_minute_does_not_double_the_cap() {
    let governed_plane = Plan::new(&per_minute(json!("shed"))).agent("a", quick()).build();
    for _ in 0..59 {
        governed_plane.clock.advance(Duration::from_secs(1));
    }
    two_hundred(&governed_plane).await;
    governed_plane.clock.advance(Duration::from_secs(2));
    governed_plane.say(&caller("ada"), "in the next minute of the calendar").await.unwrap_err();
}

fn spawn_say(governed_plane: &GovernedPlane, who: &str) -> tokio::task::JoinHandle<Result<Arc<Task>, Error>> {
    let (plane, context) = (governed_plane.plane.clone(), caller(who));
    tokio::spawn(async move {
        match plane.call(&context, Request::SendMessage(message("in line", Value::Null))).await? {
            chancery_core::Answer::Reply(chancery_protocol::Reply::Sent(chancery_protocol::Sent::Task(shown))) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_queue_drains_in_the_order_of_arrival() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = {
        let order = Arc::clone(&order);
        Acts(move |turn: Turn, updates: TaskUpdateSink| {
            order.lock().unwrap().push(turn.caller.name.to_string());
            async move { Ok(updates.complete(None)) }
        })
    };
    let mut plan = Plan::new(&per_minute(json!({ "queue": { "max_queue_depth": 50 } }))).agent("a", noted);
    plan.limits = TaskLimits { budget_wait_ms: 600_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    two_hundred(&governed_plane).await;
    order.lock().unwrap().clear();
    let ticking = tick(&governed_plane);
    let mut waiting = Vec::new();
    for number in 0..50 {
        waiting.push(spawn_say(&governed_plane, &format!("c{number:02}")));
        tokio::task::yield_now().await;
    }
    for call in waiting {
        assert_eq!(call.await.unwrap().unwrap().status.state, TaskState::Completed);
    }
    ticking.abort();
    let order = order.lock().unwrap().clone();
    let expected: Vec<String> = (0..50).map(|number| format!("c{number:02}")).collect();
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn one_more_than_may_wait_is_refused_and_one_that_hangs_up_leaves_the_line() {
    let mut plan = Plan::new(&per_minute(json!({ "queue": { "max_queue_depth": 2 } }))).agent("a", quick());
    plan.limits = TaskLimits { budget_wait_ms: 600_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    two_hundred(&governed_plane).await;
    let first = spawn_say(&governed_plane, "first");
    tokio::task::yield_now().await;
    let second = spawn_say(&governed_plane, "second");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let error = governed_plane.say(&caller("third"), "no room").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BudgetQueueFull, "{error}");
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let third = spawn_say(&governed_plane, "third");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let ticking = tick(&governed_plane);
    second.await.unwrap().unwrap();
    third.await.unwrap().unwrap();
    ticking.abort();
    let tasks = governed_plane.store.logs();
    assert!(!tasks.iter().any(|(stored, _)| &*stored.task.owner.name == "first"), "who hung up has no task");
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_long_enough_is_refused() {
    let mut plan = Plan::new(&per_minute(json!({ "queue": { "max_queue_depth": 5 } }))).agent("a", quick());
    plan.limits = TaskLimits { budget_wait_ms: 3_000, ..TaskLimits::default() };
    let governed_plane = plan.build();
    two_hundred(&governed_plane).await;
    let began = tokio::time::Instant::now();
    // The node's clock stands still: no room ever comes.
    let error = governed_plane.say(&caller("ada"), "waits").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{error}");
    assert_eq!(began.elapsed().as_millis(), 3_000);
    let another = spawn_say(&governed_plane, "bob");
    tokio::time::sleep(Duration::from_millis(10)).await;
    let behind =
        tokio::time::timeout(Duration::from_secs(4), spawn_say(&governed_plane, "eve")).await.unwrap().unwrap().unwrap_err();
    assert_eq!(another.await.unwrap().unwrap_err().kind, ErrorKind::BudgetExhausted);
    assert_eq!(behind.kind, ErrorKind::BudgetExhausted, "who stood behind others is told the same: {behind}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_lets_the_next_in_line_go_at_once() {
    let rules = json!({
        "budget": { "caller": { "*": { "max_usd": "1", "window": "1h" } }, "global": { "overflow": { "queue": { "max_queue_depth": 9 } } } },
    });
    let (go, _) = tokio::sync::broadcast::channel::<()>(1);
    let cheap = {
        let go = go.clone();
        Acts(move |_turn: Turn, mut updates: TaskUpdateSink| {
            let mut gone = go.subscribe();
            async move {
                let _ = gone.recv().await;
                updates.annotate(crate::governance::governed_plane::metadata(json!({ "usage": { "cost_usd": 0.1 } }))).await?;
                Ok(updates.complete(None))
            }
        })
    };
    let governed_plane = Plan::new(&rules).agent("a", cheap).build();
    // Nothing is known of the price, so the first holds all there is.
    let first = spawn_say(&governed_plane, "ada");
    let second = spawn_say(&governed_plane, "ada");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(governed_plane.standing("caller:tenant/ada").unwrap().reserved.usd, MicroUsd(1_000_000));
    assert_eq!(governed_plane.store.logs().len(), 1, "the second waits");
    let before = tokio::time::Instant::now();
    go.send(()).unwrap();
    first.await.unwrap().unwrap();
    until(|| governed_plane.store.logs().len() == 2).await;
    assert_eq!(before.elapsed(), Duration::ZERO, "it did not have to look by itself");
    go.send(()).unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_can_never_fit_does_not_wait() {
    let rules = json!({
        "budget": { "global": { "max_usd_per_minute": 1, "overflow": { "queue": { "max_queue_depth": 9 } } } },
        "prices": { "a": "1.01" },
    });
    let governed_plane = Plan::new(&rules).agent("a", quick()).build();
    let error = governed_plane.say(&caller("ada"), "too dear").await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (ErrorKind::BudgetExhausted, None));
}

#[tokio::test]
async fn a_tree_is_never_waited_for() {
    let rules = json!({
        "budget": { "tree": { "max_tasks": 1 }, "global": { "overflow": { "queue": { "max_queue_depth": 9 } } } },
    });
    let governed_plane = Plan::new(&rules).agent("a", delegating("b", 1)).agent("b", quick()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert!(reason(&task).starts_with("BUDGET_EXHAUSTED tree="), "{}", reason(&task));
}

/// Calls another agent so many times, one after the other, and fails with the first refusal.
fn delegating(next: &'static str, times: u32) -> impl TaskRunner {
    Acts(move |turn: Turn, updates: TaskUpdateSink| async move {
        for _ in 0..times {
            let said = message("on", Value::Null).message.as_ref().clone();
            if let Err(error) = turn.delegation.call(next, said).await {
                return Ok(updates.fail(error.message.into_owned()));
            }
        }
        Ok(updates.complete(None))
    })
}

/// Nobody knows what the work above costs, so it may have all there is; what it gives to others comes out of that.
#[tokio::test]
async fn a_child_is_paid_out_of_what_its_parent_was_given() {
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "b": "0.25" } });
    let governed_plane = Plan::new(&rules).agent("a", delegating("b", 4)).agent("b", quick()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed, "{}", reason(&task));
    let governed_plane = Plan::new(&rules).agent("a", delegating("b", 5)).agent("b", quick()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert!(reason(&task).starts_with("BUDGET_EXHAUSTED tree="), "{}", reason(&task));
}

#[tokio::test]
async fn unused_money_flows_back_and_a_child_cannot_ask_for_more_than_is_left() {
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "0.10", "b": "0.60" } });
    let cheaper = reporting(json!({ "cost_usd": "0.20" }));
    let governed_plane = Plan::new(&rules).agent("a", delegating("b", 2)).agent("b", cheaper).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed, "0.60 + 0.60 do not fit, 0.20 + 0.60 do: {}", reason(&task));
    let greedy = Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        let more = json!({ "ruvector": { "budget": { "usd": "100" }, "estimate": { "usd": "0.95" } } });
        let refused = turn.delegation.call("b", message("on", more).message.as_ref().clone()).await.unwrap_err();
        Ok(updates.fail(refused.message.into_owned()))
    });
    let governed_plane = Plan::new(&rules).agent("a", greedy).agent("b", quick()).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert!(reason(&task).starts_with("BUDGET_EXHAUSTED tree="), "{}", reason(&task));
}

#[tokio::test]
async fn a_root_can_ask_for_less_than_the_operator_gives_and_not_for_more() {
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "0.50" } });
    let governed_plane = Plan::new(&rules).agent("a", quick()).build();
    let asked = |usd: &str| message("go", json!({ "ruvector": { "budget": { "usd": usd } } }));
    governed_plane.send(&caller("ada"), asked("0.50")).await.unwrap();
    let error = governed_plane.send(&caller("ada"), asked("0.49")).await.unwrap_err();
    assert!(error.message.contains("limit=0.49"), "{error}");
    let dear =
        Plan::new(&json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "1.01" } })).agent("a", quick()).build();
    let error = dear.send(&caller("ada"), asked("5")).await.unwrap_err();
    assert!(error.message.contains("limit=1.00 "), "{error}");
}

#[tokio::test]
async fn a_running_task_gets_more_while_there_is_more_and_is_stopped_when_there_is_not() {
    let steps = Arc::new(AtomicU32::new(0));
    let growing = {
        let steps = Arc::clone(&steps);
        Acts(move |turn: Turn, mut updates: TaskUpdateSink| {
            let steps = Arc::clone(&steps);
            async move {
                for step in 1..=20_u32 {
                    if turn.cancelled.is_cancelled() {
                        return Ok(updates.canceled());
                    }
                    steps.store(step, Ordering::Relaxed);
                    let cost = json!({ "usage": { "cost_usd": f64::from(step) / 10.0 } });
                    updates.annotate(crate::governance::governed_plane::metadata(cost)).await?;
                    tokio::task::yield_now().await;
                }
                Ok(updates.complete(None))
            }
        })
    };
    let rules = json!({ "budget": { "tree": { "max_usd": "1" } }, "prices": { "a": "0.10" } });
    let governed_plane = Plan::new(&rules).agent("a", growing).build();
    let task = governed_plane.say(&caller("ada"), "go").await.unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(reason(&task).starts_with("BUDGET_EXHAUSTED"), "{}", reason(&task));
    assert_eq!(steps.load(Ordering::Relaxed), 11, "1.10 is the first report past 1");
    let (governed, _) = governed_plane.plane.explain_task(&task.id).await.unwrap().unwrap();
    assert_eq!((governed.spend.settled.usd, governed.spend.overrun.usd), (MicroUsd(1_000_000), MicroUsd(100_000)));
}

#[tokio::test]
async fn work_that_nobody_could_be_given_costs_nothing_and_work_that_failed_costs_its_price() {
    for (begun, spent) in [(false, MicroUsd(0)), (true, MicroUsd(5_000))] {
        let fails = Acts(move |_turn: Turn, _updates: TaskUpdateSink| async move {
            Err(if begun { RunError::new("it broke") } else { RunError::not_begun("nobody is there") })
        });
        let governed_plane = Plan::new(&per_minute(json!("shed"))).agent("a", fails).build();
        let task = governed_plane.say(&caller("ada"), "do it").await.unwrap();
        assert_eq!(task.status.state, TaskState::Failed);
        let standing = governed_plane.standing("global").expect("it is counted");
        assert_eq!((standing.settled.usd, standing.reserved.usd), (spent, MicroUsd(0)), "begun: {begun}");
        // The store says the same: a restart counts on from there.
        let kept = governed_plane.store.governed(&task.id).await.unwrap().unwrap().spend;
        assert_eq!((kept.settled.usd, kept.reserved.usd), (spent, MicroUsd(0)), "begun: {begun}");
    }
}
