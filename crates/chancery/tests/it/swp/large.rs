//! Reports that do not fit into a frame: nobody who is promised every event is told that a task went well without one.

use chancery_wire::swp::Convention;

use super::{Peer, node, text};

const MOST: usize = 3_000;

/// The longest message that is taken. Of a task that holds it the picture is longer still, and so is the artifact.
fn longest(peer: &mut Peer) -> String {
    let length =
        |words: &str, peer: &mut Peer| peer.telling("t", words, None).encode(&Default::default()).expect("fits").len() - 4;
    let words = format!("complete {}", "x".repeat(MOST / 2));
    let around = length(&words, peer) - words.len();
    let words = format!("complete {}", "x".repeat(MOST - around - "complete ".len()));
    assert_eq!(length(&words, peer), MOST);
    words
}

#[tokio::test]
async fn an_event_that_fits_into_no_frame_fails_a_task_that_is_told_whole_and_the_result_has_it_otherwise() {
    let node = node(&format!("max_frame_bytes = {MOST}"));
    let mut peer = Peer::of(&node).await;
    let words = longest(&mut peer);
    peer.tell("t", &words, None).await;
    let (_, result) = peer.outcome().await;
    assert!(!result.ok && result.error_message.starts_with("TOO_LARGE: "), "{result:?}");
    peer.tell("t", &words, None).await;
    assert_eq!(peer.outcome().await, (Vec::new(), result), "and again");
    // One that fits comes with all of it.
    peer.tell("u", "complete all of it", None).await;
    let (events, result) = peer.outcome().await;
    assert!(result.ok && events.iter().any(|event| event.contains("all of it")), "{events:?} {result:?}");
    // In few words nothing but the result counts: the pieces of this one fit, and so does the whole.
    peer.give("v", "conformance", &words, Some(Convention::Text)).await;
    let (_, result) = peer.outcome().await;
    assert_eq!((result.ok, text(&result.output).len()), (true, words.len() - "complete ".len()));
}
