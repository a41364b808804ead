//! A call that comes again under its idempotency key is the call it was: it is shown its task, and no rule is asked about it.

use std::sync::{Arc, Mutex};

use chancery_core::{FreezeScope, TaskUpdateSink, Turn};
use chancery_protocol::{CallContext, ErrorKind};
use chancery_store::MemoryStore;
use chancery_testkit::{FaultPlan, HookedStore};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, Plan, caller, patient, to, until};

fn keyed(key: &str) -> CallContext {
    CallContext { idempotency_key: Some(key.into()), ..caller("ada") }
}

/// Each refuses a second call while the first runs.
fn full() -> [Value; 3] {
    [
        json!({ "policy": { "default": { "max_concurrency": 1 } } }),
        json!({ "budget": { "caller": { "ada": { "max_usd": "1", "window": "1h" } } } }),
        json!({ "budget": { "global": { "max_tasks_per_minute": 1 } } }),
    ]
}

#[tokio::test]
async fn a_retry_gets_its_task_where_a_new_call_is_refused() {
    for rules in full() {
        let governed_plane = Plan::new(&rules).agent("a", patient()).build();
        let first = governed_plane.begin(&keyed("k"), Value::Null).await.unwrap();
        let again = governed_plane.begin(&keyed("k"), Value::Null).await.expect("it is no new work");
        assert_eq!(again.id, first.id, "{rules}");
        assert!(governed_plane.plane.decisions(10).await.unwrap().is_empty(), "nothing was decided");
        let other = governed_plane.begin(&keyed("l"), Value::Null).await.unwrap_err();
        assert!(matches!(other.kind, ErrorKind::ConcurrencyFull | ErrorKind::BudgetExhausted), "{other}");
        assert_eq!(governed_plane.store.logs().len(), 1, "{rules}");
    }
}

#[tokio::test]
async fn a_retry_gets_its_task_also_from_what_is_frozen() {
    let governed_plane = Plan::new(&json!({})).agent("a", patient()).build();
    let first = governed_plane.begin(&keyed("k"), Value::Null).await.unwrap();
    governed_plane.plane.freeze(FreezeScope::Everything, "operator", None).await.unwrap();
    assert_eq!(governed_plane.begin(&keyed("k"), Value::Null).await.unwrap().id, first.id);
    assert_eq!(governed_plane.begin(&keyed("l"), Value::Null).await.unwrap_err().kind, ErrorKind::Frozen);
}

#[tokio::test]
async fn the_same_key_with_other_content_is_a_conflict_and_nothing_else() {
    for rules in full() {
        let governed_plane = Plan::new(&rules).agent("a", patient()).build();
        governed_plane.begin(&keyed("k"), Value::Null).await.unwrap();
        let error = governed_plane.begin(&keyed("k"), json!({ "other": true })).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::IdempotencyConflict, "{rules}");
    }
}

#[tokio::test]
async fn the_same_key_for_another_agent_is_a_conflict() {
    let governed_plane = Plan::new(&json!({})).agent("a", patient()).agent("b", patient()).build();
    governed_plane.begin(&to("a", keyed("k")), Value::Null).await.unwrap();
    assert!(governed_plane.begin(&to("a", keyed("k")), Value::Null).await.is_ok());
    let error = governed_plane.begin(&to("b", keyed("k")), Value::Null).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::IdempotencyConflict);
}

#[tokio::test]
async fn a_retry_that_is_quicker_than_the_call_leaves_the_task_its_place() {
    let placed: Arc<Mutex<Vec<bool>>> = Arc::default();
    let seen = Arc::clone(&placed);
    let agent = Acts(move |turn: Turn, updates: TaskUpdateSink| {
        seen.lock().unwrap().push(turn.delegation.context().is_some());
        async move { Ok(updates.complete(None)) }
    });
    let mut plan = Plan::new(&json!({})).agent("a", agent);
    plan.store = Arc::new(HookedStore::with_faults(MemoryStore::new(), 1, FaultPlan { delay: 50, ..FaultPlan::default() }));
    let governed_plane = plan.build();
    let context = keyed("k");
    let retry = async {
        // It is written, and whoever wrote it does not know yet.
        until(|| !governed_plane.store.logs().is_empty()).await;
        governed_plane.say(&context, "work").await
    };
    let (called, retried) = tokio::join!(governed_plane.say(&context, "work"), retry);
    assert_eq!(called.unwrap().id, retried.unwrap().id);
    assert_eq!(*placed.lock().unwrap(), [true], "it can call others for its task");
}

#[tokio::test]
async fn a_call_without_a_key_reads_nothing_on_its_way() {
    let governed_plane = Plan::new(&json!({})).agent("a", patient()).build();
    let before = governed_plane.store.reads();
    governed_plane.begin(&caller("ada"), Value::Null).await.unwrap();
    assert_eq!(governed_plane.store.reads(), before);
    governed_plane.begin(&keyed("k"), Value::Null).await.unwrap();
    assert_eq!(governed_plane.store.reads(), before + 1, "and one with a key looks once");
}
