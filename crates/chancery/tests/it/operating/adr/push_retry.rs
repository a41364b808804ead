//! 503, 503, 200: one delivery, two failures that are logged, and the same bytes each time.

use serde_json::json;

use crate::push::receiver::{Act, Receiver};
use crate::push::{send, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_retry() {
    let receiver = Receiver::new(|got| Act::Answer(if got.attempt() < 3 { 503 } else { 200 })).await;
    let server = server("schedule_s = [0, 1, 1, 1]");
    send(&server, "complete", json!({ "url": receiver.url("/hook") }), true).await;
    receiver.has_taken(1).await;
    let first: Vec<_> = receiver.got().into_iter().filter(|got| got.seq() == 1).collect();
    assert_eq!(
        first.iter().map(|got| (got.attempt(), got.answered)).collect::<Vec<_>>(),
        [(1, Some(503)), (2, Some(503)), (3, Some(200))]
    );
    for again in &first[1..] {
        assert_eq!((again.header("webhook-id"), &again.body), (first[0].header("webhook-id"), &first[0].body));
    }
    let log = server.log();
    let failures = log
        .lines()
        .filter(|line| line.contains("did not accept a notification; the node tries again") && line.contains(r#""seq":1,"#));
    assert_eq!(failures.count(), 2, "{log}");
}
