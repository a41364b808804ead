//! Seeded networks that fail in every way, and engines that stop in the middle: nothing is lost, nothing overtakes, every copy is the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::push::DeadFilter;
use chancery_protocol::TaskId;
use chancery_store::MemoryStore;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use crate::push::network::{Act, Network, Seen};
use crate::push::push_plane::{PushPlane, config};

/// 30 % 503, 10 % resets, 5 % hang, 5 % taken and then reset, 5 % 429, some slow, some rejected.
fn flapping(seed: u64, rejects: bool) -> Arc<Network> {
    let mut random = SmallRng::seed_from_u64(seed);
    Network::new(move |_, _, _| match random.random_range(0..100) {
        0..30 => Act::Answer(503),
        30..40 => Act::Reset,
        40..45 => Act::Hang,
        45..50 => Act::TakeAndReset,
        50..55 => Act::Later(429, random.random_range(1..30)),
        55..65 => Act::Slow(200, Duration::from_millis(random.random_range(1..3_000))),
        65..68 if rejects => Act::Answer(400),
        _ => Act::Answer(200),
    })
}

/// What holds of every lane, whatever happened.
fn check(push_plane: &PushPlane, seen: &[Seen], tails: &HashMap<u64, u64>, seed: u64) {
    let mut bodies: HashMap<&str, &[u8]> = HashMap::new();
    let mut next: HashMap<u64, u64> = HashMap::new();
    for request in seen {
        let first = *bodies.entry(&request.id).or_insert(&request.body);
        assert_eq!(first, &*request.body, "seed {seed}: two bodies under {}", request.id);
        let next = next.entry(request.lane).or_insert(1);
        assert!(request.from <= *next, "seed {seed}: lane {} skipped from {next} to {}", request.lane, request.from);
        if request.taken {
            *next = (*next).max(request.to + 1);
        }
    }
    for (lane, tail) in tails {
        assert_eq!(next.get(lane), Some(&(tail + 1)), "seed {seed}: lane {lane} was not told everything");
    }
    let _ = push_plane;
}

async fn tails(push_plane: &PushPlane) -> HashMap<u64, u64> {
    push_plane.lanes().await.iter().map(|lane| (lane.number(), lane.cursor.tail)).collect()
}

/// Nobody gives up: what is lost is lost by us.
fn patient() -> Vec<u64> {
    [vec![0], [1, 5, 30].repeat(20)].concat()
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok());
    let most = if std::env::var_os("CHANCERY_SOAK").is_some() { usual * 50 } else { usual };
    first.map_or(0..most, |seed| seed..seed + 1)
}

#[tokio::test(start_paused = true)]
async fn a_flapping_network_loses_nothing_and_keeps_the_order() {
    for seed in seeds(20) {
        let mut random = SmallRng::seed_from_u64(!seed);
        let mut config = config();
        config.notify.schedule_s = patient();
        let push_plane = PushPlane::with(flapping(seed, false), config);
        push_plane.start();
        for number in 0..12 {
            let pieces = random.random_range(0..12);
            let pause = random.random_range(0..400);
            push_plane.begun(&format!("{pieces} {pause}"), &format!("https://h{}.example/{number}", number % 3)).await;
            tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
        }
        // Everything has happened by then; now it has to arrive.
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(
            push_plane.drained(Duration::from_secs(50_000)).await,
            "seed {seed}: not drained, {:?}",
            push_plane.lanes().await
        );
        check(&push_plane, &push_plane.network.seen(), &tails(&push_plane).await, seed);
        assert!(push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 1).await.unwrap().letters.is_empty(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_meanwhile_is_a_letter_and_nothing_else_is_lost() {
    for seed in seeds(10) {
        let push_plane = PushPlane::new(flapping(seed, true));
        push_plane.start();
        for number in 0..8 {
            push_plane.begun("6 50", &format!("https://h{number}.example/")).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        // Each of a lane's eight entries may need all of its schedule, up to 327,000 s, before the last attempt takes it.
        assert!(
            push_plane.drained(Duration::from_secs(3_000_000)).await,
            "seed {seed}: not drained, {:?}",
            push_plane.lanes().await
        );
        let letters = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 1_000).await.unwrap().letters;
        for lane in push_plane.lanes().await {
            let mine = |request: &&Seen| request.lane == lane.number() && request.taken;
            let seen = push_plane.network.seen();
            for seq in 1..=lane.cursor.tail {
                let told = seen.iter().filter(mine).any(|request| (request.from..=request.to).contains(&seq));
                let dead = letters.iter().any(|letter| letter.lane == lane.number() && (letter.from..=letter.to).contains(&seq));
                assert!(told || dead, "seed {seed}: entry {seq} of lane {} is neither told nor kept", lane.number());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_killed_leaves_nothing_behind_that_the_next_one_does_not_send() {
    for seed in seeds(20) {
        let mut random = SmallRng::seed_from_u64(seed);
        let store = Arc::new(MemoryStore::new());
        let network = flapping(seed, false);
        let mut config = config();
        config.notify.schedule_s = patient();
        let mut tasks: Vec<TaskId> = Vec::new();
        for life in 0..6 {
            let push_plane = PushPlane::over(Arc::clone(&store), Arc::clone(&network), config.clone());
            let engine = push_plane.start();
            for number in 0..4 {
                let pieces = random.random_range(0..6);
                let url = format!("https://h{number}.example/{life}");
                tasks.push(push_plane.begun(&format!("{pieces} 20"), &url).await.id.clone());
            }
            tokio::time::sleep(Duration::from_millis(random.random_range(20..5_000))).await;
            // Like the end of the process: whatever it was doing, it says no more.
            engine.abort();
            push_plane.engine.abandon();
            let _ = engine.await;
        }
        let killed = Instant::now();
        let push_plane = PushPlane::over(store, network, config);
        push_plane.start();
        assert!(push_plane.drained(Duration::from_secs(50_000)).await, "seed {seed}: not drained {:?} after", killed.elapsed());
        check(&push_plane, &push_plane.network.seen(), &tails(&push_plane).await, seed);
    }
}
