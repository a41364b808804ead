//! Blocking calls whose agent takes long: the bytes that keep the client's connection alive, and those that must not change.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{JSON, NEWEST, get, post};
use crate::support::patience::{BOUND, soon};
use crate::support::server::{Server, Setup};

/// A connection on which the bytes of one answer are read as they come.
struct OpenCall {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl OpenCall {
    async fn post(server: &Server, path: &str, version: Option<&str>, body: &Value) -> Self {
        let address = server.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let (body, version) =
            (body.to_string(), version.map(|version| format!("A2A-Version: {version}\r\n")).unwrap_or_default());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{version}Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.expect("a request");
        Self { stream, seen: Vec::new() }
    }

    /// Reads until `enough` says so, and answers everything that came.
    async fn until(&mut self, enough: impl Fn(&str) -> bool) -> String {
        let reading = async {
            while !enough(&String::from_utf8_lossy(&self.seen)) {
                assert_ne!(self.stream.read_buf(&mut self.seen).await.expect("bytes"), 0, "the server closed");
            }
        };
        tokio::time::timeout(BOUND, reading).await.expect("enough of an answer");
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

/// The body of an answer that came in chunks.
fn dechunked(answer: &str) -> String {
    let (_, mut rest) = answer.split_once("\r\n\r\n").expect("a head");
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        body.push_str(&more[..size]);
        rest = &more[size + 2..];
    }
    body
}

const LAST_CHUNK: &str = "\r\n0\r\n\r\n";
const LONG: &str = "sleep 3600000";

/// Every way to make a blocking call as JSON: path, version header, body, content type of the answer, and where the state is.
fn calls(text: &str) -> Vec<(&'static str, Option<&'static str>, Value, &'static str, &'static str)> {
    let rpc = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": "c", "method": method, "params": params });
    let newest = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } });
    let older = json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": text }] } });
    let older_rest = json!({ "request": { "messageId": "m", "role": "ROLE_USER", "content": [{ "text": text }] } });
    let original = json!({ "id": "named", "message": { "role": "user", "parts": [{ "type": "text", "text": text }] } });
    let blocking = json!({ "request": older_rest["request"], "configuration": { "blocking": true } });
    vec![
        ("/", Some("1.0"), rpc("SendMessage", newest.clone()), "application/json", "/result/task/status/state"),
        ("/message:send", Some("1.0"), newest, "application/a2a+json", "/task/status/state"),
        ("/", None, rpc("message/send", older), "application/json", "/result/status/state"),
        ("/v1/message:send", None, blocking, "application/json", "/task/status/state"),
        ("/", None, rpc("tasks/send", original), "application/json", "/result/status/state"),
    ]
}

/// Cancels the only task there is.
async fn cancel(server: &Server) {
    let id = soon("the task is there", async || {
        get(server, "/tasks", &[NEWEST]).await.1["tasks"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let (status, _) = post(server, &format!("/tasks/{id}:cancel"), &[JSON, NEWEST], "{}").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_blocking_call_gets_its_head_and_white_space_before_its_answer() {
    for (path, version, body, content_type, state) in calls(LONG) {
        let server = Setup::conformance().config("[limits]\nunary_keepalive_ms = 20\n").start();
        let mut call = OpenCall::post(&server, path, version, &body).await;
        // The task ends only when it is cancelled below: all of this comes before the answer.
        let early = call.until(|seen| seen.matches("1\r\n \r\n").count() >= 2).await;
        let head = early.split_once("\r\n\r\n").expect("a head").0.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains(&format!("content-type: {content_type}\r\n")), "{head}");
        assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"), "{head}");
        assert!(dechunked(&early).trim().is_empty(), "{early}");

        cancel(&server).await;
        let body = dechunked(&call.until(|seen| seen.ends_with(LAST_CHUNK)).await);
        assert!(body.starts_with("  "), "{body}");
        let answer: Value = serde_json::from_str(&body).expect("white space and JSON are JSON");
        let state = answer.pointer(state).and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}"));
        assert!(["TASK_STATE_CANCELED", "TASK_STATE_CANCELLED", "canceled"].contains(&state), "{answer}");
    }
}

#[tokio::test]
async fn without_keepalive_nothing_is_sent_before_the_answer() {
    for (path, version, body, ..) in calls(LONG) {
        let server = Setup::conformance().config("[limits]\nunary_keepalive_ms = 0\n").start();
        let mut call = OpenCall::post(&server, path, version, &body).await;
        cancel(&server).await;
        let answer = call.until(|seen| seen.contains("\r\n\r\n{")).await.to_ascii_lowercase();
        assert!(answer.contains("content-length: ") && !answer.contains("transfer-encoding"), "{answer}");
    }
}

#[tokio::test]
async fn a_quick_answer_comes_whole_with_its_length() {
    let server = Setup::conformance().start();
    for (path, version, body, ..) in calls("complete hello") {
        let mut call = OpenCall::post(&server, path, version, &body).await;
        let answer = call.until(|seen| seen.contains("\r\n\r\n{")).await.to_ascii_lowercase();
        assert!(answer.contains("content-length: ") && !answer.contains("transfer-encoding"), "{answer}");
        assert!(!answer.contains("x-accel-buffering"), "{answer}");
    }
}

#[tokio::test]
async fn a_call_that_is_refused_before_its_task_is_recorded_keeps_its_status() {
    let server = Setup::conformance().config("[limits]\nunary_keepalive_ms = 1\n").start();
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [], "taskId": "none" } });
    let (status, answer) = post(&server, "/message:send", &[JSON, NEWEST], message.to_string()).await;
    assert_eq!(status, 400, "{answer}");
}
