//! Hundreds of large answers to SendMessage that nobody reads, on a node that has 1 GiB.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::{Bounded, READER};
use crate::support::patience::BOUND;

/// Nobody is given up before the test has looked. A call that waits for room is told so soon.
const LIMITS: &str = "connections_per_address = 600\nwrite_stall_ms = 600000\nunary_keepalive_ms = 400";

/// Sends a message and reads no more of its answer than the status. `None` where the node has no room or closes the connection.
async fn unread(address: &str, request: &[u8]) -> Option<TcpStream> {
    let small = TcpSocket::new_v4().expect("a socket");
    small.set_recv_buffer_size(4096).expect("a small buffer");
    let mut line = small.connect(address.parse().expect("an address")).await.ok()?;
    line.write_all(request).await.ok()?;
    let mut status = [0; 12];
    line.read_exact(&mut status).await.ok()?;
    (&status == b"HTTP/1.1 200").then_some(line)
}

#[tokio::test]
async fn three_hundred_unread_answers_to_sends_leave_the_node_up() {
    let node = Bounded::with(LIMITS);
    node.answers_others().await;
    let before = node.resident();
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("complete {}", "x".repeat(1_500_000)) }]
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } }).to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nA2A-Version: 1.0\r\nX-API-Key: {READER}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        node.address(),
        body.len()
    );
    let request: Arc<[u8]> = format!("{head}{body}").into_bytes().into();
    let senders = (0..300).map(|_| {
        let (address, request) = (node.address().to_owned(), Arc::clone(&request));
        tokio::spawn(async move {
            loop {
                if let Some(line) = unread(&address, &request).await {
                    return line;
                }
                assert!(TcpStream::connect(&address).await.is_ok(), "the node is gone");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        })
    });
    let lines = tokio::time::timeout(4 * BOUND, join_all(senders)).await.expect("each call is answered or refused");
    let lines: Vec<_> = lines.into_iter().map(|line| line.expect("the node is there")).collect();
    assert_eq!(lines.len(), 300);
    let added = node.resident().saturating_sub(before);
    println!("300 unread answers of 3 MB add {added} MB");
    assert!(added < 300, "{added} MB for one caller that may have 32 MiB unread and 32 MiB sent");
    node.answers_others().await;
}
