//! What becomes of deliveries: order, retries, rejections, receivers that are gone, backlogs.

use std::time::Duration;

use chancery_core::notify::{Bounds, EngineConfig, SlotLimits};
use chancery_core::push::DeadFilter;
use chancery_protocol::{TaskEvent, TaskState};
use tokio::time::Instant;

use crate::push::network::{Act, Network};
use crate::push::push_plane::{PushPlane, config};

const HOOK: &str = "https://hooks.example/a";

fn numbers(network: &Network) -> Vec<(u64, u32)> {
    network.seen().iter().map(|seen| (seen.to, seen.attempt)).collect()
}

#[tokio::test(start_paused = true)]
async fn everything_that_happens_is_told_in_order_once() {
    let push_plane = PushPlane::new(Network::kind());
    push_plane.start();
    let task = push_plane.task("3", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(5)).await);
    let seen = push_plane.network.seen();
    assert_eq!(seen.iter().map(|seen| seen.to).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let told: Vec<_> = seen.iter().map(|seen| push_plane.network.event(&seen.id).unwrap()).collect();
    assert!(matches!(&told[0], TaskEvent::Created(created) if created.id == task.id));
    assert!(matches!(&told[4], TaskEvent::Status(change) if change.status.state == TaskState::Completed));
    let receipts = push_plane.outbox.receipts(None, 0, 100).await.unwrap();
    assert_eq!(receipts.len(), 5);
    for pair in receipts.windows(2) {
        assert_eq!(pair[1].1.prev_hash, pair[0].1.hash, "receipts are a chain");
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_is_tried_again_by_the_schedule_with_the_same_bytes() {
    let mut answers = [503, 503, 200].into_iter();
    let push_plane = PushPlane::new(Network::new(move |_, _, _| Act::Answer(answers.next().unwrap_or(200))));
    push_plane.start();
    push_plane.task("0", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(60)).await);
    assert_eq!(numbers(&push_plane.network), [(1, 1), (1, 2), (1, 3), (2, 1)]);
    let seen = push_plane.network.seen();
    assert!(seen[..3].iter().all(|again| again.id == seen[0].id && again.body == seen[0].body));
    let waits: Vec<f64> = seen.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect();
    assert!((0.8..1.3).contains(&waits[0]) && (4.0..6.3).contains(&waits[1]), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_heeded() {
    let mut acts = [Act::Later(429, 40), Act::Answer(200)].into_iter();
    let push_plane = PushPlane::new(Network::new(move |_, _, _| acts.next().unwrap_or(Act::Answer(200))));
    push_plane.start();
    push_plane.task("0", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(90)).await);
    let seen = push_plane.network.seen();
    let wait = seen[1].at - seen[0].at;
    assert!((Duration::from_secs(40)..Duration::from_secs(42)).contains(&wait), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_is_kept_and_the_next_one_goes_out() {
    for (status, reason) in [(400, "rejected"), (404, "rejected"), (422, "rejected"), (302, "redirect"), (308, "redirect")] {
        let push_plane = PushPlane::new(Network::new(move |_, seq, _| Act::Answer(if seq == 2 { status } else { 200 })));
        push_plane.start();
        push_plane.task("1", HOOK).await;
        assert!(push_plane.drained(Duration::from_secs(5)).await);
        assert_eq!(numbers(&push_plane.network), [(1, 1), (2, 1), (3, 1)], "{status} is not tried again");
        let dead = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
        assert_eq!(dead.len(), 1);
        assert_eq!((&*dead[0].reason, dead[0].from, dead[0].to, dead[0].http), (reason, 2, 2, Some(status)));
        assert_eq!(dead[0].body, push_plane.network.seen()[1].body);
    }
}

#[tokio::test(start_paused = true)]
async fn three_refused_credentials_in_a_row_turn_a_webhook_off() {
    let push_plane = PushPlane::new(Network::new(|_, seq, _| Act::Answer(if seq == 2 { 200 } else { 401 })));
    push_plane.start();
    let task = push_plane.task("5", HOOK).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    // The first is refused, the second taken, the third to fifth refused.
    assert_eq!(numbers(&push_plane.network), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
    let state = push_plane.lane(&task.id).await.cursor.state;
    assert_eq!(format!("{state:?}"), "Disabled(AuthRejected)");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_gets_nothing_more() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(410)));
    push_plane.start();
    let task = push_plane.task("4", HOOK).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(push_plane.network.seen().len(), 1);
    assert_eq!(push_plane.lane(&task.id).await.cursor.state.as_str(), "gone");
    let dead = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert_eq!(&*dead[0].reason, "gone");
    assert_eq!(dead.last().unwrap().to, 6, "everything that was pending is kept");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_address_turns_a_webhook_off_and_keeps_what_is_pending() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Blocked));
    push_plane.start();
    let task = push_plane.task("2", HOOK).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let cursor = push_plane.lane(&task.id).await.cursor;
    assert_eq!(format!("{:?}", cursor.state), "Disabled(BlockedAddress)");
    assert_eq!((cursor.head, push_plane.network.seen().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn when_the_schedule_is_used_up_everything_pending_becomes_one_letter() {
    let mut config = config();
    config.notify.schedule_s = vec![0, 1, 1];
    let push_plane = PushPlane::with(Network::new(|_, _, _| Act::Answer(500)), config);
    push_plane.start();
    let task = push_plane.task("3", HOOK).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(numbers(&push_plane.network), [(1, 1), (1, 2), (1, 3)]);
    assert_eq!(format!("{:?}", push_plane.lane(&task.id).await.cursor.state), "Disabled(Exhausted)");
    let dead = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert_eq!(dead.len(), 1);
    assert_eq!((&*dead[0].reason, dead[0].from, dead[0].to, dead[0].attempts), ("exhausted", 1, 5, 3));
    let kept = push_plane.network.task(&dead[0].webhook_id).unwrap();
    assert_eq!(kept.status.state, TaskState::Completed, "the letter has the task as it was at its end");
}

#[tokio::test(start_paused = true)]
async fn a_long_backlog_goes_out_as_the_task_as_it_is() {
    let bounds = Bounds { backlog_events: 8, ..Bounds::default() };
    let network = Network::new(|_, _, _| Act::Answer(503));
    let push_plane = PushPlane::with(network, EngineConfig { bounds, ..config() });
    push_plane.start();
    let task = push_plane.task("0 0 ask", HOOK).await;
    for _ in 0..10 {
        push_plane.send("1 0 ask", Some(task.id.clone()), None, false).await;
    }
    let last = push_plane.send("1", Some(task.id.clone()), None, false).await;
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    assert!(push_plane.drained(Duration::from_secs(3_600)).await);
    let taken = push_plane.network.taken();
    assert!(taken.len() <= 3, "{:?}", taken.iter().map(|seen| (seen.from, seen.to)).collect::<Vec<_>>());
    let (first, whole) = (&taken[0], taken.last().unwrap());
    assert_eq!((first.from, first.to), (1, 1), "what was tried before stays what it was");
    let told = push_plane.network.task(&whole.id).unwrap();
    assert_eq!((&told.status.state, &told.artifacts), (&TaskState::Completed, &last.artifacts));
}

#[tokio::test(start_paused = true)]
async fn pieces_of_one_artifact_are_put_together_when_there_are_many() {
    let bounds = Bounds { backlog_events: 8, ..Bounds::default() };
    let network = Network::new(|_, _, _| Act::Answer(503));
    let push_plane = PushPlane::with(network, EngineConfig { bounds, ..config() });
    push_plane.start();
    let task = push_plane.task("40", HOOK).await;
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    assert!(push_plane.drained(Duration::from_secs(600)).await);
    let taken: Vec<_> = push_plane.network.taken().iter().map(|seen| (seen.from, seen.to)).collect();
    assert_eq!(taken, [(1, 1), (2, 41), (42, 42)]);
    let merged = &push_plane.network.taken()[1].id;
    let Some(TaskEvent::Artifact(chunk)) = push_plane.network.event(merged) else { panic!("{merged}") };
    assert_eq!(chunk.artifact.parts, task.artifacts[0].parts);
    assert!(chunk.last_chunk && !chunk.append);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_keeps_nobody_else_waiting() {
    let network = Network::new(|registration, _, _| match registration.url.contains("hanging") {
        true => Act::Hang,
        false => Act::Answer(200),
    });
    let push_plane = PushPlane::new(network);
    push_plane.start();
    let began = Instant::now();
    for number in 0..50 {
        push_plane.begun("1", &format!("https://hanging-{number}.example/")).await;
    }
    for number in 0..200 {
        push_plane.begun("1", &format!("https://healthy-{number}.example/")).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let healthy: Vec<_> = push_plane.network.taken();
    assert_eq!(healthy.len(), 600, "{:?}", began.elapsed());
    assert!(healthy.iter().all(|seen| seen.at - began < Duration::from_secs(2)));
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_fails_is_left_alone_and_that_costs_no_attempt() {
    let network = Network::new(|_, _, _| Act::Reset);
    let push_plane = PushPlane::new(network);
    push_plane.start();
    for _ in 0..40 {
        push_plane.begun("0", HOOK).await;
    }
    tokio::time::sleep(Duration::from_secs(25)).await;
    let tries = push_plane.network.seen().len();
    assert!(tries < 40, "{tries} tries: the breaker opens after a few");
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    assert!(push_plane.drained(Duration::from_secs(600)).await);
    assert!(push_plane.lanes().await.iter().all(|lane| lane.cursor.attempt == 0));
    assert_eq!(push_plane.network.taken().len(), 80);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_told_of_states_only_misses_none_behind_a_long_run_of_pieces() {
    let usual = Bounds::default();
    for bounds in [Bounds { preserve: true, ..usual.clone() }, Bounds { backlog_bytes: 100, ..usual.clone() }, usual] {
        let push_plane = PushPlane::with(Network::kind(), EngineConfig { bounds: bounds.clone(), ..config() });
        // Everything has happened before the first is told.
        let task = push_plane.task("300", "https://status.example/").await;
        push_plane.start();
        assert!(push_plane.drained(Duration::from_secs(60)).await, "{bounds:?}");
        let taken = push_plane.network.taken();
        assert_eq!(taken.first().map(|seen| seen.to), Some(1), "{bounds:?}");
        let last = taken.last().unwrap();
        assert_eq!(last.to, 302, "{bounds:?}: {:?}", numbers(&push_plane.network));
        let told = push_plane.network.event(&last.id).map(|event| matches!(event, TaskEvent::Status(_)));
        let whole = push_plane.network.task(&last.id).map(|told| told.status.state == task.status.state);
        assert_eq!(told.or(whole), Some(true), "{bounds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_longer_than_its_claim_lasts_is_delivered_once_and_leaves_nothing_behind() {
    let slots = SlotLimits { in_flight_per_origin: 1, max_in_flight_per_origin: 1, ..config().slots };
    let slow = Network::new(|_, _, _| Act::Slow(200, Duration::from_secs(6)));
    let push_plane = PushPlane::with(slow, EngineConfig { slots, ..config() });
    push_plane.start();
    for _ in 0..8 {
        push_plane.begun("0", HOOK).await;
    }
    assert!(push_plane.drained(Duration::from_secs(600)).await);
    assert_eq!(push_plane.network.seen().len(), 16, "two entries each, and none of them twice");
    let (_, notifier) = push_plane.chancery.outbox().unwrap();
    assert!(notifier.in_flight.is_empty(), "{} are thought to be under way", notifier.in_flight.len());
}
