//! Prices that are learnt from reports: the largest of the last hundred counts, and whoever reports more than
//! was reserved is not believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chancery_core::budget::{CALM_CALLS, OBSERVED_CALLS};
use chancery_core::{MicroUsd, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::ErrorKind;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, metadata, until};

const CENT: i64 = 10_000;

/// Reports what it is told to, when it is told to, and counts what it said.
struct Teller {
    says: Arc<AtomicI64>,
    go: watch::Sender<bool>,
    ran: Arc<AtomicU64>,
    told: Arc<AtomicI64>,
}

impl Teller {
    fn new() -> Self {
        Self { says: Arc::new(AtomicI64::new(CENT)), go: watch::Sender::new(true), ran: Arc::default(), told: Arc::default() }
    }

    fn agent(&self) -> impl TaskRunner + use<> {
        let (says, go, ran, told) = (Arc::clone(&self.says), self.go.subscribe(), Arc::clone(&self.ran), Arc::clone(&self.told));
        Acts(move |_turn: Turn, mut updates: TaskUpdateSink| {
            let (says, mut go, ran, told) = (Arc::clone(&says), go.clone(), Arc::clone(&ran), Arc::clone(&told));
            async move {
                ran.fetch_add(1, Ordering::Relaxed);
                let _ = go.wait_for(|go| *go).await;
                let cost = says.load(Ordering::Relaxed);
                told.fetch_add(cost, Ordering::Relaxed);
                updates.annotate(metadata(json!({ "usage": { "cost_usd": MicroUsd(cost) } }))).await?;
                Ok(updates.complete(None))
            }
        })
    }

    /// One call that reports so much, from its beginning to its end.
    async fn one(&self, governed_plane: &GovernedPlane, cost: i64) {
        self.says.store(cost, Ordering::Relaxed);
        self.go.send_replace(true);
        governed_plane.say(&caller("ada"), "work").await.unwrap();
    }

    fn hold(&self) {
        self.go.send_replace(false);
    }
}

fn own(usd: &str) -> Value {
    json!({
        "budget": { "caller": { "ada": { "max_usd": usd, "window": "1h" } } },
        "policy": { "default": { "max_concurrency": 1_000 } },
    })
}

fn reserved(governed_plane: &GovernedPlane) -> i64 {
    governed_plane.standing("caller:tenant/ada").unwrap().reserved.usd.0
}

async fn ended(governed_plane: &GovernedPlane) {
    until(|| governed_plane.plane.budgets().iter().all(|(_, standing)| standing.reserved.tasks == 0)).await;
}

async fn begin(governed_plane: &GovernedPlane) -> Result<(), ErrorKind> {
    let hint = json!({ "ruvector": { "estimate": { "usd": "0" } } });
    governed_plane.begin(&caller("ada"), hint).await.map(drop).map_err(|error| error.kind)
}

