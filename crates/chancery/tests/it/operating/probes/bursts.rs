//! A burst of events reaches everybody whole: subscribers, the caller that waits and the one that watches.

use serde_json::Value;

use super::{Kept, serve};
use crate::support::line::{Event, Line};
use crate::support::server::Home;

const SUBSCRIBERS: usize = 4;

/// The numbers in `chunk-N` of all pieces, in the order they came.
fn pieces(events: &[Event]) -> Vec<usize> {
    let parts = events.iter().map(|event| &event.payload["artifactUpdate"]["artifact"]["parts"][0]["text"]);
    parts.filter_map(number).collect()
}

fn number(text: &Value) -> Option<usize> {
    text.as_str()?.trim().strip_prefix("chunk-")?.parse().ok()
}

fn assert_whole(events: &[Event], count: usize, who: &str) {
    assert_eq!(pieces(events), (1..=count).collect::<Vec<_>>(), "{who}");
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "{who}: ids grow");
    assert!(events.last().is_some_and(Event::ends_the_task), "{who}: it ends");
}

async fn burst(line: &Line, count: usize) {
    let parked = line.send("ask how many?").await["task"]["id"].take();
    let mut watching = Vec::new();
    for _ in 0..SUBSCRIBERS {
        watching.push(tokio::spawn(line.subscribe(&parked).await.all()));
    }
    let waited = line.follow_up(&parked, &format!("stream {count}")).await;
    let parts = waited["result"]["task"]["artifacts"][0]["parts"].as_array().expect("an artifact");
    let got: Vec<_> = parts.iter().filter_map(|part| number(&part["text"])).collect();
    assert_eq!(got, (1..=count).collect::<Vec<_>>(), "the caller that waited");
    for (name, subscriber) in watching.into_iter().enumerate() {
        assert_whole(&subscriber.await.unwrap().expect("the server is there"), count, &format!("subscriber {name}"));
    }
    let watched = line.streaming_send(&format!("stream {count}")).await.all().await.expect("the server is there");
    assert_whole(&watched, count, "the caller that watched");
}

#[tokio::test]
async fn a_burst_of_100_events_reaches_every_subscriber_and_the_caller_whole() {
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let home = Home::new();
        let (_server, line) = serve(&home, kept, "");
        burst(&line, 100).await;
    }
}

#[tokio::test]
async fn a_burst_of_10_000_events_reaches_every_subscriber_and_the_caller_whole() {
    let home = Home::new();
    let (_server, line) = serve(&home, Kept::OnDisk, "");
    burst(&line, 10_000).await;
}
