//! Origins: web pages of others may not call, on any node, with any credentials.

use chancery_inbound::{DoorSettings, InboundLimits};

use crate::node::{KEY, Node, settings};
use crate::wire::{HARMLESS, RawRequest, SEND, SEND_REST, ask};

const ORIGIN_NOT_ALLOWED: i64 = -32049;

const FOREIGN: [&str; 7] = [
    "null",
    "https://evil.example",
    "https://agents.example.evil",
    "file://",
    "localhost",
    "chrome-extension://localhost",
    "https://u@agents.example",
];

#[tokio::test]
async fn pages_of_others_are_refused_at_every_door_of_an_open_node_and_run_nothing() {
    let node = Node::open(InboundLimits::default()).await;
    for origin in FOREIGN {
        let line = format!("Origin: {origin}");
        for request in [
            RawRequest::post("/", SEND),
            RawRequest::post("/message:send", SEND_REST),
            RawRequest::get("/tasks"),
            RawRequest::get("/.well-known/agent-card.json"),
            RawRequest::get("/livez"),
        ] {
            let answer = ask(&node, &request.clone().with(&line)).await;
            assert_eq!(answer.status, 403, "{origin} {request:?}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{answer:?}");
        }
        let answer = ask(&node, &RawRequest::post("/", SEND).with(&line)).await;
        assert_eq!((answer.code(), answer.json()["id"].as_i64()), (Some(ORIGIN_NOT_ALLOWED), Some(1)), "{answer:?}");
        let answer = ask(&node, &RawRequest::grpc().with(&line)).await;
        assert_eq!(answer.header("grpc-status"), Some("7"), "PERMISSION_DENIED: {answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn on_a_closed_node_a_foreign_page_is_refused_with_the_right_key_and_with_none() {
    let node = Node::closed(InboundLimits::default()).await;
    for request in [RawRequest::post("/", SEND).key(KEY), RawRequest::post("/", SEND), RawRequest::post("/", SEND).key("a-guess")]
    {
        let answer = ask(&node, &request.with("Origin: https://evil.example")).await;
        assert_eq!(answer.status, 403, "{answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn pages_of_the_nodes_own_hosts_may_call() {
    let hosts = vec!["box.internal".to_owned()];
    let node = Node::start(DoorSettings { hosts, ..settings(InboundLimits::default()) }).await;
    for origin in
        ["http://localhost:3000", "https://ui.localhost", "http://[::1]:1", "http://agents.example", "https://box.internal"]
    {
        let answer = ask(&node, &RawRequest::post("/", HARMLESS).with(&format!("Origin: {origin}"))).await;
        assert_eq!(answer.status, 200, "{origin}: {answer:?}");
    }
}

#[tokio::test]
async fn one_foreign_origin_among_own_ones_is_enough_to_refuse() {
    let node = Node::open(InboundLimits::default()).await;
    let own = RawRequest::post("/", SEND).with("Origin: http://localhost");
    assert_eq!(ask(&node, &own.clone().with("Origin: https://evil.example")).await.status, 403);
    assert_eq!(node.turns(), 0);
    assert_eq!(ask(&node, &own).await.status, 200);
    assert_eq!(node.turns(), 1);
}

#[tokio::test]
async fn behind_https_only_pages_that_came_over_https_count_as_own() {
    let public_url = "https://agents.example".to_owned();
    let node = Node::start(DoorSettings { public_url, ..settings(InboundLimits::default()) }).await;
    for (origin, status) in [("https://agents.example", 200), ("http://agents.example", 403), ("http://localhost", 200)] {
        let answer = ask(&node, &RawRequest::post("/", HARMLESS).with(&format!("Origin: {origin}"))).await;
        assert_eq!(answer.status, status, "{origin}: {answer:?}");
    }
}
