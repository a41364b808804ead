//! A call through a trusted proxy counts for the address in its `X-Forwarded-For`, and a call through any other does not.

use std::net::Ipv4Addr;

use chancery_inbound::{InboundLimits, TrustedProxies};

use crate::node::{Node, settings};
use crate::wire::{Connection, HARMLESS, RawRequest, ask};

const MANY: usize = 10_000;

fn trusting(nets: &[&str], limits: InboundLimits) -> InboundLimits {
    let nets = nets.iter().map(|net| net.parse().expect("an address or a network")).collect();
    InboundLimits { trusted_proxies: TrustedProxies(nets), ..limits }
}

fn one_call() -> InboundLimits {
    InboundLimits { calls_per_second_per_address: 1, calls_burst_per_address: 3, ..InboundLimits::default() }
}

fn from(client: &str) -> RawRequest {
    RawRequest::post("/", HARMLESS).with(&format!("X-Forwarded-For: {client}"))
}

/// Calls until the node answers 429, and returns how many calls passed.
async fn passed(node: &Node, request: &RawRequest) -> usize {
    for passed in 0..MANY {
        if ask(node, request).await.status == 429 {
            return passed;
        }
    }
    panic!("{MANY} calls passed");
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_have_a_rate_each() {
    let node = Node::open(trusting(&["127.0.0.0/8"], one_call())).await;
    for client in ["192.0.2.1", "192.0.2.2", "2001:db8::7"] {
        assert!(passed(&node, &from(client)).await >= 3, "{client}");
    }
    assert_eq!(ask(&node, &from("192.0.2.1")).await.status, 429, "the rate of another client changes nothing");
    assert_eq!(ask(&node, &from("198.51.100.9, 192.0.2.1")).await.status, 429, "a client writes an address before its own");
    let two_lines = RawRequest::post("/", HARMLESS).with("X-Forwarded-For: 198.51.100.9").with("X-Forwarded-For: 192.0.2.1");
    assert_eq!(ask(&node, &two_lines).await.status, 429, "and in a line of its own");
}

#[tokio::test]
async fn a_client_that_is_no_proxy_does_not_choose_its_address() {
    for nets in [&[] as &[&str], &["10.0.0.0/8"]] {
        let node = Node::open(trusting(nets, one_call())).await;
        passed(&node, &from("192.0.2.1")).await;
        assert_eq!(ask(&node, &from("192.0.2.2")).await.status, 429, "{nets:?}");
    }
}

#[tokio::test]
async fn connections_of_a_trusted_proxy_are_held_at_the_limit_of_the_node_alone() {
    let limits = InboundLimits { connections_per_address: 1, connections: 3, ..InboundLimits::default() };
    let node = Node::open(trusting(&["127.0.0.2"], limits.clone())).await;
    let proxy = Ipv4Addr::new(127, 0, 0, 2);
    let mut open = Vec::new();
    for number in 1..=3 {
        let mut connection = Connection::from(proxy, &node).await;
        assert!(connection.is_served().await, "connection {number}");
        open.push(connection);
    }
    assert!(!Connection::from(proxy, &node).await.is_served().await, "limits.connections holds for a proxy too");
    drop(open);

    let node = Node::open(trusting(&["127.0.0.2"], limits)).await;
    let mut first = Connection::to(&node).await;
    assert!(first.is_served().await);
    assert!(!Connection::to(&node).await.is_served().await, "an address that is no proxy has its limit");
}

#[tokio::test]
async fn a_reload_changes_the_trusted_proxies_of_open_connections() {
    let node = Node::open(one_call()).await;
    passed(&node, &from("192.0.2.1")).await;
    node.reload(settings(trusting(&["127.0.0.1"], one_call())));
    assert_eq!(ask(&node, &from("192.0.2.1")).await.status, 200, "the client has a rate of its own now");
}
