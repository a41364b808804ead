//! A client's line to one run of the server. It breaks when the server is killed, and only then.

use std::collections::VecDeque;
use std::sync::Arc;

use chancery_outbound::Parser;
use serde_json::{Value, json};

/// The server is gone: nothing is known about the call that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone;

impl From<reqwest::Error> for Gone {
    fn from(_: reqwest::Error) -> Self {
        Self
    }
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    client: reqwest::Client,
    url: Arc<str>,
    token: Arc<str>,
}

/// What beside the payload makes a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) last_event_id: Option<u64>,
}

impl<'a> Beside<'a> {
    pub(super) fn key(key: &'a str) -> Self {
        Self { key: Some(key), last_event_id: None }
    }
}

impl Line {
    pub(super) fn to(url: &str, token: &str) -> Self {
        Self { client: reqwest::Client::new(), url: url.into(), token: token.trim().into() }
    }

    async fn post(&self, method: &str, params: &Value, beside: Beside<'_>) -> Result<reqwest::Response, Gone> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self.client.post(&*self.url).header("A2A-Version", "1.0").json(&body);
        if let Some(key) = beside.key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(id) = beside.last_event_id {
            request = request.header("Last-Event-ID", id.to_string());
        }
        Ok(request.send().await?)
    }

    /// The whole answer, result or error.
    pub(super) async fn call(&self, method: &str, params: &Value, beside: Beside<'_>) -> Result<Value, Gone> {
        Ok(self.post(method, params, beside).await?.json().await?)
    }

    /// The events of a call, or the refusal it was answered with.
    pub(super) async fn stream(&self, method: &str, params: &Value, beside: Beside<'_>) -> Result<Result<Events, Value>, Gone> {
        let response = self.post(method, params, beside).await?;
        let streams = response.headers().get("content-type").is_some_and(|value| value == "text/event-stream");
        if !streams {
            return Ok(Err(response.json().await?));
        }
        Ok(Ok(Events { response, parser: Parser::new(16 * 1024 * 1024), ready: VecDeque::new() }))
    }

    pub(super) async fn admin(&self, path: &str) -> Result<Value, Gone> {
        let request = self.client.get(format!("{}/admin/v1{path}", self.url)).bearer_auth(&self.token);
        Ok(request.send().await?.json().await?)
    }
}

/// One event as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) id: u64,
    /// What the JSON-RPC frame held: `{"artifactUpdate": …}`.
    pub(super) payload: Value,
}

impl Event {
    pub(super) fn ends_the_task(&self) -> bool {
        let state = &self.payload["statusUpdate"]["status"]["state"];
        state.as_str().is_some_and(is_terminal)
    }
}

pub(super) fn is_terminal(state: &str) -> bool {
    ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"].contains(&state)
}

#[derive(Debug)]
pub(super) struct Events {
    response: reqwest::Response,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl Events {
    /// The next event; none when the server ended the stream in order.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Gone> {
        while self.ready.is_empty() {
            let Some(chunk) = self.response.chunk().await? else { return Ok(None) };
            for frame in self.parser.feed(&chunk).expect("events are small") {
                let mut frame_json: Value = serde_json::from_str(&frame.data).expect("a whole frame is JSON");
                let id = frame.id.and_then(|id| id.parse().ok()).unwrap_or(0);
                let payload = if frame_json["result"].is_null() { frame_json } else { frame_json["result"].take() };
                self.ready.push_back(Event { id, payload });
            }
        }
        Ok(self.ready.pop_front())
    }

    /// All events up to the end of the stream.
    pub(super) async fn all(mut self) -> Result<Vec<Event>, Gone> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}
