//! Windows of budgets slide by a clock that nobody can set. Over a restart the wall clock decides.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::MicroUsd;
use chancery_protocol::ErrorKind;
use serde_json::{Value, json};

use crate::governance::house::{House, Plan, caller, quick};

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
async fn spent() -> House {
    let house = Plan::new(&rules()).agent("a", quick()).build();
    house.say(&caller("ada"), "one").await.unwrap();
    house.say(&caller("ada"), "two").await.unwrap();
    house
}

async fn refused(house: &House, why: &str) -> Duration {
    let error = house.say(&caller("ada"), "three").await.map(drop).expect_err(why);
    assert_eq!(error.kind, ErrorKind::BudgetExhausted, "{why}: {error}");
    error.retry_after.expect("it says when")
}

#[tokio::test]
async fn setting_the_wall_clock_of_a_running_node_frees_nothing_and_keeps_nothing_back() {
    for by in [2 * HOURS, 24 * 365 * HOURS, -2 * HOURS, -24 * 365 * HOURS] {
        let house = spent().await;
        let before = refused(&house, "it is spent").await;
        house.clock.set_wall_by(by);
        assert_eq!(refused(&house, "the clock was set").await, before, "by {by} s");
        assert_eq!(house.standing("caller:tenant/ada").unwrap().settled.usd, MicroUsd(1_000_000), "by {by} s");
        assert_eq!(house.standing("global").unwrap().settled.usd, MicroUsd(1_000_000), "by {by} s");
        house.clock.advance(before - Duration::from_millis(1));
        refused(&house, "a millisecond early").await;
        house.clock.advance(Duration::from_millis(1));
        house.say(&caller("ada"), "three").await.unwrap_or_else(|error| panic!("an hour has passed, set by {by} s: {error}"));
    }
}

async fn restarted(house: &House) -> House {
    let mut plan = Plan::new(&rules()).agent("a", quick());
    (plan.store, plan.clock) = (Arc::clone(&house.store), Arc::clone(&house.clock));
    let after = plan.build();
    after.plane.recover().await.unwrap();
    after
}

#[tokio::test]
async fn over_a_restart_the_wall_clock_decides_what_is_an_hour_old() {
    let house = spent().await;
    house.clock.advance(Duration::from_secs(1_800));
    let after = restarted(&house).await;
    assert_eq!(after.standing("global").unwrap().settled.usd, MicroUsd(0), "the minute is over");
    let wait = refused(&after, "half an hour is left").await;
    assert!(wait <= Duration::from_secs(1_800 + 61), "{wait:?}");
    after.clock.advance(wait);
    after.say(&caller("ada"), "three").await.unwrap();

    let house = spent().await;
    house.clock.set_wall_by(-10 * HOURS);
    let after = restarted(&house).await;
    refused(&after, "what lies ahead by the new time counts from now on").await;

    let house = spent().await;
    house.clock.set_wall_by(2 * HOURS);
    restarted(&house).await.say(&caller("ada"), "three").await.expect("by the wall clock two hours have passed");
}

#[tokio::test]
async fn what_is_settled_after_the_clock_was_set_is_placed_where_it_belongs_by_the_next_start() {
    let house = spent().await;
    house.clock.set_wall_by(2 * HOURS);
    house.clock.advance(Duration::from_secs(3_700));
    house.say(&caller("ada"), "three").await.unwrap();
    house.say(&caller("ada"), "four").await.unwrap();
    let after = restarted(&house).await;
    assert_eq!(after.standing("caller:tenant/ada").unwrap().settled.usd, MicroUsd(1_000_000), "the last two");
    refused(&after, "it is spent again").await;
}