#[tokio::test]
async fn the_largest_of_the_last_hundred_is_held_for_the_next() {
    let teller = Teller::new();
    let governed_plane = Plan::new(&own("1000")).agent("a", teller.agent()).build();
    for cost in [CENT, 30 * CENT, CENT, 2 * CENT] {
        teller.one(&governed_plane, cost).await;
    }
    teller.hold();
    begin(&governed_plane).await.unwrap();
    assert_eq!(reserved(&governed_plane), 30 * CENT, "a mean would be 0.085");
    teller.says.store(CENT, Ordering::Relaxed);
    teller.go.send_replace(true);
    ended(&governed_plane).await;
    for _ in 0..OBSERVED_CALLS {
        teller.one(&governed_plane, CENT).await;
    }
    teller.hold();
    begin(&governed_plane).await.unwrap();
    assert_eq!(reserved(&governed_plane), CENT, "a hundred calls later it is forgotten");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_lies_passes_a_cap_by_no_more_than_was_in_flight_and_is_not_believed_again_so_soon() {
    let teller = Teller::new();
    let governed_plane = Plan::new(&own("1")).agent("a", teller.agent()).build();
    teller.one(&governed_plane, CENT).await;
    teller.hold();
    let mut in_flight = 0;
    while begin(&governed_plane).await.is_ok() {
        in_flight += 1;
    }
    assert_eq!(in_flight, 99, "each at the 0.01 that was learnt");
    until(|| teller.ran.load(Ordering::Relaxed) == 100).await;
    let lie = 50 * CENT;
    teller.says.store(lie, Ordering::Relaxed);
    teller.go.send_replace(true);
    // Others ask all the while.
    while governed_plane.standing("caller:tenant/ada").unwrap().reserved.tasks > 0 {
        if let Ok(()) = begin(&governed_plane).await {
            panic!("a call was admitted beyond the cap");
        }
    }
    let told = teller.told.load(Ordering::Relaxed);
    let bound = in_flight * (lie - CENT);
    assert!(told <= 100 * CENT + bound, "{told}: 1.00 and {bound} above reservations");
    let standing = governed_plane.standing("caller:tenant/ada").unwrap();
    assert_eq!(standing.settled.usd.0 + standing.overrun.usd.0, told, "all of it is on the books");
    assert_eq!(begin(&governed_plane).await, Err(ErrorKind::BudgetExhausted), "and keeps others out");

    // The hour is over, and the agent is not believed: one call at a time, which holds all there is.
    governed_plane.clock.advance(Duration::from_secs(3_700));
    for calm in 0..CALM_CALLS {
        teller.hold();
        begin(&governed_plane).await.unwrap();
        assert_eq!(reserved(&governed_plane), 100 * CENT, "after {calm} that stayed within");
        assert_eq!(begin(&governed_plane).await, Err(ErrorKind::BudgetExhausted));
        teller.says.store(1, Ordering::Relaxed);
        teller.go.send_replace(true);
        ended(&governed_plane).await;
        governed_plane.clock.advance(Duration::from_secs(3_700));
    }
    teller.hold();
    begin(&governed_plane).await.unwrap();
    assert_eq!(reserved(&governed_plane), lie, "believed again, at the largest it ever said");
    begin(&governed_plane).await.unwrap();
}

#[tokio::test]
async fn an_overrun_counts_for_the_agent_whoever_calls_it_and_takes_a_quarter_of_what_is_common() {
    let teller = Teller::new();
    let rules = json!({
        "budget": { "caller": { "ada": { "max_usd": "0.10", "window": "1h" } }, "tenant": { "*": { "max_usd": "8", "window": "1h" } } },
    });
    let governed_plane =
        Plan::new(&rules).agent("a", teller.agent()).agent("b", crate::governance::governed_plane::patient()).build();
    teller.one(&governed_plane, CENT).await;
    teller.one(&governed_plane, 20 * CENT).await;
    teller.hold();
    for (number, other) in ["bob", "cleo", "dan"].into_iter().enumerate() {
        governed_plane.begin(&caller(other), Value::Null).await.unwrap();
        let held = governed_plane.standing("tenant:tenant").unwrap().reserved.usd.0;
        assert_eq!(held, (number as i64 + 1) * 200 * CENT, "a quarter of 8.00 each");
    }
}

#[tokio::test]
async fn an_overrun_is_not_forgiven_by_a_restart() {
    for liar in [false, true] {
        let teller = Teller::new();
        let governed_plane = Plan::new(&own("1")).agent("a", teller.agent()).build();
        teller.one(&governed_plane, CENT).await;
        teller.hold();
        begin(&governed_plane).await.unwrap();
        teller.says.store(if liar { 101 * CENT } else { CENT }, Ordering::Relaxed);
        teller.go.send_replace(true);
        ended(&governed_plane).await;
        let mut plan = Plan::new(&own("5")).agent("a", teller.agent());
        (plan.store, plan.clock) = (Arc::clone(&governed_plane.store), Arc::clone(&governed_plane.clock));
        let after = plan.build();
        after.plane.recover().await.unwrap();
        teller.one(&after, CENT).await;
        teller.hold();
        begin(&after).await.unwrap();
        let second = begin(&after).await;
        assert_eq!(second.is_ok(), !liar, "liar: {liar}, {} reserved", reserved(&after));
    }
}
