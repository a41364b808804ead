//! Who is let in, and the order in which that is asked: host, address, path, credentials, and only then the body.

use chancery_inbound::InboundLimits;

use crate::node::{KEY, Node};
use crate::wire::{HARMLESS, RawRequest, SEND, SEND_REST, ask};

const UNAUTHENTICATED: &str = "16";

/// A call at every door that asks for credentials.
fn calls() -> [(&'static str, RawRequest); 6] {
    [
        ("JSON-RPC", RawRequest::post("/", SEND)),
        ("JSON-RPC below the URL", RawRequest::post("/a2a", SEND)),
        ("HTTP+JSON", RawRequest::post("/message:send", SEND_REST)),
        ("HTTP+JSON of 0.3", RawRequest::post("/v1/message:send", SEND_REST)),
        ("tasks", RawRequest::get("/tasks")),
        ("catalog", RawRequest::get("/agents")),
    ]
}

#[tokio::test]
async fn every_door_refuses_calls_without_credentials_and_with_wrong_ones_and_says_what_it_takes() {
    let node = Node::closed(InboundLimits::default()).await;
    for (door, call) in calls() {
        for request in [call.clone(), call.clone().key("a-guess"), call.with("Authorization: Basic dTpw")] {
            let answer = ask(&node, &request).await;
            assert_eq!(answer.status, 401, "{door}: {answer:?}");
            assert!(answer.header("www-authenticate").is_some_and(|takes| takes.contains("Bearer")), "{door}: {answer:?}");
            assert!(!answer.body.contains("a-guess"), "{door}: {answer:?}");
        }
    }
    for request in [RawRequest::grpc(), RawRequest::grpc().key("a-guess")] {
        let answer = ask(&node, &request).await;
        assert_eq!(answer.header("grpc-status"), Some(UNAUTHENTICATED), "{answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn the_right_key_is_let_in_at_every_door() {
    let node = Node::closed(InboundLimits::default()).await;
    for (door, call) in calls() {
        let answer = ask(&node, &call.key(KEY)).await;
        assert!(!matches!(answer.status, 401 | 403), "{door}: {answer:?}");
    }
    assert!(node.turns() >= 3, "both JSON-RPC calls and the one over HTTP+JSON ran the agent");
}

#[tokio::test]
async fn two_different_keys_in_one_request_let_nobody_in() {
    let node = Node::closed(InboundLimits::default()).await;
    for request in [
        RawRequest::post("/", SEND).key(KEY).key("a-guess"),
        RawRequest::post("/", SEND).key("a-guess").key(KEY),
        RawRequest::post("/", SEND).key(KEY).with("X-API-Key: a-guess"),
    ] {
        let answer = ask(&node, &request).await;
        assert!(matches!(answer.status, 400 | 401), "{request:?}: {answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn credentials_are_looked_at_before_the_length_of_a_body() {
    let node = Node::closed(InboundLimits { body_bytes: 500, ..InboundLimits::default() }).await;
    let longer = " ".repeat(501);
    for target in ["/", "/message:send"] {
        for request in [RawRequest::post(target, &longer), RawRequest::chunked(target, &longer)] {
            assert_eq!(ask(&node, &request.clone().key("a-guess")).await.status, 401, "{target}");
            assert_eq!(ask(&node, &request.key(KEY)).await.status, 413, "{target}");
        }
    }
}

#[tokio::test]
async fn a_stranger_whose_body_never_comes_is_told_that_it_is_a_stranger() {
    let node = Node::closed(InboundLimits { body_read_ms: 50, ..InboundLimits::default() }).await;
    for target in ["/", "/message:send"] {
        let announced = RawRequest::json(target).with("Content-Length: 100");
        assert_eq!(ask(&node, &announced.clone().key("a-guess")).await.status, 401, "{target}");
        assert_eq!(ask(&node, &announced.key(KEY)).await.status, 408, "{target}");
    }
}

#[tokio::test]
async fn a_small_body_of_a_stranger_is_read_so_that_the_connection_can_be_used_again() {
    let node = Node::closed(InboundLimits::default()).await;
    let mut connection = crate::wire::Connection::to(&node).await;
    for (key, status) in [("a-guess", 401), (KEY, 200), ("a-guess", 401)] {
        connection.send(&RawRequest::post("/", HARMLESS).key(key).bytes()).await;
        let answer = connection.answer().await.expect("an answer on the same connection");
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.json()["id"], 1, "the answer is to the call: {answer:?}");
    }
}

#[tokio::test]
async fn a_path_that_is_nowhere_is_not_found_whoever_asks_and_its_body_is_not_judged() {
    let node = Node::closed(InboundLimits { body_bytes: 10, ..InboundLimits::default() }).await;
    let longer = " ".repeat(100);
    for request in [
        RawRequest::get("/nothing/here"),
        RawRequest::get("/nothing/here").key(KEY),
        RawRequest::post("/nothing/here", &longer).key("a-guess"),
        RawRequest::get("/.well-known/nothing"),
        RawRequest::get("/..%2flivez"),
    ] {
        let answer = ask(&node, &request).await;
        assert_eq!(answer.status, 404, "{request:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_refused_with_those_it_has() {
    let node = Node::open(InboundLimits::default()).await;
    let answer = ask(&node, &RawRequest::get("/")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{answer:?}");
    for line in ["DELETE /tasks HTTP/1.1", "PUT /message:send HTTP/1.1", "TRACE / HTTP/1.1"] {
        let answer = ask(&node, &RawRequest::bare(line).with("Host: localhost")).await;
        assert!(matches!(answer.status, 404 | 405), "{line}: {answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn what_is_public_needs_no_credentials_and_wrong_ones_do_no_harm() {
    let node = Node::closed(InboundLimits::default()).await;
    for path in
        ["/livez", "/healthz", "/readyz", "/.well-known/agent-card.json", "/.well-known/agent.json", "/.well-known/jwks.json"]
    {
        for request in [RawRequest::get(path), RawRequest::get(path).key("a-guess")] {
            assert_eq!(ask(&node, &request).await.status, 200, "{path}");
        }
    }
}
