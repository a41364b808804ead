//! What each answer leads to, over the wire: how often it is sent, and what becomes of the registration.

use std::time::Duration;

use serde_json::json;

use super::receiver::{Act, Receiver};
use super::{admin, send};
use crate::support::patience::soon;
use crate::support::server::{Home, Server};

/// Quick, so that a test need not wait.
const QUICK: &str = "schedule_s = [0, 1, 1, 1]\n";

struct Story {
    server: Server,
    home: Home,
    receiver: Receiver,
}

impl Story {
    async fn of(lines: &str, script: impl FnMut(&super::receiver::Got) -> Act + Send + 'static) -> Self {
        let (home, receiver) = (Home::new(), Receiver::new(script).await);
        let server = super::lasting(&home, &format!("{QUICK}{lines}"));
        Self { server, home, receiver }
    }

    async fn complete(&self) {
        send(&self.server, "complete", json!({ "url": self.receiver.url("/") }), true).await;
    }

    /// State and reason of the only lane once it has one that is not active, or has nothing pending.
    async fn at_rest(&self) -> (String, String) {
        let look = async || {
            let lanes = admin(&self.server, &self.home.data(), "/lanes", None).await;
            let lane = lanes["lanes"][0].clone();
            let done = lane["pending"] == 0 || lane["state"] != "active";
            let text = |name: &str| lane[name].as_str().unwrap_or_default().to_owned();
            done.then(|| (text("state"), text("reason")))
        };
        soon("the lane comes to rest", look).await
    }

    async fn dead(&self) -> Vec<(String, u64)> {
        let letters = admin(&self.server, &self.home.data(), "/dead", None).await;
        let letter = |letter: &serde_json::Value| {
            (letter["reason"].as_str().unwrap_or_default().to_owned(), letter["http"].as_u64().unwrap_or_default())
        };
        letters["letters"].as_array().unwrap().iter().map(letter).collect()
    }

    fn attempts(&self) -> Vec<(u64, u32)> {
        self.receiver.got().iter().map(|got| (got.seq(), got.attempt())).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_mean_yes_no_and_later_are_told_apart() {
    for (status, attempts, dead) in [
        (200, vec![(1, 1), (2, 1)], None),
        (204, vec![(1, 1), (2, 1)], None),
        (301, vec![(1, 1), (2, 1)], Some("redirect")),
        (400, vec![(1, 1), (2, 1)], Some("rejected")),
        (404, vec![(1, 1), (2, 1)], Some("rejected")),
        (413, vec![(1, 1), (2, 1)], Some("rejected")),
    ] {
        let story = Story::of("", move |got| Act::Answer(if got.seq() == 1 { status } else { 200 })).await;
        story.complete().await;
        assert_eq!(story.at_rest().await.0, "active", "{status}");
        assert_eq!(story.attempts(), attempts, "{status}");
        let expected: Vec<(String, u64)> = dead.iter().map(|reason| ((*reason).to_owned(), u64::from(status))).collect();
        assert_eq!(story.dead().await, expected, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_mean_later_are_tried_again_and_retry_after_is_heeded() {
    for status in [408, 409, 425, 429, 500, 502, 503] {
        let mut failed = false;
        let story = Story::of("", move |_| Act::Answer(if std::mem::replace(&mut failed, true) { 200 } else { status })).await;
        story.complete().await;
        assert_eq!(story.at_rest().await.0, "active");
        assert_eq!(story.attempts(), [(1, 1), (1, 2), (2, 1)], "{status}");
    }
    let in_seconds = vec![("retry-after", "3".to_owned())];
    let mut acts = vec![Act::With(429, in_seconds)].into_iter();
    let story = Story::of("", move |_| acts.next().unwrap_or(Act::Answer(200))).await;
    story.complete().await;
    story.at_rest().await;
    let got = story.receiver.got();
    let wait = got[1].at - got[0].at;
    assert!(wait >= Duration::from_millis(2_900), "{wait:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_gone_or_refuses_us_gets_nothing_more() {
    let story = Story::of("", |_| Act::Answer(410)).await;
    story.complete().await;
    assert_eq!(story.at_rest().await.0, "gone");
    assert_eq!(story.attempts(), [(1, 1)]);
    assert_eq!(story.dead().await[0].0, "gone");

    let story = Story::of("", |_| Act::Answer(401)).await;
    send(&story.server, "stream 5", json!({ "url": story.receiver.url("/") }), true).await;
    assert_eq!(story.at_rest().await, ("disabled".to_owned(), "auth_rejected".to_owned()));
    assert_eq!(story.attempts(), [(1, 1), (2, 1), (3, 1)]);

    let story = Story::of("", |_| Act::Answer(500)).await;
    story.complete().await;
    assert_eq!(story.at_rest().await, ("disabled".to_owned(), "exhausted".to_owned()));
    assert_eq!(story.attempts(), [(1, 1), (1, 2), (1, 3), (1, 4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_says_yes_is_enough_and_404_can_mean_later() {
    let story = Story::of("", |_| Act::BreakOff).await;
    story.complete().await;
    assert_eq!(story.at_rest().await.0, "active");
    assert_eq!(story.attempts(), [(1, 1), (2, 1)]);

    let receiver = Receiver::new(|got| Act::Answer(if got.attempt() < 3 { 404 } else { 200 })).await;
    let home = Home::new();
    let origin = receiver.url("");
    let server = super::lasting(&home, &format!("{QUICK}[push.origins.'{origin}']\nretry_4xx = true\n"));
    send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
    let taken = receiver.has_taken(2).await;
    assert_eq!(taken.iter().map(super::receiver::Got::seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(receiver.got().len(), 6);
}
