//! Receivers that want to hurt the node: every bound holds, every slot comes back, and nobody else notices.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::raw::{Raw, read_request};
use super::receiver::Receiver;
use super::{admin, lasting, send};
use crate::support::patience::soon;
use crate::support::server::{Home, Server};

/// What one receiver may cost in memory, whatever it does.
const MOST_GROWTH: u64 = 50 * 1024 * 1024;
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
/// Twice that many failures leave the breaker closed, so that nobody has to wait for it.
const TASKS_EACH: usize = 2;

/// Says `head`, then `part` again and again with a pause between, until nobody listens.
async fn repeats(mut stream: TcpStream, head: String, part: Vec<u8>, pause: Duration) {
    if !read_request(&mut stream).await || stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    while stream.write_all(&part).await.is_ok() {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

async fn repeating(head: &str, part: &[u8], pause_ms: u64) -> Raw {
    let (head, part, pause) = (head.to_owned(), part.to_vec(), Duration::from_millis(pause_ms));
    Raw::new(move |stream| repeats(stream, head.clone(), part.clone(), pause)).await
}

/// Says this and hangs up.
async fn saying(words: &[u8]) -> Raw {
    let words = words.to_vec();
    Raw::new(move |mut stream: TcpStream| {
        let words = words.clone();
        async move {
            if read_request(&mut stream).await {
                let _ = stream.write_all(&words).await;
            }
        }
    })
    .await
}

async fn silent() -> Raw {
    Raw::new(async |mut stream: TcpStream| while stream.read_u8().await.is_ok() {}).await
}

/// A receiver, whether it is called over TLS, and what each attempt to tell it comes to.
struct Evil {
    name: &'static str,
    receiver: Raw,
    tls: bool,
    outcome: &'static str,
}

async fn all() -> Vec<Evil> {
    let evil = |name, receiver, outcome| Evil { name, receiver, tls: false, outcome };
    let gzip = format!("{OK}content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n");
    let zeros = [b"4000\r\n", &[0x1f; 0x4000][..], b"\r\n"].concat();
    vec![
        // A head that says yes is enough; its body is thrown away and cut at the limit.
        evil("an endless body", repeating(&format!("{OK}\r\n"), &[b'x'; 65_536], 0).await, "delivered"),
        evil("a body in drops", repeating(&format!("{OK}content-length: 9999\r\n\r\n"), b"x", 100).await, "delivered"),
        evil("a bomb", repeating(&gzip, &zeros, 0).await, "delivered"),
        evil("headers in drops", repeating("HTTP/1.1 200 OK\r\nx-slow: ", b"x", 100).await, "timeout"),
        evil("one endless header", repeating("HTTP/1.1 200 OK\r\nx-big: ", &[b'h'; 65_536], 0).await, "protocol"),
        evil("endless headers", repeating("HTTP/1.1 200 OK\r\n", &b"x-many: h\r\n".repeat(4_096), 0).await, "protocol"),
        evil("endless interim answers", repeating("", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0).await, "protocol"),
        evil("a page without a head", saying(b"<html>hello</html>\n").await, "protocol"),
        evil("a version that never was", saying(b"HTTP/0.9 200 OK\r\n\r\nhello").await, "protocol"),
        evil("no answer at all", silent().await, "timeout"),
        Evil { name: "no handshake", receiver: silent().await, tls: true, outcome: "timeout" },
    ]
}

fn memory(server: &Server, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn lanes(server: &Server, home: &Home) -> Vec<Value> {
    admin(server, &home.data(), "/lanes", None).await["lanes"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_want_to_hurt_cost_a_slot_for_a_while_and_nothing_else() {
    let home = Home::new();
    let server = lasting(&home, "schedule_s = [0, 1]\nexchange_ms = 15000\ntls_ms = 15000\nbarrier_ms = 0");
    let healthy = Receiver::kind().await;
    send(&server, "complete", json!({ "url": healthy.url("/") }), true).await;
    healthy.has_taken(2).await;
    let before = memory(&server, "VmRSS");
    let evil = all().await;
    for one in &evil {
        let url = if one.tls { one.receiver.url().replacen("http", "https", 1) } else { one.receiver.url() };
        for _ in 0..TASKS_EACH {
            send(&server, "complete", json!({ "url": url }), true).await;
        }
    }
    let slow = |one: &&Evil| one.outcome == "timeout";
    for one in &evil {
        soon(one.name, async || (one.receiver.came() > 0).then_some(())).await;
    }
    for _ in 0..10 {
        send(&server, "complete", json!({ "url": healthy.url("/") }), true).await;
    }
    healthy.has_taken(22).await;
    assert!(evil.iter().filter(slow).all(|one| one.receiver.left() == 0), "the others were told while these still held on");

    let at_rest = async || {
        let lanes = lanes(&server, &home).await;
        lanes.iter().all(|lane| lane["pending"] == 0 || lane["state"] != "active").then_some(lanes)
    };
    let lanes = soon("all are given up or done", at_rest).await;
    for one in &evil {
        let port = format!(":{}", one.receiver.address.port());
        let own: Vec<&Value> = lanes.iter().filter(|lane| lane["origin"].as_str().unwrap().ends_with(&port)).collect();
        assert_eq!(own.len(), TASKS_EACH, "{}", one.name);
        for lane in own {
            let shown = admin(&server, &home.data(), &format!("/lanes/{}", lane["lane"]), None).await;
            let attempts: Vec<&str> =
                shown["attempts"].as_array().unwrap().iter().map(|attempt| attempt["outcome"].as_str().unwrap()).collect();
            assert!(!attempts.is_empty() && attempts.iter().all(|outcome| *outcome == one.outcome), "{}: {attempts:?}", one.name);
            let state = if one.outcome == "delivered" { "active" } else { "disabled" };
            assert_eq!(lane["state"], state, "{}: {lane}", one.name);
        }
        soon(one.name, async || (one.receiver.left() == one.receiver.came()).then_some(())).await;
    }
    let free = async || (admin(&server, &home.data(), "/origins", None).await["in_flight"] == 0).then_some(());
    soon("every slot is free again", free).await;
    let grown = memory(&server, "VmHWM").saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{grown} bytes");
}
