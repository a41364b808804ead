//! Whoever looks for notifications right after an answer finds them, and whoever hangs keeps nobody waiting for long.

use std::time::Duration;

use chancery_core::{Answer, NextEvents};
use chancery_protocol::{Request, SubscribeToTask};
use chancery_testkit::call_context;
use tokio::time::Instant;

use crate::push::network::{Act, Network};
use crate::push::push_plane::PushPlane;

const HOOK: &str = "https://hooks.example/a";

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_first_attempts() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Slow(200, Duration::from_millis(20))));
    push_plane.start();
    push_plane.task("3", HOOK).await;
    assert_eq!(push_plane.network.taken().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_no_longer_than_it_was_told_to() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Hang));
    push_plane.start();
    let began = Instant::now();
    push_plane.task("3", HOOK).await;
    let waited = began.elapsed();
    assert!((Duration::from_millis(250)..Duration::from_millis(300)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_retry_or_without_a_webhook() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Answer(503)));
    push_plane.start();
    let began = Instant::now();
    push_plane.task("3", HOOK).await;
    push_plane.send("3", None, None, false).await;
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_delays_no_event_of_a_stream_and_its_end_only_a_little() {
    let push_plane = PushPlane::new(Network::new(|_, _, _| Act::Hang));
    push_plane.start();
    let began = Instant::now();
    let task = push_plane.begun("5 100", HOOK).await;
    let subscribe = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: task.id.clone() });
    let Ok(Answer::Stream(mut stream)) = push_plane.chancery.call(&call_context(), subscribe).await else { panic!("no stream") };
    let mut events = 0;
    while let NextEvents::Events(entries) = stream.next().await.unwrap() {
        events += entries.len();
        let late = began.elapsed().as_millis() % 100;
        assert!(late <= 2, "an event came {late} ms after it happened");
    }
    assert!(events >= 6, "{events}");
    let ended = began.elapsed();
    assert!(ended >= Duration::from_millis(750) && ended < Duration::from_millis(800), "{ended:?}");
}
