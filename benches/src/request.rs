//! The requests the load is made of, built once as bytes.

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::ValueEnum;
use serde_json::json;

/// What one request of the load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequestKind {
    /// A blocking `SendMessage`
    Send,
    /// A `SendStreamingMessage` read to its end
    Stream,
    /// The public agent card
    Card,
    /// A task over SWP
    Task,
    /// A blocking `SendMessage` to a task that asked back, and asks again
    FollowUp,
    /// A blocking `SendMessage` that brings a trace, as OpenTelemetry sends it
    Traced,
}

impl RequestKind {
    /// The text the agent gets when none is named.
    pub(crate) fn usual_text(self) -> &'static str {
        match self {
            Self::Stream => "stream 10",
            Self::FollowUp => "ask",
            Self::Send | Self::Card | Self::Task | Self::Traced => "hello",
        }
    }

    /// Where Chancery answers this.
    fn usual_path(self) -> &'static str {
        match self {
            Self::Send | Self::Stream | Self::Task | Self::FollowUp | Self::Traced => "/",
            Self::Card => "/.well-known/agent-card.json",
        }
    }

    /// What a good answer holds. JSON-RPC errors come with status 200, so the status alone proves nothing.
    pub(crate) fn proof(self) -> &'static [u8] {
        match self {
            Self::Send | Self::Stream | Self::Traced => b"TASK_STATE_COMPLETED",
            Self::FollowUp => b"TASK_STATE_INPUT_REQUIRED",
            Self::Card => b"\"skills\"",
            // Frames are looked into one by one.
            Self::Task => b"",
        }
    }
}

/// Splits `http://HOST:PORT[/PATH]`; a missing path is the usual one of the kind.
pub(crate) fn address_and_path(url: &str, kind: RequestKind) -> Result<(String, String)> {
    let scheme = if kind == RequestKind::Task { "swp://" } else { "http://" };
    let rest = url.strip_prefix(scheme).with_context(|| format!("{url}: only {scheme} is measured"))?;
    Ok(match rest.split_once('/') {
        Some((address, path)) if !path.is_empty() => (address.to_owned(), format!("/{path}")),
        Some((address, _)) => (address.to_owned(), kind.usual_path().to_owned()),
        None => (rest.to_owned(), kind.usual_path().to_owned()),
    })
}

/// The request as bytes.
pub(crate) fn bytes(kind: RequestKind, address: &str, path: &str, text: &str) -> Bytes {
    match kind {
        // Those that follow name their task; without one it is the first, that makes it.
        RequestKind::Send | RequestKind::FollowUp => call(address, path, "SendMessage", &message(text)),
        RequestKind::Stream => call(address, path, "SendStreamingMessage", &message(text)),
        RequestKind::Card => get(address, path),
        RequestKind::Traced => call_with(TRACE, address, path, "SendMessage", &message(text)),
        RequestKind::Task => crate::slim::frame(path, text),
    }
}

/// The headers of an instrumented client: a trace of its own, and a list with the members of three vendors.
const TRACE: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\
    tracestate: dd=s:1;t.dm:-0,congo=t61rcWkgMzE,rojo=00f067aa0ba902b7\r\n";

/// A send that registers a webhook, signed with a secret and with the node's own key.
pub(crate) fn with_webhook(address: &str, path: &str, text: &str, hook: &str) -> Bytes {
    let mut params = message(text);
    let authentication = json!({"scheme": "StandardWebhooks", "credentials": crate::webhooks::SECRET});
    params["configuration"] = json!({"taskPushNotificationConfig": {"url": hook, "authentication": authentication}});
    call(address, path, "SendMessage", &params)
}

/// A message for a task that asked back. Its history stays where it is, so that the answers do not grow with it.
pub(crate) fn follow_up(address: &str, path: &str, text: &str, task: &str) -> Bytes {
    let mut params = message(text);
    params["message"]["taskId"] = task.into();
    params["configuration"] = json!({"historyLength": 0});
    call(address, path, "SendMessage", &params)
}

/// A JSON-RPC call of A2A 1.0 as bytes.
pub(crate) fn call(address: &str, path: &str, method: &str, params: &serde_json::Value) -> Bytes {
    call_with("", address, path, method, params)
}

/// The same with more headers.
fn call_with(headers: &str, address: &str, path: &str, method: &str, params: &serde_json::Value) -> Bytes {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// A plain read as bytes.
pub(crate) fn get(address: &str, path: &str) -> Bytes {
    format!("GET {path} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\n\r\n").into()
}

/// The params of a send.
pub(crate) fn message(text: &str) -> serde_json::Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_the_usual_one() {
        let split = |url, kind| address_and_path(url, kind).expect("valid");
        let own = |a: &str, p: &str| (a.to_owned(), p.to_owned());
        assert_eq!(split("http://h:1", RequestKind::Send), own("h:1", "/"));
        assert_eq!(split("http://h:1/", RequestKind::Card), own("h:1", "/.well-known/agent-card.json"));
        assert_eq!(split("http://h:1/x/y", RequestKind::Stream), own("h:1", "/x/y"));
        assert!(address_and_path("https://h:1", RequestKind::Send).is_err());
    }
}
