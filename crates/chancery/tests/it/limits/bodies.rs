//! Limits on the bodies that are being read: of one caller, and of all callers.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::patience::{BOUND, soon};
use crate::support::server::{Home, Server, Setup};

const ONE: &str = "the-key-of-one-caller";
const OTHER: &str = "the-key-of-another";

fn node() -> Server {
    let config = "[agents.conformance]\nrun = 'conformance'\n[callers.one]\nkey_env = 'ONE_KEY'\n[callers.other]\nkey_env = 'OTHER_KEY'\n\
                  [limits]\nreading_bytes_per_caller = 1000000\nreading_bytes_per_node = 1500000\nbody_read_ms = 3600000\n";
    Setup::in_home(&Home::new()).args(["--memory"]).config(config).env("ONE_KEY", ONE).env("OTHER_KEY", OTHER).start()
}

/// A call whose body of 400,000 bytes stops after so many.
async fn begun(server: &Server, key: &str, bytes: usize) -> (TcpStream, String) {
    let address = server.url().trim_start_matches("http://");
    let message =
        json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("complete {}", "x".repeat(399_800)) }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } }).to_string();
    let mut line = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nA2A-Version: 1.0\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let (now, later) = body.split_at(bytes);
    line.write_all(format!("{head}{now}").as_bytes()).await.expect("the node reads");
    (line, later.to_owned())
}

async fn answer(line: &mut TcpStream) -> String {
    let mut seen = vec![0; 4096];
    let read = tokio::time::timeout(BOUND, line.read(&mut seen)).await.expect("an answer").expect("an open line");
    String::from_utf8_lossy(&seen[..read]).into_owned()
}

async fn answered(server: &Server, key: &str, text: usize) -> bool {
    let message =
        json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("complete {}", "x".repeat(text)) }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").header("X-API-Key", key).json(&body);
    request.send().await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test]
async fn bodies_that_are_being_read_are_bounded_for_a_caller_and_for_the_node() {
    let server = node();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(begun(&server, ONE, 300_000).await);
    }
    // The node has read what was sent when a fourth of its caller is refused.
    let refusal = soon("a fourth body is refused", async || {
        let (mut fourth, _) = begun(&server, ONE, 300_000).await;
        let said = tokio::time::timeout(std::time::Duration::from_secs(5), answer(&mut fourth)).await.ok();
        said.filter(|said| said.starts_with("HTTP/1.1 503 "))
    })
    .await;
    assert!(refusal.contains("retry-after: 1") && refusal.contains("limits.reading_bytes_per_caller"), "{refusal}");
    assert!(answered(&server, ONE, 1000).await, "small bodies are not counted");
    assert!(answered(&server, OTHER, 300_000).await, "another caller has its own share");

    held.push(begun(&server, OTHER, 300_000).await);
    let refusal = soon("a second body of the other is refused", async || {
        let (mut second, _) = begun(&server, OTHER, 380_000).await;
        let said = tokio::time::timeout(std::time::Duration::from_secs(5), answer(&mut second)).await.ok();
        said.filter(|said| said.starts_with("HTTP/1.1 503 "))
    })
    .await;
    assert!(refusal.contains("limits.reading_bytes_per_node"), "{refusal}");

    // What was begun is answered when the rest of it comes, and its room is free again.
    for (line, rest) in &mut held {
        line.write_all(rest.as_bytes()).await.expect("the node reads on");
        let said = answer(line).await;
        assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    }
    drop(held);
    assert!(answered(&server, ONE, 390_000).await);
}
