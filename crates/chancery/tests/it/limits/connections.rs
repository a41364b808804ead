//! Limits on connections: their heads, their pace, their number.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::limited;
use crate::support::patience::{BOUND, eventually, soon};
use crate::support::server::Server;

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";

fn address(server: &Server) -> &str {
    server.url().trim_start_matches("http://")
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(address(server)).await.expect("a connection")
}

/// What comes until `enough` says so or the server closes. A reset is an end too.
async fn read_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut seen: Vec<u8> = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    let reading = async {
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            seen.extend_from_slice(&piece[..read]);
            if enough(std::str::from_utf8(&seen).unwrap_or_default()) {
                break;
            }
        }
    };
    tokio::time::timeout(BOUND, reading).await.expect("an answer or an end");
    String::from_utf8_lossy(&seen).into_owned()
}

/// Asks for the health page with these bytes and answers the status line.
async fn status(stream: &mut TcpStream, request: &str) -> String {
    if stream.write_all(request.as_bytes()).await.is_err() {
        return String::new();
    }
    let answer = read_until(stream, |seen| seen.contains("\r\n\r\n") && (seen.contains('}') || !seen.contains("200 OK"))).await;
    answer.lines().next().unwrap_or_default().to_owned()
}

async fn is_served(stream: &mut TcpStream) -> bool {
    status(stream, &format!("{HEALTH}\r\n")).await == "HTTP/1.1 200 OK"
}

#[tokio::test]
async fn a_head_within_its_limit_is_read_and_a_longer_one_refused() {
    let limit = 8192;
    let server = limited(&format!("header_bytes = {limit}"));
    let head = |bytes: usize| {
        let padding = bytes - HEALTH.len() - "X-Padding: \r\n\r\n".len();
        format!("{HEALTH}X-Padding: {}\r\n\r\n", "x".repeat(padding))
    };
    assert_eq!(status(&mut connect(&server).await, &head(limit)).await, "HTTP/1.1 200 OK");
    let refused = status(&mut connect(&server).await, &head(limit + 1)).await;
    assert_eq!(refused, "HTTP/1.1 431 Request Header Fields Too Large");
    assert!(is_served(&mut connect(&server).await).await, "others are not troubled");

    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let with_padding = async |bytes: usize| {
        let request = http2.get(format!("{}/healthz", server.url())).header("x-padding", "x".repeat(bytes));
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((with_padding(limit / 2).await, with_padding(limit).await), (200, 431), "over HTTP/2 the list is counted");
}

#[tokio::test]
async fn headers_up_to_their_number_are_read_and_one_more_is_refused() {
    let head = |count: usize| {
        let more: String = (1..count).map(|number| format!("X-{number}: y\r\n")).collect();
        format!("{HEALTH}{more}\r\n")
    };
    for (setting, most) in [("header_count = 10", 10), ("", 100)] {
        let server = limited(setting);
        assert_eq!(status(&mut connect(&server).await, &head(most)).await, "HTTP/1.1 200 OK");
        let refused = status(&mut connect(&server).await, &head(most + 1)).await;
        assert_eq!(refused, "HTTP/1.1 431 Request Header Fields Too Large", "{most}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_arrive_in_time_ends_its_connection() {
    let server = limited("header_read_ms = 100");
    let mut slow = connect(&server).await;
    assert!(is_served(&mut slow).await, "a head that comes at once is in time");
    slow.write_all(HEALTH.as_bytes()).await.unwrap();
    let answer = read_until(&mut slow, |_| false).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    let mut silent = connect(&server).await;
    assert_eq!(read_until(&mut silent, |_| false).await, "", "not even one that says nothing at all is kept");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let server = limited("body_read_ms = 100");
    let mut slow = connect(&server).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"";
    slow.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut slow, |seen| seen.contains("limits.body_read_ms")).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("limits.body_read_ms = 100"), "{answer}");
    assert_eq!(server.send("complete in time").await["task"]["status"]["state"], "TASK_STATE_COMPLETED");

    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let never = reqwest::Body::wrap_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = http2.post(format!("{}/lf.a2a.v1.A2AService/GetTask", server.url())).header("content-type", "application/grpc");
    let refused = request.body(never).send().await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "4", "DEADLINE_EXCEEDED: {refused:?}");
    assert!(refused.headers()["grpc-message"].to_str().unwrap().contains("limits.body_read_ms"), "{refused:?}");
}

