//! Windows of budgets slide by a clock that nobody can set. Over a restart the wall clock decides.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::MicroUsd;
use chancery_protocol::ErrorKind;
use serde_json::{Value, json};

use crate::governance::governed_plane::{GovernedPlane, Plan, caller, quick};

const HOURS: i64 = 3_600;

fn rules() -> Value {
    json!({
        "budget": {
            "caller": { "*": { "max_usd": "1", "max_tasks": 10, "window": "1h" } },
            "global": { "max_usd_per_minute": "1" },
        },
        "prices": { "a": "0.50" },
    })
}

/// A node whose caller has spent all it may in an hour.
async fn spent() -> GovernedPlane {
    let governed_plane = Plan::new(&rules()).agent("a", quick()).build();
    governed_plane.say(&caller("ada"), "one").await.unwrap();
    governed_plane.say(&caller("ada"), "two").await.unwrap();
    governed_plane
}

async fn refused(governed_plane: &GovernedPlane, why: &str) -> Duration {
    let error = governed_plane.say(&caller("ada"), "three").await.map(drop).expect_err(why);
    assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{why}: {error}");
    error.retry_after.expect("it says when")
}

#[tokio::test]
async fn setting_the_wall_clock_of_a_running_node_frees_nothing_and_keeps_nothing_back() {
    for by in [2 * HOURS, 24 * 365 * HOURS, -2 * HOURS, -24 * 365 * HOURS] {
        let governed_plane = spent().await;
        let before = refused(&governed_plane, "it is spent").await;
        governed_plane.clock.set_wall_by(by);
        assert_eq!(refused(&governed_plane, "the clock was set").await, before, "by {by} s");
        assert_eq!(governed_plane.standing("caller:tenant/ada").unwrap().settled.usd, MicroUsd(1_000_000), "by {by} s");
        assert_eq!(governed_plane.standing("global").unwrap().settled.usd, MicroUsd(1_000_000), "by {by} s");
        governed_plane.clock.advance(before - Duration::from_millis(1));
        refused(&governed_plane, "a millisecond early").await;
        governed_plane.clock.advance(Duration::from_millis(1));
        governed_plane
            .say(&caller("ada"), "three")
            .await
            .unwrap_or_else(|error| panic!("an hour has passed, set by {by} s: {error}"));
    }
}

async fn restarted(governed_plane: &GovernedPlane) -> GovernedPlane {
    let mut plan = Plan::new(&rules()).agent("a", quick());
    (plan.store, plan.clock) = (Arc::clone(&governed_plane.store), Arc::clone(&governed_plane.clock));
    let after = plan.build();
    after.plane.recover().await.unwrap();
    after
}

#[tokio::test]
async fn over_a_restart_the_wall_clock_decides_what_is_an_hour_old() {
    let governed_plane = spent().await;
    governed_plane.clock.advance(Duration::from_secs(1_800));
    let after = restarted(&governed_plane).await;
    assert_eq!(after.standing("global").unwrap().settled.usd, MicroUsd(0), "the minute is over");
    let wait = refused(&after, "half an hour is left").await;
    assert!(wait <= Duration::from_secs(1_800 + 61), "{wait:?}");
    after.clock.advance(wait);
    after.say(&caller("ada"), "three").await.unwrap();

    let governed_plane = spent().await;
    governed_plane.clock.set_wall_by(-10 * HOURS);
    let after = restarted(&governed_plane).await;
    refused(&after, "what lies ahead by the new time counts from now on").await;

    let governed_plane = spent().await;
    governed_plane.clock.set_wall_by(2 * HOURS);
    restarted(&governed_plane).await.say(&caller("ada"), "three").await.expect("by the wall clock two hours have passed");
}

#[tokio::test]
async fn what_is_settled_after_the_clock_was_set_is_placed_where_it_belongs_by_the_next_start() {
    let governed_plane = spent().await;
    governed_plane.clock.set_wall_by(2 * HOURS);
    governed_plane.clock.advance(Duration::from_secs(3_700));
    governed_plane.say(&caller("ada"), "three").await.unwrap();
    governed_plane.say(&caller("ada"), "four").await.unwrap();
    let after = restarted(&governed_plane).await;
    assert_eq!(after.standing("caller:tenant/ada").unwrap().settled.usd, MicroUsd(1_000_000), "the last two");
    refused(&after, "it is spent again").await;
}
