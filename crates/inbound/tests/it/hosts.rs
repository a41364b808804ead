//! Hosts: a node without callers answers to its own names only, and every node refuses a request that names two.

use std::net::{IpAddr, Ipv4Addr};

use chancery_inbound::{DoorSettings, InboundLimits};

use crate::node::{KEY, Node, one_caller, settings};
use crate::wire::{HARMLESS, RawRequest, SEND, SEND_REST, ask};

const HOST_NOT_SERVED: i64 = -32048;

async fn open() -> Node {
    Node::open(InboundLimits::default()).await
}

#[tokio::test]
async fn an_open_node_answers_to_the_loopback_its_public_url_and_its_hosts() {
    let hosts = vec!["box.internal".to_owned(), "10.1.2.3".to_owned()];
    let node = Node::start(DoorSettings { hosts, ..settings(InboundLimits::default()) }).await;
    for host in [
        "localhost",
        "LocalHost:1",
        "dev.localhost",
        "127.0.0.1:7420",
        "127.9.9.9",
        "[::1]:7420",
        "agents.example",
        "AGENTS.example.:443",
        "box.internal",
        "10.1.2.3:7420",
    ] {
        assert_eq!(ask(&node, &RawRequest::post("/", HARMLESS).hosts(&[host])).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn every_door_of_an_open_node_refuses_every_other_host_in_its_own_shape() {
    let node = open().await;
    for host in ["evil.example", "localhost.evil.example", "192.168.1.5", "0.0.0.0", "box.internal"] {
        for request in [
            RawRequest::post("/", SEND),
            RawRequest::post("/message:send", SEND_REST),
            RawRequest::post("/v1/message:send", SEND_REST),
            RawRequest::get("/tasks"),
            RawRequest::get("/agents"),
            RawRequest::get("/.well-known/agent-card.json"),
            RawRequest::get("/.well-known/jwks.json"),
            RawRequest::get("/nothing/here"),
        ] {
            let answer = ask(&node, &request.clone().hosts(&[host])).await;
            assert_eq!(answer.status, 421, "{host} {request:?}: {answer:?}");
        }
        let answer = ask(&node, &RawRequest::post("/", SEND).hosts(&[host])).await;
        assert_eq!((answer.code(), answer.json()["id"].as_i64()), (Some(HOST_NOT_SERVED), Some(1)), "{answer:?}");
        let answer = ask(&node, &RawRequest::grpc().hosts(&[host])).await;
        assert_eq!(answer.header("grpc-status"), Some("9"), "FAILED_PRECONDITION: {answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn probes_answer_to_every_host_and_nothing_else_does() {
    let node = open().await;
    for path in ["/livez", "/healthz", "/readyz"] {
        for method in ["GET", "HEAD"] {
            let request = RawRequest::bare(&format!("{method} {path} HTTP/1.1")).hosts(&["10.42.0.7:8080"]);
            // An answer to HEAD has the length of a body that does not follow.
            let mut connection = crate::wire::Connection::to(&node).await;
            connection.send(&request.with("Connection: close").bytes()).await;
            if method == "GET" {
                assert_eq!(connection.answer().await.expect("an answer").status, 200, "{path}");
            } else {
                assert!(connection.first_line().await.starts_with("HTTP/1.1 200 "), "{path}");
            }
        }
        for request in [RawRequest::post(path, "{}"), RawRequest::get(&format!("{path}/x"))] {
            assert_eq!(ask(&node, &request.hosts(&["10.42.0.7:8080"])).await.status, 421, "{path}");
        }
    }
}

#[tokio::test]
async fn a_node_that_asks_for_credentials_and_one_that_is_told_so_answer_to_every_host() {
    let defaults = || settings(InboundLimits::default());
    let closed = Node::start(DoorSettings { authenticator: one_caller(), ..defaults() }).await;
    let every_host = Node::start(DoorSettings { every_host: true, ..defaults() }).await;
    for (node, status) in [(&closed, 401), (&every_host, 200)] {
        assert_eq!(ask(node, &RawRequest::post("/", HARMLESS).hosts(&["any.example"])).await.status, status);
    }
    assert_eq!(ask(&closed, &RawRequest::post("/", HARMLESS).hosts(&["any.example"]).key(KEY)).await.status, 200);
}

#[tokio::test]
async fn a_node_at_every_address_answers_to_any_address_and_to_no_other_name() {
    let listen = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let node = Node::start(DoorSettings { listen, ..settings(InboundLimits::default()) }).await;
    for (host, status) in [("192.168.1.5:7420", 200), ("[fd00::1]", 200), ("localhost", 200), ("evil.example", 421)] {
        assert_eq!(ask(&node, &RawRequest::post("/", HARMLESS).hosts(&[host])).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn two_host_lines_and_none_are_refused_on_every_node_before_credentials() {
    for node in [open().await, Node::closed(InboundLimits::default()).await] {
        for hosts in [&[][..], &["localhost", "localhost"], &["localhost", "evil.example"]] {
            for request in [RawRequest::post("/", SEND), RawRequest::post("/message:send", SEND_REST), RawRequest::get("/livez")]
            {
                let answer = ask(&node, &request.hosts(hosts)).await;
                assert_eq!(answer.status, 400, "{hosts:?}: {answer:?}");
            }
        }
        assert_eq!(node.turns(), 0);
    }
}

#[tokio::test]
async fn http_1_0_may_leave_its_host_out_and_not_name_a_foreign_one() {
    let node = open().await;
    let get = || RawRequest::bare("GET /tasks HTTP/1.0");
    assert_eq!(ask(&node, &get()).await.status, 200);
    assert_eq!(ask(&node, &get().hosts(&["evil.example"])).await.status, 421);
    assert_eq!(ask(&node, &get().hosts(&["localhost", "localhost"])).await.status, 400);
}

#[tokio::test]
async fn a_host_that_is_no_host_is_refused() {
    let node = open().await;
    let bad = ["", ":7420", "a b", "u@localhost", "localhost:x", "localhost:99999", "localhost:+80", "localhost/x", "[::1"];
    for host in bad.into_iter().chain([".localhost", "localhost..", "a..localhost"]) {
        let answer = ask(&node, &RawRequest::post("/", SEND).hosts(&[host])).await;
        assert_eq!(answer.status, 400, "{host:?}: {answer:?}");
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn the_host_of_a_whole_url_in_the_first_line_counts_and_not_the_line() {
    let node = open().await;
    let ask_for = async |url: &str, host: &str| {
        ask(&node, &RawRequest::bare(&format!("GET {url} HTTP/1.1")).with(&format!("Host: {host}"))).await.status
    };
    assert_eq!(ask_for("http://localhost:7420/tasks", "evil.example").await, 200);
    assert_eq!(ask_for("http://evil.example/tasks", "localhost").await, 421);
    assert_eq!(ask_for("http://u@localhost/tasks", "localhost").await, 400);
}

#[tokio::test]
async fn hosts_of_a_reload_hold_for_the_next_request() {
    let node = open().await;
    let request = RawRequest::post("/", HARMLESS).hosts(&["box.internal"]);
    assert_eq!(ask(&node, &request).await.status, 421);
    node.reload(DoorSettings { hosts: vec!["box.internal".to_owned()], ..settings(InboundLimits::default()) });
    assert_eq!(ask(&node, &request).await.status, 200);
}
