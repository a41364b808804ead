//! An agent that asks for authorisation and goes on by itself: streams stay open, other callers see the state.

use serde_json::{Value, json};

use crate::server::{Server, Setup};

async fn stream(server: &Server, version: &str, text: &str) -> reqwest::Response {
    let (method, part, role) = match version {
        "1.0" => ("SendStreamingMessage", json!({ "text": text }), "ROLE_USER"),
        _ => ("message/stream", json!({ "kind": "text", "text": text }), "user"),
    };
    let message = json!({ "messageId": "m", "role": role, "parts": [part] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
    reqwest::Client::new().post(server.url()).header("A2A-Version", version).json(&body).send().await.expect("a stream")
}

/// Reads until the text is there. `None` if the stream ends before.
async fn read_until(stream: &mut reqwest::Response, wanted: &str) -> Option<String> {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        seen.push_str(&String::from_utf8_lossy(&stream.chunk().await.expect("the stream is whole")?));
    }
    Some(seen)
}

fn task_id(seen: &str) -> String {
    let first = seen.split("data: ").nth(1).expect("a first event").lines().next().unwrap();
    let event: Value = serde_json::from_str(first).expect("JSON");
    event["result"]["task"]["id"].as_str().expect("a task first").to_owned()
}

#[tokio::test]
async fn a_stream_stays_open_while_the_agent_goes_on_after_auth_required() {
    let server = Setup::conformance().start();
    let seen = stream(&server, "1.0", "authorize 20").await.text().await.unwrap();
    let (asked, done) = (seen.find("TASK_STATE_AUTH_REQUIRED"), seen.find("TASK_STATE_COMPLETED"));
    assert!(asked.is_some() && asked < done && seen.contains("authorised"), "{seen}");
}

#[tokio::test]
async fn everybody_else_sees_auth_required_meanwhile() {
    let server = Setup::conformance().start();
    // It ends only when it is cancelled.
    let mut stream = stream(&server, "1.0", "authorize 3600000").await;
    let seen = read_until(&mut stream, "TASK_STATE_AUTH_REQUIRED").await.expect("the state");
    let id = task_id(&seen);
    let task = server.call("GetTask", json!({ "id": id })).await;
    assert_eq!(task["result"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
    let blocking = server.send("authorize 3600000").await;
    assert_eq!(blocking["task"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "a blocking caller does not wait: {blocking}");

    server.call("CancelTask", json!({ "id": id })).await;
    assert!(read_until(&mut stream, "TASK_STATE_CANCELED").await.is_some(), "the stream was open until then");
}

#[tokio::test]
async fn a_stream_ends_where_the_agent_ended_its_turn_or_the_version_says_final() {
    let server = Setup::conformance().start();
    let ended = stream(&server, "1.0", "auth please").await.text().await.unwrap();
    assert!(ended.contains("TASK_STATE_AUTH_REQUIRED"), "{ended}");
    let older = stream(&server, "0.3", "authorize 3600000").await.text().await.unwrap();
    assert!(older.contains("\"auth-required\"") && older.contains("\"final\":true"), "{older}");
}
