//! Ten levels of two calls each, a thousand at once, by agents that lie, crash and never return: no cap is ever passed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use chancery_core::budget::{Amount, Caps};
use chancery_core::{CascadeOutcome, Chancery, MicroUsd, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::Request;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, caller, message, metadata, until};

const LEVELS: u64 = 10;
const PRICE: i64 = 10_000;

/// What is taken is within the caps.
pub(crate) fn within_caps(plane: &Chancery) -> Result<(), String> {
    within_caps_or(plane, &HashMap::new())
}

/// The same, where some scopes began with more than that.
pub(crate) fn within_caps_or(plane: &Chancery, at_first: &HashMap<String, Amount>) -> Result<(), String> {
    for (account, standing) in plane.budgets() {
        let at_first = at_first.get(&account.scope().to_string()).copied().unwrap_or_default();
        let Caps { usd, tokens, tasks } = standing.limit.caps;
        let taken: Amount = standing.settled.saturating_add(standing.reserved);
        let fits = usd.is_none_or(|cap| taken.usd <= cap.max(at_first.usd))
            && tokens.is_none_or(|cap| taken.tokens <= cap.max(at_first.tokens))
            && tasks.is_none_or(|cap| taken.tasks <= cap.max(at_first.tasks));
        if !fits {
            return Err(format!("{}: {standing:?}", account.scope()));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Nature {
    /// Says what it cost, within what it was given.
    Truthful,
    /// Some lie, some crash, some never return.
    Wild,
}

#[derive(Default)]
struct Seen {
    running: AtomicUsize,
    most: AtomicUsize,
    ran: AtomicU32,
    /// What was really spent, by the agents' own count.
    spent: AtomicI64,
    go: tokio::sync::watch::Sender<bool>,
}

impl Seen {
    /// Waits until nothing moves any more.
    async fn settle_down(&self) {
        let (mut quiet, mut last) = (0, (0, 0));
        while quiet < 30 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = (self.ran.load(Ordering::Relaxed), self.running.load(Ordering::Relaxed));
            quiet = if now == last && now.0 > 0 { quiet + 1 } else { 0 };
            last = now;
        }
    }
}

/// Calls two of the level below at once, and then does what its dice say.
fn member(level: u64, nature: Nature, seen: &Arc<Seen>) -> impl TaskRunner {
    let seen = Arc::clone(seen);
    Acts(move |turn: Turn, mut updates: TaskUpdateSink| {
        let seen = Arc::clone(&seen);
        async move {
            let _running = Running::one_more(&seen);
            let seed: u64 = turn.message.first_text().and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut dice = SmallRng::seed_from_u64(seed);
            if level + 1 < LEVELS {
                let next = format!("a{}", level + 1);
                let on = |branch: u64| message(&(seed * 2 + branch).to_string(), Value::Null).message.as_ref().clone();
                let calls = [1, 2].map(|branch| turn.delegation.call(&next, on(branch)));
                tokio::select! {
                    _ = futures::future::join_all(calls) => {}
                    () = turn.cancelled.cancelled() => return Ok(updates.canceled()),
                }
            }
            // Nobody is done before everybody is there.
            let _ = seen.go.subscribe().wait_for(|go| *go).await;
            let cost = dice.random_range(1..=PRICE);
            let truthful = json!({ "usage": { "cost_usd": MicroUsd(cost), "input_tokens": 1, "output_tokens": 1 } });
            let kind = if nature == Nature::Truthful { 0 } else { dice.random_range(0..10) };
            match kind {
                5 => updates.annotate(metadata(json!({ "usage": { "cost_usd": 5, "input_tokens": 1_000_000 } }))).await?,
                6 => updates.annotate(metadata(json!({ "usage": { "cost_usd": -3, "output_tokens": "NaN" } }))).await?,
                7 => std::panic::resume_unwind(Box::new("as its dice said")),
                8 => return Err(RunError::new("as its dice said")),
                9 => std::future::pending::<()>().await,
                _ => {
                    seen.spent.fetch_add(cost, Ordering::Relaxed);
                    updates.annotate(metadata(truthful)).await?;
                }
            }
            if turn.cancelled.is_cancelled() {
                return Ok(updates.canceled());
            }
            Ok(updates.complete(None))
        }
    })
}

struct Running<'a>(&'a Seen);

impl<'a> Running<'a> {
    fn one_more(seen: &'a Seen) -> Self {
        seen.ran.fetch_add(1, Ordering::Relaxed);
        let now = seen.running.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most.fetch_max(now, Ordering::Relaxed);
        Self(seen)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn governed_plane(rules: &Value, nature: Nature, seen: &Arc<Seen>) -> GovernedPlane {
    let mut plan = Plan::new(rules);
    plan.limits = TaskLimits { cancel_grace_ms: 50, cascade_ms: 60_000, ..TaskLimits::default() };
    (0..LEVELS).fold(plan, |plan, level| plan.agent(&format!("a{level}"), member(level, nature, seen))).build()
}

fn rules(tree_usd: &str, priced_below: u64) -> Value {
    let prices: serde_json::Map<String, Value> =
        (0..priced_below).map(|level| (format!("a{level}"), json!(MicroUsd(PRICE)))).collect();
    json!({
        "budget": {
            "tree": { "max_usd": tree_usd, "max_tasks": 1_000 },
            "global": { "max_usd_per_minute": "40", "max_tokens_per_minute": 100_000_000 },
            "agent": { "a7": { "max_usd": "1", "window": "1m" } },
            "caller": { "*": { "max_usd": "30", "max_tasks": 5_000, "window": "1h" } },
        },
        "recursion": { "max_call_depth": 20 },
        "policy": { "default": { "max_concurrency": 5_000, "max_tokens": 20_000 } },
        "prices": prices,
    })
}

/// A thread that looks at every budget again and again.
struct Watcher {
    stop: Arc<AtomicBool>,
    looking: std::thread::JoinHandle<(u64, Option<String>)>,
}

impl Watcher {
    fn of(governed_plane: &GovernedPlane) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (plane, stopped) = (governed_plane.plane.clone(), Arc::clone(&stop));
        let looking = std::thread::spawn(move || {
            let mut looks = 0;
            while !stopped.load(Ordering::Relaxed) {
                if let Err(passed) = within_caps(&plane) {
                    return (looks, Some(passed));
                }
                looks += 1;
                std::thread::yield_now();
            }
            (looks, None)
        });
        Self { stop, looking }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let (looks, passed) = self.looking.join().unwrap();
        assert_eq!(passed, None, "a cap was passed, at look {looks}");
        assert!(looks > 20, "it looked only {looks} times");
    }
}

async fn grow(governed_plane: &GovernedPlane, roots: u64, seed: u64) -> Vec<tokio::task::JoinHandle<()>> {
    let send = |root: u64| {
        let (plane, context) = (governed_plane.plane.clone(), caller(&format!("c{root}")));
        let text = (seed + root).to_string();
        async move { drop(plane.call(&context, Request::SendMessage(message(&text, Value::Null))).await) }
    };
    (0..roots).map(|root| tokio::spawn(send(root))).collect()
}

async fn all_given_back(governed_plane: &GovernedPlane) {
    until(|| governed_plane.plane.budgets().iter().all(|(_, standing)| standing.reserved == Amount::default())).await;
    for (account, standing) in governed_plane.plane.budgets() {
        assert_eq!(standing.reserved, Amount::default(), "{}", account.scope());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn truthful_agents_never_spend_past_the_cap_of_their_tree() {
    let seed = 159;
    println!("seed {seed}");
    // All 1,023 would cost up to 10.23; the first tree has room for about half of them.
    for (cap, micros) in [("5", 5_000_000), ("20", 20_000_000)] {
        let seen = Arc::new(Seen::default());
        let governed_plane = governed_plane(&rules(cap, LEVELS), Nature::Truthful, &seen);
        let watcher = Watcher::of(&governed_plane);
        let calls = grow(&governed_plane, 1, seed).await;
        seen.settle_down().await;
        seen.go.send_replace(true);
        for call in calls {
            call.await.unwrap();
        }
        until(|| seen.running.load(Ordering::Relaxed) == 0).await;
        watcher.end();
        let spent = seen.spent.load(Ordering::Relaxed);
        assert!(spent <= micros, "{spent} under {cap}");
        let tasks = governed_plane.store.logs();
        assert!(tasks.len() > 300, "only {} tasks were made", tasks.len());
        let tree = governed_plane.plane.trees(tasks[0].0.task.id.as_str()).await.unwrap().remove(0);
        let booked: i64 = tree.tasks.iter().map(|task| task.spend.settled.usd.0 + task.spend.overrun.usd.0).sum();
        assert_eq!(booked, spent, "the books say what was spent");
        assert!(tree.tasks.iter().all(|task| task.spend.overrun.usd == MicroUsd(0)));
        all_given_back(&governed_plane).await;
    }
}

/// Agents of unknown price below those of a known one, several trees at once, and a node that is told to stop in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_at_once_that_lie_crash_and_never_return_pass_no_cap() {
    for (seed, priced_below) in [(1, LEVELS), (2, LEVELS), (3, LEVELS - 1)] {
        println!("seed {seed}");
        let seen = Arc::new(Seen::default());
        let governed_plane = governed_plane(&rules("20", priced_below), Nature::Wild, &seen);
        let watcher = Watcher::of(&governed_plane);
        let calls = grow(&governed_plane, 3, seed * 1_000).await;
        // Some never return: wait until nothing moves any more, then stop what is left.
        seen.settle_down().await;
        seen.go.send_replace(true);
        seen.settle_down().await;
        let roots: Vec<_> = governed_plane
            .store
            .logs()
            .into_iter()
            .filter(|(stored, _)| &*stored.task.agent == "a0")
            .map(|(stored, _)| stored.task.id.clone())
            .collect();
        for root in &roots {
            let cascaded = governed_plane.plane.cancel_tree(root).await;
            let left: Vec<_> = cascaded.iter().filter(|one| one.outcome == CascadeOutcome::Unreachable).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        for call in calls {
            call.await.unwrap();
        }
        all_given_back(&governed_plane).await;
        watcher.end();
        let (ran, most) = (seen.ran.load(Ordering::Relaxed), seen.most.load(Ordering::Relaxed));
        println!("seed {seed}: {ran} ran, {most} at once");
        assert!(most > 300, "{ran} ran, {most} at once");
    }
}
