//! The head of an HTTP answer, and what an answer without a readable error says by its status.

use std::time::Duration;

use chancery_protocol::{Error, ErrorKind, Operation};
use chancery_wire::errors;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

/// The longest retry delay that is forwarded.
const LONGEST_WAIT: u64 = 24 * 3_600;
/// The most characters of a body's first line that are forwarded.
const WORDS_CHARS: usize = 300;

/// The head of an answer, as far as it matters.
#[derive(Clone, Debug)]
pub(super) struct AnswerHead {
    pub(super) status: StatusCode,
    pub(super) media_type: String,
    pub(super) retry_after: Option<Duration>,
}

impl AnswerHead {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
        let media_type = text(CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default();
        // A date instead of seconds would need a clock both sides agree on.
        let retry_after = text(RETRY_AFTER).and_then(|value| value.parse::<u64>().ok());
        Self {
            status,
            media_type: media_type.trim().to_ascii_lowercase(),
            retry_after: retry_after.map(|seconds| Duration::from_secs(seconds.min(LONGEST_WAIT))),
        }
    }

    /// An agent that does not say what it sends is given the benefit of the doubt.
    pub(super) fn may_be_json(&self) -> bool {
        self.media_type.is_empty() || self.is_json()
    }

    pub(super) fn is_json(&self) -> bool {
        let kind = self.media_type.as_str();
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
    }

    pub(super) fn is_events(&self) -> bool {
        self.media_type == "text/event-stream"
    }

    /// The error of an answer that is no success and has no error object: its status, and the words in its body.
    pub(super) fn error(&self, asked: Operation, body: &[u8]) -> Error {
        let status = self.status.as_u16();
        let kind = errors::read::of_http_status(status, asked).unwrap_or(ErrorKind::Internal);
        let reason = || self.status.canonical_reason().unwrap_or("no reason given").to_owned();
        let message = format!("HTTP {status}: {}", words(body).unwrap_or_else(reason));
        Error { retry_after: self.retry_after, ..Error::new(kind, message) }
    }
}

/// What a body says for people: the text of its `error`, `message` or `detail`, or its first line. Pages say nothing.
fn words(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let value = serde_json::from_str::<Value>(text).unwrap_or_default();
    let of = |value: &Value| {
        let names = ["error", "message", "detail", "title"];
        names.iter().find_map(|name| value[name].as_str().map(str::to_owned))
    };
    let first_line = || text.lines().next().filter(|_| !text.starts_with(['<', '{', '['])).map(str::to_owned);
    let said = of(&value).or_else(|| of(&value["error"])).or_else(first_line)?;
    let said: String = said.chars().map(|one| if one.is_control() { ' ' } else { one }).take(WORDS_CHARS).collect();
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

/// Whether a body begins as JSON does.
pub(super) fn looks_like_json(body: &[u8]) -> bool {
    matches!(first_byte(body), Some(b'{' | b'['))
}

/// Whether a body begins as a stream of events does.
pub(super) fn looks_like_events(body: &[u8]) -> bool {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|start| body.starts_with(start))
}

/// The first byte that is neither white space nor another control byte.
pub(super) fn first_byte(body: &[u8]) -> Option<u8> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    body.iter().copied().find(|byte| *byte > b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, asked: Operation, body: &str) -> Error {
        AnswerHead::new(StatusCode::from_u16(status).unwrap(), &HeaderMap::new()).error(asked, body.as_bytes())
    }

    #[test]
    fn law_1_2_8_the_reason_is_the_status_and_the_words_of_the_body() {
        for (status, body, message) in [
            (500, "Internal Server Error", "HTTP 500: Internal Server Error"),
            (
                400,
                r#"{"error":"Accept header must include application/json"}"#,
                "HTTP 400: Accept header must include application/json",
            ),
            (500, r#"{"message":"unknown exception"}"#, "HTTP 500: unknown exception"),
            (422, r#"{"detail":"no parts"}"#, "HTTP 422: no parts"),
            (500, r#"{"error":{"message":"model down"}}"#, "HTTP 500: model down"),
            (502, "<html><p>secret page</p>", "HTTP 502: Bad Gateway"),
            (503, "", "HTTP 503: Service Unavailable"),
            (500, "first line\nsecond line", "HTTP 500: first line"),
        ] {
            assert_eq!(error(status, Operation::SendMessage, body).message, message);
        }
        assert_eq!(error(500, Operation::SendMessage, &"x".repeat(1_000)).message.len(), "HTTP 500: ".len() + WORDS_CHARS);
    }

    #[test]
    fn law_1_2_8_a_missing_task_is_not_a_lost_agent() {
        assert_eq!(error(404, Operation::GetTask, "").kind, ErrorKind::TaskNotFound);
        assert_eq!(error(404, Operation::CancelTask, "").kind, ErrorKind::TaskNotFound);
        assert_eq!(error(404, Operation::SendMessage, "").kind, ErrorKind::MethodNotFound);
    }

    #[test]
    fn law_1_2_7_a_body_is_told_by_its_first_byte() {
        assert!(looks_like_json(b" \n{") && looks_like_json("\u{feff}[".as_bytes()) && looks_like_json(b"\x1e{"));
        assert!(!looks_like_json(b"data: {") && !looks_like_json(b""));
        assert!(
            looks_like_events(b"\r\ndata: {}") && looks_like_events("\u{feff}: hi".as_bytes()) && looks_like_events(b"event: x")
        );
        assert!(!looks_like_events(b"{") && !looks_like_events(b"<html>"));
    }
}
