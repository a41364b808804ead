//! A ring of agents that many roots go round at once: each goes round exactly once, whatever the agents echo.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use chancery_core::lineage::Attribution;
use chancery_core::{Chancery, Store as _, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{CallContext, ErrorKind, Request};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::governance::governed_plane::{Acts, GovernedPlane, Plan, agent_caller, caller, message, to};
use crate::governance::hop_tokens::Desk;

const RING: [&str; 3] = ["a", "b", "c"];

/// What the agents bring back of the hop token they were given.
#[derive(Clone, Copy, Debug)]
enum Echo {
    Always,
    Never,
    HalfTheTime,
}

#[derive(Default)]
struct Ring {
    plane: OnceLock<Chancery>,
    runs: AtomicUsize,
    refusals: Mutex<Vec<ErrorKind>>,
    seed: u64,
}

/// Calls the next agent of the ring with its own credentials, as an agent elsewhere does.
fn member(ring: &Arc<Ring>, place: usize, echo: Echo) -> impl TaskRunner {
    let ring = Arc::clone(ring);
    Acts(move |turn: Turn, updates: TaskUpdateSink| {
        let ring = Arc::clone(&ring);
        async move {
            let run = ring.runs.fetch_add(1, Ordering::Relaxed) as u64;
            let mut dice = SmallRng::seed_from_u64(ring.seed.wrapping_mul(1_000_003) + run);
            for _ in 0..dice.random_range(0..40) {
                tokio::task::yield_now().await;
            }
            let echoes = match echo {
                Echo::Always => true,
                Echo::Never => false,
                Echo::HalfTheTime => dice.random_bool(0.5),
            };
            let hop_token = turn.delegation.hop_token().filter(|_| echoes);
            let context = CallContext { hop_token, ..to(RING[(place + 1) % RING.len()], agent_caller(RING[place])) };
            let plane = ring.plane.get().expect("it is set before the first call").clone();
            if let Err(error) = plane.call(&context, Request::SendMessage(message("on", Value::Null))).await {
                ring.refusals.lock().unwrap().push(error.kind);
            }
            for _ in 0..dice.random_range(0..40) {
                tokio::task::yield_now().await;
            }
            Ok(updates.complete(None))
        }
    })
}

fn governed_plane(ring: &Arc<Ring>, echo: Echo) -> GovernedPlane {
    let mut plan = Plan::new(&json!({ "policy": { "default": { "max_concurrency": 1000 } } }));
    plan.hops = Some(Arc::new(Desk::default()));
    let plan = RING.iter().enumerate().fold(plan, |plan, (place, name)| plan.agent(name, member(ring, place, echo)));
    let governed_plane = plan.build();
    assert!(ring.plane.set(governed_plane.plane.clone()).is_ok());
    governed_plane
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_ring_is_gone_round_once_for_each_of_many_roots_with_tokens_echoed_dropped_and_mixed() {
    let first: u64 = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut ambiguous = 0;
    for (round, roots) in [1, 2, 3, 8, 16, 64].into_iter().enumerate() {
        for echo in [Echo::Always, Echo::Never, Echo::HalfTheTime] {
            let seed = first + round as u64;
            let ring = Arc::new(Ring { seed, ..Ring::default() });
            let governed_plane = governed_plane(&ring, echo);
            let calls: Vec<_> = (0..roots)
                .map(|_| {
                    let plane = governed_plane.plane.clone();
                    let call = Request::SendMessage(message("go", Value::Null));
                    tokio::spawn(async move { plane.call(&to("a", caller("ada")), call).await })
                })
                .collect();
            for call in calls {
                call.await.unwrap().unwrap_or_else(|error| panic!("{roots} roots, {echo:?}, seed {seed}: {error}"));
            }
            let (runs, refusals) = (ring.runs.load(Ordering::Relaxed), ring.refusals.lock().unwrap().clone());
            assert_eq!(runs, 3 * roots, "{roots} roots, {echo:?}, seed {seed}: {refusals:?}");
            assert_eq!(refusals, vec![ErrorKind::RecursionRevisit; roots], "{roots} roots, {echo:?}, seed {seed}");
            for (stored, _) in governed_plane.store.logs() {
                let governed = governed_plane.store.governed(&stored.task.id).await.unwrap().unwrap();
                ambiguous += usize::from(governed.kinship.attribution == Attribution::Ambiguous);
            }
        }
    }
    assert!(ambiguous > 30, "only {ambiguous} calls could come from several tasks: too little is tested");
}
