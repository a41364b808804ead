//! Bodies: held at their bytes and their time, however they are sent, and cut ones are never acted on.

use chancery_inbound::InboundLimits;

use crate::node::{Node, settings};
use crate::wire::{Connection, HARMLESS, RawRequest, SEND, SEND_REST, ask};

const LIMIT: usize = 500;
const TOO_LARGE: i64 = -32041;
const TASK_NOT_FOUND: i64 = -32001;

fn limits() -> InboundLimits {
    InboundLimits { body_bytes: LIMIT, ..InboundLimits::default() }
}

#[tokio::test]
async fn a_body_of_exactly_its_limit_is_read_with_a_length_and_in_chunks() {
    let node = Node::open(limits()).await;
    let exact = format!("{HARMLESS:LIMIT$}");
    assert_eq!(exact.len(), LIMIT);
    for request in [RawRequest::post("/", &exact), RawRequest::chunked("/", &exact)] {
        let answer = ask(&node, &request).await;
        assert_eq!((answer.status, answer.code()), (200, Some(TASK_NOT_FOUND)), "{answer:?}");
    }
}

#[tokio::test]
async fn a_body_of_one_byte_more_is_refused_at_every_door_however_it_is_sent() {
    let node = Node::open(limits()).await;
    let longer = LIMIT + 1;
    let (json_rpc, rest) = (format!("{SEND:longer$}"), format!("{SEND_REST:longer$}"));
    for (target, body) in [("/", &json_rpc), ("/a2a", &json_rpc), ("/message:send", &rest), ("/v1/message:send", &rest)] {
        for request in [RawRequest::post(target, body), RawRequest::chunked(target, body)] {
            let answer = ask(&node, &request).await;
            assert!(answer.status == 413 && answer.body.contains("limits.body_bytes"), "{target}: {answer:?}");
        }
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn a_length_above_the_limit_is_refused_before_a_byte_of_the_body_comes() {
    let node = Node::open(limits()).await;
    for target in ["/", "/message:send"] {
        let announced = RawRequest::json(target).with(&format!("Content-Length: {}", LIMIT + 1));
        assert_eq!(ask(&node, &announced).await.status, 413, "{target}");
    }
}

#[tokio::test]
async fn chunks_without_end_are_refused_when_they_pass_the_limit() {
    let node = Node::open(limits()).await;
    let mut connection = Connection::to(&node).await;
    connection.send(&RawRequest::json("/").with("Transfer-Encoding: chunked").bytes()).await;
    let chunk = format!("{LIMIT:x}\r\n{}\r\n", " ".repeat(LIMIT));
    connection.send(chunk.as_bytes()).await;
    connection.send(chunk.as_bytes()).await;
    let answer = connection.answer().await.expect("a refusal while the body goes on");
    assert_eq!((answer.status, answer.code()), (413, Some(TOO_LARGE)), "{answer:?}");
}

#[tokio::test]
async fn a_grpc_message_has_the_same_limit_without_its_frame() {
    let node = Node::open(limits()).await;
    let message = |bytes: usize| {
        let framed = [&[0][..], &u32::try_from(bytes).expect("small").to_be_bytes(), &vec![0; bytes]].concat();
        let head = RawRequest::bare("POST /lf.a2a.v1.A2AService/GetTask HTTP/1.1").with("Host: localhost");
        head.with("Content-Type: application/grpc").with(&format!("Content-Length: {}", framed.len())).body(&framed)
    };
    let refused = ask(&node, &message(LIMIT + 1)).await;
    assert_eq!(refused.header("grpc-status"), Some("8"), "RESOURCE_EXHAUSTED: {refused:?}");
    let read = ask(&node, &message(LIMIT)).await;
    assert!(read.header("grpc-status") != Some("8"), "{read:?}");
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_refused_at_every_door() {
    let node = Node::open(InboundLimits { body_read_ms: 50, ..InboundLimits::default() }).await;
    for target in ["/", "/message:send"] {
        for request in [
            RawRequest::json(target).with("Content-Length: 100"),
            RawRequest::json(target).with("Content-Length: 100").body(b"{\"jsonrpc\""),
            RawRequest::json(target).with("Transfer-Encoding: chunked").body(b"5\r\n12345\r\n"),
        ] {
            let answer = ask(&node, &request).await;
            assert!(answer.status == 408 && answer.body.contains("limits.body_read_ms = 50"), "{target}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_cut_runs_nothing_even_if_what_came_is_a_whole_call() {
    let node = Node::open(InboundLimits::default()).await;
    for (target, call) in [("/", SEND), ("/message:send", SEND_REST)] {
        let longer = call.len() + 1;
        let announced = RawRequest::json(target).with(&format!("Content-Length: {longer}")).body(call.as_bytes());
        let chunk = format!("{:x}\r\n{call}\r\n", call.len());
        let chunked = RawRequest::json(target).with("Transfer-Encoding: chunked").body(chunk.as_bytes());
        for request in [announced, chunked] {
            let mut connection = Connection::to(&node).await;
            connection.send(&request.bytes()).await;
            connection.finish().await;
            let answer = connection.answer().await;
            assert!(
                answer.as_ref().is_none_or(|answer| answer.body.contains("the connection ended before the whole body arrived")),
                "{answer:?}"
            );
            assert!(connection.answer().await.is_none(), "the connection is closed");
        }
    }
    assert_eq!(node.turns(), 0);
}

#[tokio::test]
async fn a_body_whose_length_can_be_read_in_two_ways_is_refused_or_ends_its_connection() {
    let node = Node::open(InboundLimits::default()).await;
    let length = format!("Content-Length: {}", HARMLESS.len());
    for lines in [
        &["Content-Length: 1", "Content-Length: 2"][..],
        &["Content-Length: x"],
        &["Content-Length: -1"],
        &["Content-Length: 99999999999999999999999"],
        &[&length, "Transfer-Encoding: gzip"],
        &["Transfer-Encoding: chunked, identity"],
    ] {
        let request = lines.iter().fold(RawRequest::json("/"), |request, line| request.with(line)).body(HARMLESS.as_bytes());
        let mut connection = Connection::to(&node).await;
        // Somebody else's request behind it must not be taken for one of this connection.
        connection.send(&[request.bytes(), RawRequest::get("/livez").bytes()].concat()).await;
        let answer = connection.answer().await;
        assert!(answer.as_ref().is_none_or(|answer| answer.status == 400), "{lines:?}: {answer:?}");
        assert!(connection.answer().await.is_none(), "{lines:?}: the connection is closed");
    }
}

#[tokio::test]
async fn only_json_that_is_said_to_be_json_is_taken() {
    let node = Node::open(InboundLimits::default()).await;
    let send = |target: &str, body: &str, headers: &[&str]| {
        let head = RawRequest::bare(&format!("POST {target} HTTP/1.1")).with("Host: localhost");
        let head = headers.iter().fold(head, |head, header| head.with(header));
        head.with(&format!("Content-Length: {}", body.len())).body(body.as_bytes())
    };
    for (target, body) in [("/", SEND), ("/message:send", SEND_REST)] {
        for headers in [
            &[][..],
            &["Content-Type: text/plain"],
            &["Content-Type: application/x-www-form-urlencoded"],
            &["Content-Type: application/jsonp"],
            &["Content-Type: application/json", "Content-Encoding: gzip"],
        ] {
            let answer = ask(&node, &send(target, body, headers)).await;
            assert!(answer.body.contains("CONTENT_TYPE_NOT_SUPPORTED"), "{target} {headers:?}: {answer:?}");
        }
    }
    assert_eq!(node.turns(), 0);
    for headers in [
        &["Content-Type: Application/JSON; charset=utf-8"][..],
        &["Content-Type: application/json", "Content-Encoding: identity"],
    ] {
        assert_eq!(ask(&node, &send("/", SEND, headers)).await.status, 200, "{headers:?}");
    }
    assert_eq!(node.turns(), 2);
}

#[tokio::test]
async fn a_body_that_is_no_call_is_answered_and_the_connection_stays_open() {
    let node = Node::open(InboundLimits::default()).await;
    let mut connection = Connection::to(&node).await;
    for body in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{1f600}", HARMLESS] {
        connection.send(&RawRequest::post("/", body).bytes()).await;
        let answer = connection.answer().await.expect("an answer");
        assert!(answer.code().is_some_and(|code| code < 0), "{body}: {answer:?}");
    }
    assert!(connection.is_served().await);
}

#[tokio::test]
async fn a_changed_limit_holds_for_the_next_request_of_an_open_connection() {
    let node = Node::open(limits()).await;
    let mut connection = Connection::to(&node).await;
    let exact = RawRequest::post("/", &format!("{HARMLESS:LIMIT$}")).bytes();
    connection.send(&exact).await;
    assert_eq!(connection.answer().await.expect("an answer").status, 200);
    node.reload(settings(InboundLimits { body_bytes: LIMIT - 1, ..InboundLimits::default() }));
    connection.send(&exact).await;
    assert_eq!(connection.answer().await.expect("an answer").status, 413);
}
