//! How often calls may come, and that this is looked at before anything dearer is done.

use chancery_inbound::InboundLimits;

use crate::node::{KEY, Node};
use crate::wire::{HARMLESS, RawAnswer, RawRequest, ask};

/// Far more than a bucket of three holds, however slowly they are made.
const MANY: usize = 10_000;

fn per_address() -> InboundLimits {
    InboundLimits { calls_per_second_per_address: 1, calls_burst_per_address: 3, body_bytes: 500, ..InboundLimits::default() }
}

fn per_caller() -> InboundLimits {
    InboundLimits { calls_per_second_per_caller: 1, calls_burst_per_caller: 3, ..InboundLimits::default() }
}

/// Asks until the answer is 429. Every answer before it must have this status, and a burst of three has.
async fn until_limited(node: &Node, request: &RawRequest, before: u16) -> RawAnswer {
    for passed in 0..MANY {
        let answer = ask(node, request).await;
        if answer.status == 429 {
            assert!(passed >= 3, "only {passed} of a burst of three passed");
            return answer;
        }
        assert_eq!(answer.status, before, "{answer:?}");
    }
    panic!("{MANY} calls were let through");
}

#[tokio::test]
async fn an_address_over_its_rate_is_told_when_to_come_back_and_which_limit_holds() {
    let node = Node::open(per_address()).await;
    let answer = until_limited(&node, &RawRequest::post("/", HARMLESS), 200).await;
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    assert!(answer.body.contains("limits.calls_per_second_per_address"), "{answer:?}");
    assert_eq!(answer.json()["id"], 1, "the answer is to the call: {answer:?}");
}

#[tokio::test]
async fn the_rate_of_an_address_is_looked_at_before_its_body() {
    let node = Node::open(per_address()).await;
    until_limited(&node, &RawRequest::post("/", &" ".repeat(501)), 413).await;
    let node = Node::open(per_address()).await;
    until_limited(&node, &RawRequest::post("/message:send", &" ".repeat(501)), 413).await;
}

#[tokio::test]
async fn the_rate_of_an_address_is_looked_at_before_its_credentials() {
    let node = Node::closed(per_address()).await;
    until_limited(&node, &RawRequest::post("/", HARMLESS).key("a-guess"), 401).await;
}

#[tokio::test]
async fn guesses_at_a_key_use_up_nothing_of_the_caller_that_has_it() {
    let node = Node::closed(per_caller()).await;
    for _ in 0..20 {
        assert_eq!(ask(&node, &RawRequest::post("/", HARMLESS).key("a-guess")).await.status, 401);
    }
    let limited = until_limited(&node, &RawRequest::post("/", HARMLESS).key(KEY), 200).await;
    assert!(limited.body.contains("limits.calls_per_second_per_caller"), "{limited:?}");
    let stranger = ask(&node, &RawRequest::post("/", HARMLESS).key("a-guess")).await;
    assert_eq!(stranger.status, 401, "who is not known is told that, and not to wait: {stranger:?}");
}

#[tokio::test]
async fn the_rate_of_a_caller_is_looked_at_before_its_body() {
    let node = Node::closed(InboundLimits { body_bytes: 500, ..per_caller() }).await;
    until_limited(&node, &RawRequest::post("/", &" ".repeat(501)).key(KEY), 413).await;
}

#[tokio::test]
async fn probes_and_cards_are_no_calls_and_have_no_rate() {
    let node = Node::open(per_address()).await;
    for _ in 0..20 {
        for path in ["/livez", "/readyz", "/.well-known/agent-card.json"] {
            assert_eq!(ask(&node, &RawRequest::get(path)).await.status, 200, "{path}");
        }
    }
}
