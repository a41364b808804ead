//! Readers that do not read: they slow nobody, take no memory, and miss nothing when they read after all.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::costs::resident_bytes;
use super::{Kept, serve};
use crate::support::server::{Home, Server};

const READERS: usize = 10;
/// Some 10 MB for each reader: more than the buffers of the sockets hold.
const EVENTS: usize = 30_000;
/// What all of them together may take. Kept in memory for each, their events would be 100 MB.
const MEMORY: i64 = 40 * 1024 * 1024;

async fn subscribe_and_look_away(server: &Server, task: &serde_json::Value) -> TcpStream {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": { "id": task } }).to_string();
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length:";
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.url().trim_start_matches("http://").parse().unwrap()).await.unwrap();
    stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    // The head of the answer: from now on it is subscribed.
    stream.read_exact(&mut [0; 12]).await.unwrap();
    stream
}

#[tokio::test]
async fn readers_that_do_not_read_slow_nobody_and_miss_nothing() {
    let home = Home::new();
    let (server, line) = serve(&home, Kept::OnDisk, "");
    let run = async |readers: usize| {
        let parked = line.send("ask how many?").await["task"]["id"].take();
        let mut slow = Vec::new();
        for _ in 0..readers {
            slow.push(subscribe_and_look_away(&server, &parked).await);
        }
        let before = resident_bytes(&server);
        // Comes back although nobody has read a thing.
        let done = line.follow_up(&parked, &format!("stream {EVENTS}")).await;
        assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
        (resident_bytes(&server) - before, slow)
    };
    run(0).await;
    let (alone, _) = run(0).await;
    let (watched, slow) = run(READERS).await;
    println!("{alone} bytes more without readers, {watched} with {READERS} that do not read");
    assert!(watched <= alone.max(0) + MEMORY, "{alone} bytes more without readers, {watched} with {READERS} that do not read");

    for mut reader in slow.into_iter().take(2) {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        let text = String::from_utf8_lossy(&all);
        let numbers =
            text.match_indices("\"chunk-").filter_map(|(at, found)| text[at + found.len()..].split(' ').next()?.parse().ok());
        assert_eq!(numbers.collect::<Vec<usize>>(), (1..=EVENTS).collect::<Vec<_>>());
        assert!(text.contains("TASK_STATE_COMPLETED"), "and its end");
    }
}
