//! A client's line to one run of the server: calls, streams and the operator's view. It breaks when the server is killed.

use std::collections::VecDeque;
use std::sync::Arc;

use chancery_outbound::Parser;
use serde_json::{Value, json};

/// The server is gone: nothing is known about the call that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone;

impl From<reqwest::Error> for Gone {
    fn from(_: reqwest::Error) -> Self {
        Self
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    client: reqwest::Client,
    url: Arc<str>,
    token: Arc<str>,
}

/// What beside the payload makes a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside<'a> {
    pub(crate) key: Option<&'a str>,
    pub(crate) last_event_id: Option<u64>,
}

impl<'a> Beside<'a> {
    pub(crate) fn key(key: &'a str) -> Self {
        Self { key: Some(key), last_event_id: None }
    }
}

impl Line {
    pub(crate) fn to(url: &str, token: &str) -> Self {
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
    pub(crate) async fn call(&self, method: &str, params: &Value, beside: Beside<'_>) -> Result<Value, Gone> {
        Ok(self.post(method, params, beside).await?.json().await?)
    }

    /// The events of a call, or the refusal it was answered with.
    pub(crate) async fn stream(&self, method: &str, params: &Value, beside: Beside<'_>) -> Result<Result<Events, Value>, Gone> {
        let response = self.post(method, params, beside).await?;
        let streams = response.headers().get("content-type").is_some_and(|value| value == "text/event-stream");
        if !streams {
            return Ok(Err(response.json().await?));
        }
        Ok(Ok(Events { response, parser: Parser::new(16 * 1024 * 1024), ready: VecDeque::new() }))
    }

    /// A text, and how it went.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.call("SendMessage", &message(text, None), Beside::default()).await.expect("the server answers")["result"].take()
    }

    /// A text for a task that is there already.
    pub(crate) async fn follow_up(&self, task: &Value, text: &str) -> Value {
        self.call("SendMessage", &message(text, Some(task)), Beside::default()).await.expect("the server answers")
    }

    pub(crate) async fn streaming_send(&self, text: &str) -> Events {
        let opened = self.stream("SendStreamingMessage", &message(text, None), Beside::default()).await;
        opened.expect("the server answers").expect("with a stream")
    }

    pub(crate) async fn subscribe(&self, task: &Value) -> Events {
        let opened = self.stream("SubscribeToTask", &json!({ "id": task }), Beside::default()).await;
        opened.expect("the server answers").expect("with a stream")
    }

    pub(crate) async fn admin(&self, path: &str) -> Result<Value, Gone> {
        let request = self.client.get(format!("{}/admin/v1{path}", self.url)).bearer_auth(&self.token);
        Ok(request.send().await?.json().await?)
    }
}

fn message(text: &str, task: Option<&Value>) -> Value {
    let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    if let Some(task) = task {
        message["taskId"] = task.clone();
    }
    json!({ "message": message })
}

/// One event as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: u64,
    /// What the JSON-RPC frame held: `{"artifactUpdate": …}`.
    pub(crate) payload: Value,
}

impl Event {
    pub(crate) fn ends_the_task(&self) -> bool {
        let state = &self.payload["statusUpdate"]["status"]["state"];
        state.as_str().is_some_and(is_terminal)
    }
}

pub(crate) fn is_terminal(state: &str) -> bool {
    ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"].contains(&state)
}

#[derive(Debug)]
pub(crate) struct Events {
    response: reqwest::Response,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl Events {
    /// The next event; none when the server ended the stream in order.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Gone> {
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
    pub(crate) async fn all(mut self) -> Result<Vec<Event>, Gone> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}
