//! Idempotency keys live for their time: no number of keys makes a retry run again.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::RetentionConfig;
use chancery_protocol::{CallContext, Error, ErrorKind, TaskId};
use serde_json::{Value, json};

use crate::governance::governed_plane::{GovernedPlane, Plan, caller, message, quick};

fn plane(max_keys: u64, max_keys_per_caller: u64) -> GovernedPlane {
    planned(max_keys, max_keys_per_caller).build()
}

fn planned(max_keys: u64, max_keys_per_caller: u64) -> Plan {
    let retention = RetentionConfig { max_keys, max_keys_per_caller, ..RetentionConfig::default() };
    let mut plan = Plan::new(&json!({})).agent("a", quick());
    plan.retention = retention;
    plan
}

async fn send(governed_plane: &GovernedPlane, name: &str, key: &str) -> Result<TaskId, Error> {
    let context = CallContext { idempotency_key: Some(key.into()), ..caller(name) };
    governed_plane.send(&context, message(key, Value::Null)).await.map(|task| task.id.clone())
}

#[tokio::test]
async fn the_keys_of_one_caller_push_out_nobody_elses() {
    let governed_plane = plane(10, 0);
    let first = send(&governed_plane, "ada", "k").await.unwrap();
    for number in 0..20 {
        // Some of them are refused.
        let _ = send(&governed_plane, "bob", &format!("k{number}")).await;
    }
    governed_plane.plane.sweep().await;
    assert_eq!(send(&governed_plane, "ada", "k").await.unwrap(), first, "a retry runs nothing");
}

#[tokio::test]
async fn a_caller_with_too_many_keys_gets_no_new_ones_until_some_have_expired() {
    let governed_plane = plane(0, 3);
    let mut made = Vec::new();
    for key in ["k1", "k2", "k3"] {
        made.push(send(&governed_plane, "ada", key).await.unwrap());
    }
    let refused = send(&governed_plane, "ada", "k4").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::RateLimited, "{refused}");
    assert!(refused.message.contains("retention.max_keys_per_caller = 3"), "{refused}");
    assert!(refused.retry_after.is_some_and(|wait| wait <= Duration::from_secs(24 * 3_600 + 600)), "{:?}", refused.retry_after);
    // Every retry finds its task, calls without a key run, and others are not held up.
    for (key, task) in ["k1", "k2", "k3"].into_iter().zip(&made) {
        assert_eq!(&send(&governed_plane, "ada", key).await.unwrap(), task);
    }
    governed_plane.say(&caller("ada"), "no key").await.unwrap();
    send(&governed_plane, "bob", "k4").await.unwrap();
    governed_plane.clock.advance(refused.retry_after.unwrap());
    send(&governed_plane, "ada", "k4").await.unwrap();
}

/// Two calls at once with one key are one key, and a call that is refused takes none.
#[tokio::test]
async fn only_recorded_keys_count() {
    let governed_plane = plane(0, 2);
    for _ in 0..3 {
        send(&governed_plane, "ada", "k1").await.unwrap();
    }
    let nobody = CallContext { idempotency_key: Some("k2".into()), agent: Some("nobody".into()), ..caller("ada") };
    governed_plane.send(&nobody, message("x", Value::Null)).await.unwrap_err();
    send(&governed_plane, "ada", "k3").await.unwrap();
    assert_eq!(send(&governed_plane, "ada", "k4").await.unwrap_err().kind, ErrorKind::RateLimited);
}

#[tokio::test]
async fn on_a_full_node_each_caller_has_an_equal_share() {
    let governed_plane = plane(10, 0);
    for number in 0..10 {
        send(&governed_plane, "bob", &format!("k{number}")).await.unwrap();
    }
    let refused = send(&governed_plane, "bob", "k10").await.unwrap_err();
    assert!(refused.message.contains("retention.max_keys = 10"), "{refused}");
    for number in 0..5 {
        send(&governed_plane, "ada", &format!("k{number}")).await.unwrap();
    }
    assert_eq!(send(&governed_plane, "ada", "k5").await.unwrap_err().kind, ErrorKind::RateLimited);
}

#[tokio::test]
async fn keys_of_earlier_runs_count() {
    let before = plane(0, 2);
    let first = send(&before, "ada", "k1").await.unwrap();
    send(&before, "ada", "k2").await.unwrap();
    let mut plan = planned(0, 2);
    plan.store = Arc::clone(&before.store);
    let after = plan.build();
    after.plane.recover().await.unwrap();
    assert_eq!(send(&after, "ada", "k3").await.unwrap_err().kind, ErrorKind::RateLimited);
    assert_eq!(send(&after, "ada", "k1").await.unwrap(), first);
}