#[tokio::test]
async fn a_peer_that_takes_nothing_loses_its_connection() {
    let server = limited("write_stall_ms = 100\nconnections_per_address = 1");
    // The answer holds the text twice: more than the buffers between us and the server can.
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x".repeat(4_000_000) }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } }).to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let small = TcpSocket::new_v4().unwrap();
    small.set_recv_buffer_size(4096).unwrap();
    let mut stalled = small.connect(address(&server).parse().unwrap()).await.unwrap();
    stalled.write_all(request.as_bytes()).await.unwrap();
    // There is only one place for us: when somebody else gets it, the first connection was given up.
    soon("the stalled connection is given up", async || is_served(&mut connect(&server).await).await.then_some(())).await;
    let taken = read_until(&mut stalled, |_| false).await;
    drop(stalled);
    assert!(taken.len() < 8_000_000, "it was cut off, not served to its end");

    // One that takes what it is sent gets all of it, on a connection it keeps.
    soon("there is a place again", async || {
        let mut taking = connect(&server).await;
        taking.write_all(request.as_bytes()).await.ok()?;
        let mut whole = vec![0; 8_000_000];
        taking.read_exact(&mut whole).await.ok()
    })
    .await;
}

/// At two, a third connection is closed at once; when one goes, there is a place again.
async fn two_and_no_third(server: &Server) {
    let (mut first, mut second) = (connect(server).await, connect(server).await);
    assert!(is_served(&mut first).await && is_served(&mut second).await);
    assert!(!is_served(&mut connect(server).await).await, "a third connection was served");
    assert!(is_served(&mut first).await && is_served(&mut second).await, "the first two are not troubled");
    drop(first);
    soon("there is a place again", async || is_served(&mut connect(server).await).await.then_some(())).await;
}

#[tokio::test]
async fn connections_are_held_at_their_number() {
    two_and_no_third(&limited("connections = 2")).await;
}

#[tokio::test]
async fn connections_of_one_address_are_held_at_their_number() {
    two_and_no_third(&limited("connections_per_address = 2")).await;
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn read_frame(stream: &mut TcpStream) -> (u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    let mut payload = Vec::new();
    let reading = async {
        stream.read_exact(&mut head).await.expect("a frame");
        payload.resize(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize, 0);
        stream.read_exact(&mut payload).await.expect("a whole frame");
    };
    tokio::time::timeout(BOUND, reading).await.expect("a frame comes");
    (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
}

#[tokio::test]
async fn calls_in_flight_on_one_connection_are_held_at_their_number() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    let server = limited("http2_streams = 2");
    let mut connection = connect(&server).await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    // POST / over http, to "x", with a body that is still to come: in flight until we say more.
    let head = [0x83, 0x86, 0x84, 0x41, 0x01, b'x'];
    for stream in [1, 3, 5] {
        bytes.extend(frame(HEADERS, 0x4, stream, &head));
    }
    connection.write_all(&bytes).await.unwrap();
    let mut promised = None;
    let refused = loop {
        match read_frame(&mut connection).await {
            (SETTINGS, _, settings) if !settings.is_empty() => {
                // Setting 3 is the number of concurrent streams.
                promised = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).map(|setting| setting[5]);
            }
            (RST_STREAM, stream, code) => break (stream, code),
            _ => {}
        }
    };
    assert_eq!(promised, Some(2));
    assert_eq!(refused, (5, vec![0, 0, 0, 7]), "the third call is refused, to be tried again elsewhere");
}

#[tokio::test]
async fn a_stop_waits_no_longer_than_it_was_told_to() {
    let server = limited("drain_ms = 100\nbody_read_ms = 3600000");
    let mut slow = connect(&server).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    slow.write_all(head.as_bytes()).await.unwrap();
    // The server says so when it has begun to wait for the body.
    assert!(read_until(&mut slow, |seen| seen.contains("\r\n\r\n")).await.starts_with("HTTP/1.1 100"));
    server.signal("TERM");
    eventually("it says that it waits no longer", || server.log().contains("limits.drain_ms").then_some(()));
    let (ended, _) = server.ended();
    assert_eq!(ended.code(), Some(0));
}
