//! `tasks/get`, `tasks/cancel` and `tasks/resubscribe` belong to two versions: the one that made the task is answered in.

use serde_json::{Value, json};

use super::{JSON, NEWEST, post};
use crate::support::server::{Server, Setup};

async fn call(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    post(server, "/", &[JSON], body).await.1
}

async fn first_event(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let request = reqwest::Client::new().post(server.url()).header(JSON.0, JSON.1).body(body);
    let mut response = request.send().await.unwrap();
    let mut text = String::new();
    while !text.contains("\n\n") {
        text += std::str::from_utf8(&response.chunk().await.unwrap().expect("an event")).unwrap();
    }
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
    serde_json::from_str::<Value>(data).unwrap()["result"].take()
}

async fn asked_in_the_original(server: &Server) -> Value {
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "ask what?" }] });
    call(server, "tasks/send", json!({ "id": "mine", "sessionId": "talk", "message": message })).await["result"].take()
}

async fn asked_in_0_3(server: &Server) -> Value {
    let parts = json!([{ "kind": "text", "text": "ask what?" }]);
    let message = json!({ "kind": "message", "messageId": "m", "role": "user", "parts": parts });
    call(server, "message/send", json!({ "message": message })).await["result"].take()
}

/// Whether a task is in the shape of the original: known by the caller's name, without `kind`.
fn is_original(task: &Value) -> bool {
    let shape = (task.get("kind").is_some(), task.get("sessionId").is_some(), task.get("contextId").is_some());
    assert!(matches!(shape, (false, true, false) | (true, false, true)), "neither of the two: {task}");
    shape.1
}

#[tokio::test]
async fn a_task_is_shown_in_the_dialect_that_made_it() {
    let server = Setup::conformance().start();
    let (original, newer) = (asked_in_the_original(&server).await, asked_in_0_3(&server).await);
    assert_eq!((is_original(&original), &original["id"], &original["sessionId"]), (true, &json!("mine"), &json!("talk")));
    assert!(!is_original(&newer));

    for (made, expected) in [(&original, true), (&newer, false)] {
        let got = call(&server, "tasks/get", json!({ "id": made["id"] })).await;
        assert_eq!((is_original(&got["result"]), &got["result"]["id"]), (expected, &made["id"]), "{got}");
        let part = &got["result"]["status"]["message"]["parts"][0];
        assert_eq!((part.get("type").is_some(), part.get("kind").is_some()), (expected, !expected), "{got}");

        let event = first_event(&server, "tasks/resubscribe", json!({ "id": made["id"] })).await;
        assert_eq!(event["kind"] == "task", !expected, "{event}");
        assert_eq!((&event["id"], &event["status"]["state"]), (&made["id"], &json!("input-required")), "{event}");

        let canceled = call(&server, "tasks/cancel", json!({ "id": made["id"] })).await;
        assert_eq!(is_original(&canceled["result"]), expected, "{canceled}");
        assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
    }
}

#[tokio::test]
async fn a_task_that_nobody_knows_is_refused_in_the_newer_of_the_two() {
    let server = Setup::conformance().start();
    // `tasks/resubscribe` is refused as an event: see `refused_streams`.
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = call(&server, method, json!({ "id": "nobody" })).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32001)), "{answer}");
    }
}

#[tokio::test]
async fn a_name_that_a_caller_of_the_original_chose_is_not_known_in_1_0() {
    let server = Setup::conformance().start();
    asked_in_the_original(&server).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "mine" } }).to_string();
    let (_, answer) = post(&server, "/", &[JSON, NEWEST], body).await;
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
}

#[tokio::test]
async fn an_artifact_has_the_same_index_in_a_stream_and_in_its_task() {
    let server = Setup::conformance().start();
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "stream 3" }] });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/sendSubscribe", "params": { "id": "mine", "message": message } });
    let text = reqwest::Client::new()
        .post(server.url())
        .header(JSON.0, JSON.1)
        .body(body.to_string())
        .send()
        .await
        .unwrap()
        .text()
        .await;
    let text = text.unwrap();
    let events =
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(|data| serde_json::from_str::<Value>(data).unwrap());
    let streamed: Vec<Value> = events.filter_map(|event| event["result"]["artifact"].get("index").cloned()).collect();
    let got = call(&server, "tasks/get", json!({ "id": "mine" })).await;
    assert_eq!(streamed, [0, 0, 0], "{text}");
    assert_eq!(got["result"]["artifacts"][0]["index"], 0, "{got}");
}
