//! Delete, pause, resume, re-enable and replay, while deliveries go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_core::notify::{EngineConfig, SlotLimits};
use chancery_core::push::{DeadFilter, LaneFilter, StateChange};
use chancery_protocol::TaskState;
use chancery_store::MemoryStore;
use tokio::time::Instant;

use crate::push::ending_outbox::{Doing, EndingOutbox, Side};
use crate::push::network::{Act, Network};
use crate::push::push_plane::{PushPlane, config};

const HOOK: &str = "https://hooks.example/a";

#[tokio::test(start_paused = true)]
async fn nothing_begins_after_a_delete_and_what_is_under_way_is_broken_off() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Slow(200, Duration::from_millis(700))));
    push_plane.start();
    let task = push_plane.begun("50 100", HOOK).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    push_plane.unregister(&task.id, task.id.as_str()).await;
    let (deleted, before) = (Instant::now(), push_plane.network.seen().len());
    assert!(before > 0);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(push_plane.network.under_way(), 0, "broken off");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(push_plane.network.seen().len(), before);
    assert!(push_plane.network.seen().iter().all(|seen| seen.at <= deleted));
}

#[tokio::test(start_paused = true)]
async fn a_paused_webhook_goes_on_where_it_was() {
    let push_plane = PushPlane::new(Network::kind());
    push_plane.start();
    let task = push_plane.begun("20 100", HOOK).await;
    tokio::time::sleep(Duration::from_millis(950)).await;
    let all = LaneFilter::default();
    let paused = push_plane.engine.change_state(&all, StateChange::Pause, 0, 10).await.unwrap();
    assert_eq!(paused.len(), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = push_plane.network.seen().len();
    assert!(before < 20, "{before}");
    push_plane.engine.change_state(&all, StateChange::Resume, 0, 10).await.unwrap();
    assert!(push_plane.drained(Duration::from_secs(10)).await);
    let order: Vec<u64> = push_plane.network.taken().iter().map(|seen| seen.to).collect();
    assert_eq!(order, (1..=22).collect::<Vec<_>>());
    assert_eq!(push_plane.lane(&task.id).await.cursor.head, 23);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_enabled_again_first_gets_the_task_as_it_is() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(410)));
    push_plane.start();
    let task = push_plane.task("3", HOOK).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    push_plane.engine.change_state(&LaneFilter::default(), StateChange::Enable, 0, 10).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let taken = push_plane.network.taken();
    assert_eq!(taken.len(), 1);
    let told = push_plane.network.task(&taken[0].id).unwrap();
    assert_eq!((told.status.state, &told.artifacts), (TaskState::Completed, &task.artifacts));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_replayed_in_order_with_their_ids_and_bytes() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(422)));
    push_plane.start();
    push_plane.task("3", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(5)).await);
    let rejected = push_plane.network.seen();
    assert_eq!(rejected.len(), 5);
    push_plane.network.now_does(|_, seq, _| Act::Answer(if seq == 4 { 500 } else { 200 }));
    let queued = push_plane.engine.replay(&DeadFilter::default(), false, 0, 100).await.unwrap();
    assert_eq!(queued.len(), 5);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let replayed: Vec<_> = push_plane.network.seen().into_iter().filter(|seen| seen.replay).collect();
    assert_eq!(replayed.len(), 5);
    for (first, again) in rejected.iter().zip(&replayed) {
        assert_eq!((&first.id, &first.body), (&again.id, &again.body));
    }
    let left = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert_eq!(left.iter().map(|letter| (letter.to, letter.replays, letter.http)).collect::<Vec<_>>(), [(4, 1, Some(500))]);
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    push_plane.engine.replay(&DeadFilter::default(), true, 0, 100).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let last = push_plane.network.seen().pop().unwrap();
    assert!(last.taken && last.id.starts_with(&*rejected[3].id) && last.id != rejected[3].id, "{}", last.id);
    assert!(push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_replay_is_kept_as_soon_as_it_can_be() {
    let store = Arc::new(MemoryStore::new());
    let faulty = EndingOutbox::new(store.clone(), Doing::Replayed, Side::Before, 3);
    let push_plane = PushPlane::built(store, faulty, Network::new(|_, _, _| Act::Answer(422)), config());
    push_plane.start();
    push_plane.task("3", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(5)).await);
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    push_plane.engine.replay(&DeadFilter::default(), false, 0, 100).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let replayed = push_plane.network.seen().into_iter().filter(|seen| seen.replay).count();
    assert_eq!(replayed, 5, "once each");
    assert!(push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn replays_that_are_under_way_end_when_their_webhook_is_deleted_or_turned_off() {
    for deleted in [true, false] {
        let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(422)));
        push_plane.start();
        let task = push_plane.task("30", HOOK).await;
        assert!(push_plane.drained(Duration::from_secs(5)).await);
        push_plane.network.now_does(|_, _, _| Act::Slow(200, Duration::from_secs(1)));
        push_plane.engine.replay(&DeadFilter::default(), false, 0, 100).await.unwrap();
        tokio::time::sleep(Duration::from_millis(3500)).await;
        if deleted {
            push_plane.unregister(&task.id, task.id.as_str()).await;
        } else {
            push_plane.engine.change_state(&LaneFilter::default(), StateChange::Disable, 0, 10).await.unwrap();
        }
        let replayed = || push_plane.network.seen().into_iter().filter(|seen| seen.replay).count();
        let before = replayed();
        assert_eq!(before, 4, "three were taken, one is under way");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(push_plane.network.under_way(), 0, "broken off");
        tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
        assert_eq!(replayed(), before);
        let left = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 100).await.unwrap().letters;
        assert_eq!(left.len(), 29, "and the rest is kept");
        assert!(
            left.iter().all(|letter| letter.error.as_deref().is_some_and(|why| why.contains("deleted, changed or turned off")))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn replays_count_among_the_requests_of_their_host() {
    let slots = SlotLimits { host_requests_per_second: 2, ..SlotLimits::default() };
    let push_plane = PushPlane::with(Network::new(|_, _, _| Act::Answer(422)), EngineConfig { slots, ..config() });
    push_plane.start();
    push_plane.task("10", HOOK).await;
    assert!(push_plane.drained(Duration::from_secs(60)).await);
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    let asked = Instant::now();
    let letters = push_plane.engine.replay(&DeadFilter::default(), false, 0, 100).await.unwrap().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let last = push_plane.network.seen().into_iter().filter(|seen| seen.replay).map(|seen| seen.at).collect::<Vec<_>>();
    assert_eq!(last.len(), letters);
    // A second's worth may be left over; then two a second.
    let least = Duration::from_millis(500 * (letters as u64 - 3));
    assert!(last.iter().max().is_some_and(|at| *at >= asked + least), "{:?}", last.iter().max().map(|at| *at - asked));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_tried_out_out_of_turn_and_under_an_id_of_its_own() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(503)));
    push_plane.start();
    let task = push_plane.task("3", HOOK).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    push_plane.network.now_does(|_, _, _| Act::Answer(200));
    push_plane.engine.try_out(&push_plane.lane(&task.id).await).await.unwrap();
    let tried = push_plane.network.seen().pop().unwrap();
    assert!(tried.replay && tried.id.ends_with("-r0"), "{} {}", tried.id, tried.replay);
    assert!(push_plane.drained(Duration::from_secs(3600)).await);
    let in_turn: Vec<u64> = push_plane.network.taken().iter().filter(|seen| !seen.replay).map(|seen| seen.to).collect();
    assert_eq!(in_turn, (1..=5).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_replayed_without_the_secrets_its_receiver_asked_for() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(422)));
    push_plane.start();
    push_plane.task("0", "https://hooks.example/secret").await;
    assert!(push_plane.drained(Duration::from_secs(5)).await);
    let before = push_plane.network.seen().len();
    push_plane.vault.lost.store(true, Ordering::Relaxed);
    push_plane.engine.replay(&DeadFilter::default(), false, 0, 100).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(push_plane.network.seen().len(), before, "nobody was asked");
    let left = push_plane.outbox.dead_letters(&DeadFilter::default(), 0, 10).await.unwrap().letters;
    assert!(!left.is_empty() && left.iter().all(|letter| letter.error.as_deref().is_some_and(|why| why.contains("secrets"))));
}
