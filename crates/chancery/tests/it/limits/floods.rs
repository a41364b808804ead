//! Floods of HTTP/2 frames: the connection that brings them is closed, and everybody else is served.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::limited;
use crate::support::patience::BOUND;
use crate::support::server::Server;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `POST`, `http`, `/` and no authority, by their numbers in the table of HPACK.
const REQUEST: [u8; 3] = [0x83, 0x86, 0x84];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A connection on which HTTP/2 was begun.
async fn begun(server: &Server) -> TcpStream {
    let mut line = TcpStream::connect(server.url().trim_start_matches("http://")).await.expect("a connection");
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    line.write_all(&preface).await.expect("the node reads");
    line
}

/// Writes these frames until the node closes. Answers how many it took, if it closed.
async fn closes(server: &Server, most: u32, mut next: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let line = begun(server).await;
    let (mut reads, mut writes) = line.into_split();
    let closed = tokio::spawn(async move {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(1..) = reads.read(&mut piece).await {}
    });
    for number in 0..most {
        if closed.is_finished() || writes.write_all(&next(number)).await.is_err() {
            return Some(number);
        }
    }
    tokio::time::timeout(BOUND, closed).await.ok().map(|_| most)
}

async fn is_served(server: &Server) -> bool {
    let client = reqwest::Client::builder().http2_prior_knowledge().timeout(Duration::from_secs(30)).build().expect("a client");
    client.get(format!("{}/healthz", server.url())).send().await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_opens_and_resets_streams_in_a_flood_is_closed() {
    let server = limited("");
    let opened_and_reset = |stream: u32| {
        [frame(HEADERS, END_HEADERS, stream, &REQUEST), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    };
    // Five hundred in each write: the node finds them reset before it has looked at them.
    let flood = |number: u32| (0..500).flat_map(|place| opened_and_reset((number * 500 + place) * 2 + 1)).collect();
    let taken = closes(&server, 1000, flood).await;
    assert!(taken.is_some_and(|taken| taken < 1000), "half a million streams: {taken:?}");
    assert!(is_served(&server).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_never_ends_closes_its_connection() {
    let server = limited("");
    // A header of 4 bytes each, without a name that the table has.
    let piece: Vec<u8> = [0x00, 0x01, b'x', 0x01, b'y'].repeat(200);
    let taken = closes(&server, 100_000, |number| match number {
        0 => frame(HEADERS, END_STREAM, 1, &REQUEST),
        _ => frame(CONTINUATION, 0, 1, &piece),
    })
    .await;
    assert!(taken.is_some_and(|taken| taken < 100_000), "100 MB of one head: {taken:?}");
    assert!(is_served(&server).await);
}

/// Empty CONTINUATION frames cost a sender nine octets each and no room in the header list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_of_empty_pieces_closes_its_connection() {
    let server = limited("header_read_ms = 1000");
    let taken = closes(&server, 2_000_000, |number| match number {
        0 => frame(HEADERS, END_STREAM, 1, &REQUEST),
        _ => frame(CONTINUATION, 0, 1, &[]),
    })
    .await;
    assert!(taken.is_some_and(|taken| taken < 2_000_000), "{taken:?}");
    assert!(is_served(&server).await);
}

/// A sender that reads no answers to its pings and settings: what the node holds for it stays small.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_and_settings_whose_answers_nobody_reads_cost_the_node_little() {
    let server = limited("write_stall_ms = 1000");
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    };
    assert!(is_served(&server).await);
    let before = memory();
    for flood in [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])] {
        let mut line = begun(&server).await;
        let many = flood.repeat(1000);
        for _ in 0..2000 {
            // Once the node stops reading, because its answers go nowhere, there is no more to see.
            match tokio::time::timeout(Duration::from_secs(2), line.write_all(&many)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        assert!(is_served(&server).await);
        let grown = memory().saturating_sub(before);
        assert!(grown < 32 << 20, "two million frames made the node {grown} bytes larger");
    }
}
