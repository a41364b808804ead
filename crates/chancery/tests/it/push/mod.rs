//! Webhooks: the built server tells receivers that do as they are told.

pub(crate) mod configs;
pub(crate) mod faults;
pub(crate) mod receiver;
pub(crate) mod receiving;

mod answers;
mod asked;
mod delivery;
mod evil;
mod failing_receivers;
mod no_way_in;
mod operating;
mod raw;
mod rebinding;
mod secrets;
mod versions;

use serde_json::{Value, json};

use crate::support::server::{Home, Server, Setup};

/// What a node needs to be told so that it notifies receivers on this machine.
pub(crate) const LOCAL: &str = "[push]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";

/// A server in memory that notifies receivers on this machine, with these lines more in `[push]`.
pub(crate) fn server(lines: &str) -> Server {
    Setup::conformance().config(&format!("{LOCAL}{lines}\n")).start()
}

/// The same over a database, which is left to the next server in that home.
pub(crate) fn lasting(home: &Home, lines: &str) -> Server {
    Setup::in_home(home).args(["--agent", "conformance"]).config(&format!("{LOCAL}{lines}\n")).start()
}

/// A call of 1.0 that sends a text with a webhook.
pub(crate) async fn send(server: &Server, text: &str, config: Value, immediately: bool) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let configuration = json!({ "taskPushNotificationConfig": config, "returnImmediately": immediately });
    let answer = server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
    assert!(answer["result"]["task"].is_object(), "{answer}");
    answer["result"]["task"].clone()
}

/// The operator's API, under the token in the server's home.
pub(crate) async fn admin(server: &Server, home: &std::path::Path, path: &str, body: Option<Value>) -> Value {
    let token = std::fs::read_to_string(home.join("admin.token")).unwrap();
    let url = format!("{}/admin/v1/push{path}", server.url());
    let client = reqwest::Client::new();
    let request = match body {
        Some(body) => client.post(url).json(&body),
        None => client.get(url),
    };
    let answer = request.bearer_auth(token.trim()).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
