//! Calls in version 1.0 over JSON-RPC: one answer, or a stream of events.

use std::time::Duration;

use chancery_protocol::{Error, Operation, Reply, Request, TaskEvent, Version};
use chancery_wire::json::methods;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec as _, JsonLimits};
use reqwest::{Method, RequestBuilder, StatusCode, Url, header};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::frames::{Frames, Opened};
use crate::peer::{Peer, turned_away};

/// A stream that says nothing for this long, not even that it is still there, is given up.
const SILENCE: Duration = Duration::from_secs(90);
const LIMITS: JsonLimits = JsonLimits { json_depth: 128, json_nodes: 10_000_000, json_key_bytes: 65_536 };

/// What goes with a call beside its content.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub idempotency_key: Option<String>,
    /// The last event already seen of the task that is subscribed to.
    pub last_event_id: Option<u64>,
    /// Protocol extensions asked for, by their URIs.
    pub extensions: Vec<String>,
}

/// An answer, read and as it came.
#[derive(Debug)]
pub struct Answered {
    pub reply: Reply,
    /// The `result` as JSON text.
    pub result: String,
}

/// One event of a stream, read and as it came.
#[derive(Debug)]
pub struct Streamed {
    /// What to resume after.
    pub id: Option<u64>,
    pub event: TaskEvent,
    pub result: String,
}

/// A new id for a message.
pub fn new_message_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

impl Peer {
    /// Calls an operation that has one answer.
    pub async fn call(&self, request: &Request, conditions: &Conditions) -> Result<Answered, CallError> {
        let (status, text) = self.ask(&self.url, self.post(request, conditions)?).await?;
        match open(&self.url, &text) {
            Err(error) => Err(self.refused(error, status, &text)),
            Ok(result) => {
                let reply = V1_0.decode_reply(request.operation(), result).map_err(|error| self.blame(&error))?;
                Ok(Answered { reply, result: result.to_owned() })
            }
        }
    }

    /// Calls an operation that is answered with events.
    pub async fn stream(&self, request: &Request, conditions: &Conditions) -> Result<Events, CallError> {
        let request = self.post(request, conditions)?.header(header::ACCEPT, "text/event-stream");
        let frames = match self.open_stream(&self.url, request).await? {
            Opened::Stream(frames) => frames,
            // What is refused before the first event is answered as one whole.
            Opened::Whole(status, text) => {
                let whole = || CallError::not_understood(&self.url, "a whole answer where a stream was asked for");
                return Err(self.refused(open(&self.url, &text).err().unwrap_or_else(whole), status, &text));
            }
        };
        Ok(Events { frames })
    }

    fn post(&self, request: &Request, conditions: &Conditions) -> Result<RequestBuilder, CallError> {
        let method = method(request.operation());
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":"1","method":"{method}","params":"#).into_bytes();
        V1_0.encode_request(&mut body, request).map_err(|error| self.blame(&error))?;
        body.push(b'}');
        let mut post = self.http.post(self.url.clone());
        post = post.headers(self.terms.headers(&Method::POST, &self.url, &body)?);
        post = post.header(header::CONTENT_TYPE, "application/json").header("A2A-Version", "1.0").body(body);
        if let Some(key) = &conditions.idempotency_key {
            post = post.header("Idempotency-Key", key);
        }
        if !conditions.extensions.is_empty() {
            post = post.header("A2A-Extensions", conditions.extensions.join(", "));
        }
        if let Some(id) = conditions.last_event_id {
            post = post.header("Last-Event-ID", id);
        }
        Ok(post)
    }

    /// Why there is no result, by the words of the answer and by its status.
    fn refused(&self, error: CallError, status: StatusCode, text: &str) -> CallError {
        match error {
            CallError::Refused { code, message } => {
                turned_away(self, status, &message).unwrap_or(CallError::Refused { code, message })
            }
            _ if !status.is_success() => {
                turned_away(self, status, "not let in").unwrap_or_else(|| CallError::status(&self.url, status, text))
            }
            error => error,
        }
    }

    fn blame(&self, error: &Error) -> CallError {
        CallError::not_understood(&self.url, error.message.clone())
    }
}

/// The events of a stream, in order.
#[derive(Debug)]
pub struct Events {
    frames: Box<Frames>,
}

impl Events {
    /// The next event; nothing when the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Streamed>, CallError> {
        let Some(frame) = self.frames.next(Some(SILENCE)).await? else { return Ok(None) };
        let url = &self.frames.url;
        let result = open(url, &frame.data)?.to_owned();
        let (_, event) = V1_0.decode_event(&result).map_err(|error| CallError::not_understood(url, error.message.clone()))?;
        Ok(Some(Streamed { id: frame.id.and_then(|id| id.parse().ok()), event, result }))
    }
}

fn method(operation: Operation) -> &'static str {
    // Version 1.0 has a name for every operation.
    methods::name(Version::V1_0, operation).unwrap_or_default()
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

/// The `result` of a response, or what was said instead.
fn open<'a>(url: &Url, text: &'a str) -> Result<&'a str, CallError> {
    let not_understood = |reason: String| CallError::not_understood(url, reason);
    let scanned = chancery_wire::scan(text.as_bytes(), &LIMITS).map_err(|error| not_understood(error.message.into_owned()))?;
    let response: Response<'a> = serde_json::from_str(scanned).map_err(|error| not_understood(error.to_string()))?;
    match response {
        Response { error: Some(refusal), .. } => Err(CallError::Refused { code: refusal.code, message: refusal.message }),
        Response { result: Some(result), .. } => Ok(result.get()),
        _ => Err(not_understood("neither result nor error".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_a_result_or_a_refusal() {
        let url = Url::parse("http://h").unwrap();
        assert_eq!(open(&url, r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}"#).unwrap(), r#"{"a":[1]}"#);
        let refused = open(&url, r#"{"id":1,"error":{"code":-32001,"message":"Task not found","data":[]}}"#).unwrap_err();
        assert!(matches!(refused, CallError::Refused { code: -32001, .. }), "{refused}");
        for odd in ["", "{}", "[]", "<html>", r#"{"result":1,"result":2}"#, r#"{"error":"no"}"#] {
            assert!(matches!(open(&url, odd), Err(CallError::NotUnderstood { .. })), "{odd}");
        }
    }

    #[test]
    fn every_operation_has_a_method() {
        for operation in Operation::ALL {
            assert!(!method(operation).is_empty(), "{operation:?}");
        }
    }
}
