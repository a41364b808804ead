//! Heads of requests: their bytes, their number of headers, the time they may take.

use chancery_inbound::InboundLimits;

use crate::node::Node;
use crate::wire::{Connection, RawRequest, ask};

/// The smallest head that can be configured.
const LIMIT: usize = 8192;

#[tokio::test]
async fn a_head_of_its_limit_is_read_and_one_byte_more_is_refused() {
    let node = Node::open(InboundLimits { header_bytes: LIMIT, ..InboundLimits::default() }).await;
    let of = |bytes: usize| {
        let padding = bytes - RawRequest::get("/livez").with("X-Padding: ").bytes().len();
        RawRequest::get("/livez").with(&format!("X-Padding: {}", "x".repeat(padding)))
    };
    assert_eq!(of(LIMIT).bytes().len(), LIMIT);
    assert_eq!(ask(&node, &of(LIMIT)).await.status, 200);
    assert_eq!(ask(&node, &of(LIMIT + 1)).await.status, 431);
    assert!(Connection::to(&node).await.is_served().await, "others are not troubled");
}

#[tokio::test]
async fn headers_up_to_their_number_are_read_and_one_more_is_refused() {
    for (header_count, most) in [(10, 10), (InboundLimits::default().header_count, 100)] {
        let node = Node::open(InboundLimits { header_count, ..InboundLimits::default() }).await;
        // `get` has two of its own.
        let of = |count: usize| (2..count).fold(RawRequest::get("/livez"), |head, number| head.with(&format!("X-{number}: y")));
        assert_eq!(ask(&node, &of(most)).await.status, 200, "{most}");
        assert_eq!(ask(&node, &of(most + 1)).await.status, 431, "{most}");
    }
}

#[tokio::test]
async fn a_target_longer_than_a_head_may_be_is_refused() {
    let node = Node::open(InboundLimits { header_bytes: LIMIT, ..InboundLimits::default() }).await;
    let answer = ask(&node, &RawRequest::get(&format!("/livez?{}", "x".repeat(2 * LIMIT)))).await;
    assert!(matches!(answer.status, 414 | 431), "{answer:?}");
}

#[tokio::test]
async fn a_head_that_stops_half_way_ends_its_connection_and_so_does_silence() {
    let node = Node::open(InboundLimits { header_read_ms: 50, ..InboundLimits::default() }).await;
    for begun in ["", "G", "GET /livez HTTP/1.1\r\n", "GET /livez HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut slow = Connection::to(&node).await;
        slow.send(begun.as_bytes()).await;
        let answer = slow.answer().await;
        assert!(answer.as_ref().is_none_or(|answer| answer.status == 408), "{begun:?}: {answer:?}");
        assert!(slow.answer().await.is_none(), "{begun:?}: the connection is closed");
    }
}

#[tokio::test]
async fn a_connection_that_was_served_and_falls_silent_is_closed_too() {
    let node = Node::open(InboundLimits { header_read_ms: 50, ..InboundLimits::default() }).await;
    let mut idle = Connection::to(&node).await;
    assert!(idle.is_served().await);
    assert!(idle.answer().await.is_none());
}

#[tokio::test]
async fn what_is_no_http_is_closed_or_refused_and_reaches_no_door() {
    let node = Node::open(InboundLimits::default()).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"HELO localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    ] {
        let mut connection = Connection::to(&node).await;
        connection.send(bytes).await;
        connection.finish().await;
        let answer = connection.answer().await;
        let text = String::from_utf8_lossy(bytes);
        assert!(answer.as_ref().is_none_or(|answer| matches!(answer.status, 400 | 505)), "{text:?}: {answer:?}");
    }
    assert!(Connection::to(&node).await.is_served().await);
}
