//! F4: one origin has thousands of lanes waiting, beside others that are well. F14: one task has a million pieces to tell of, and a receiver
//! that was down all the while. In a time that stands still until everybody waits, so that every wait is exact.

use std::time::Duration;

use chancery_core::notify::{Bounds, EngineConfig};
use chancery_protocol::{TaskEvent, TaskState};
use tokio::time::Instant;

use crate::push::network::{Act, Network};
use crate::push::push_plane::{PushPlane, config};

fn full_counts(reduced: usize, full: usize) -> usize {
    if std::env::var_os("CHANCERY_SOAK").is_some_and(|set| set == "1") { full } else { reduced }
}

/// How long each healthy delivery took from its event, shortest first.
async fn healthy(crowd: usize) -> Vec<Duration> {
    let network = Network::new(|registration, _, _| match registration.url.contains("crowded") {
        true => Act::Slow(200, Duration::from_secs(2)),
        false => Act::Slow(200, Duration::from_millis(10)),
    });
    let push_plane = PushPlane::new(network);
    push_plane.start();
    for _ in 0..crowd {
        push_plane.begun("0", "https://crowded.example/").await;
    }
    let mut waits = Vec::new();
    for round in 0..50 {
        let began = Instant::now();
        let before = push_plane.network.seen().len();
        for number in 0..20 {
            push_plane.begun("0", &format!("https://healthy-{number}.example/{round}")).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let taken = push_plane.network.seen()[before..].to_vec();
        let well: Vec<_> = taken.iter().filter(|seen| seen.taken && seen.at >= began).collect();
        waits.extend(well.iter().map(|seen| seen.at - began));
    }
    let pending = push_plane.lanes().await.iter().filter(|lane| lane.cursor.is_pending()).count();
    assert!(crowd == 0 || pending > crowd / 2, "the crowd was there all the while: {pending}");
    waits.sort_unstable();
    waits
}

#[tokio::test(start_paused = true)]
async fn an_origin_with_a_crowd_of_lanes_keeps_no_other_waiting() {
    let crowd = full_counts(1_500, 10_000);
    let (alone, beside) = (healthy(0).await, healthy(crowd).await);
    let p99 = |waits: &[Duration]| waits[waits.len() * 99 / 100];
    println!("{} and {} deliveries; p99 {:?} alone, {:?} beside {crowd}", alone.len(), beside.len(), p99(&alone), p99(&beside));
    // Those of the crowd that were answered meanwhile are among them, and make it no better.
    assert!(alone.len() == 2_000 && beside.len() >= 2_000, "{} and {}", alone.len(), beside.len());
    assert!(p99(&beside) <= 2 * p99(&alone) + Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn however_long_the_past_a_receiver_that_comes_back_gets_few_requests_and_the_task_as_it_is() {
    let pieces = full_counts(20_000, 1_000_000);
    // Some of the pieces are put together while they fit into one message, and all the rest is the task as it is.
    for bounds in [Bounds::default(), Bounds { backlog_bytes: 50_000, ..Bounds::default() }] {
        let push_plane =
            PushPlane::with(Network::new(|_, _, _| Act::Answer(503)), EngineConfig { bounds: bounds.clone(), ..config() });
        push_plane.start();
        let task = push_plane.task(&pieces.to_string(), "https://hooks.example/").await;
        let tried = push_plane.network.seen().len();
        push_plane.network.now_does(|_, _, _| Act::Answer(200));
        assert!(push_plane.drained(Duration::from_secs(400_000)).await);
        let requests = push_plane.network.seen().len() - tried;
        println!("{pieces} pieces, {requests} requests after it came back");
        assert!(requests <= 5, "{requests} instead of {pieces}");
        let taken = push_plane.network.taken();
        let told: Vec<(u64, u64)> = taken.iter().map(|seen| (seen.from, seen.to)).collect();
        assert_eq!((told[0].0, told.last().map(|last| last.1)), (1, Some(pieces as u64 + 2)), "{told:?}");
        assert!(told.windows(2).all(|pair| pair[1].0 <= pair[0].1 + 1), "nothing is left out: {told:?}");
        assert_eq!(task.status.state, TaskState::Completed);
        // Whatever came in whichever form, it amounts to what can be asked for.
        let mut parts = Vec::new();
        for seen in &taken {
            match (push_plane.network.task(&seen.id), push_plane.network.event(&seen.id)) {
                (Some(whole), _) => parts.clone_from(&whole.artifacts[0].parts),
                (None, Some(TaskEvent::Artifact(chunk))) => parts.extend(chunk.artifact.parts.iter().cloned()),
                _ => {}
            }
        }
        assert!(parts == task.artifacts[0].parts, "{} of {} parts", parts.len(), task.artifacts[0].parts.len());
    }
}
