//! An open stream of server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::{RequestBuilder, Response, StatusCode, Url, header};

use crate::error::CallError;
use crate::peer::{Peer, read};
use crate::sse::{Parser, ServerSentEvent};

/// The longest event that is read.
const MOST_EVENT_BYTES: usize = 64 * 1024 * 1024;

pub(crate) enum Opened {
    Stream(Box<Frames>),
    /// The answer is no stream.
    Whole(StatusCode, String),
}

#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) url: Url,
    response: Response,
    parser: Parser,
    ready: VecDeque<ServerSentEvent>,
}

impl Peer {
    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn open_stream(&self, url: &Url, request: RequestBuilder) -> Result<Opened, CallError> {
        let sent = within(url, Some(self.answer_within), request.send()).await;
        let response = sent.map_err(|error| self.explain(error))?;
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !content_type.starts_with("text/event-stream") {
            let (status, text) = read(url, response).await?;
            return Ok(Opened::Whole(status, text));
        }
        let parser = Parser::new(MOST_EVENT_BYTES);
        Ok(Opened::Stream(Box::new(Frames { url: url.clone(), response, parser, ready: VecDeque::new() })))
    }
}

impl Frames {
    /// The next event; nothing when the stream has ended. `silence` bounds the wait for any byte at all.
    pub(crate) async fn next(&mut self, silence: Option<Duration>) -> Result<Option<ServerSentEvent>, CallError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(bytes) = within(&self.url, silence, self.response.chunk()).await? else { return Ok(None) };
            let events = self.parser.feed(&bytes).map_err(|error| CallError::not_understood(&self.url, error.to_string()))?;
            self.ready.extend(events);
        }
    }
}

async fn within<T>(
    url: &Url,
    time: Option<Duration>,
    answer: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, CallError> {
    let answered = match time {
        None => answer.await,
        Some(time) => tokio::time::timeout(time, answer).await.map_err(|_| CallError::Unreachable {
            url: url.to_string(),
            reason: format!("it said nothing for {} seconds", time.as_secs()),
        })?,
    };
    answered.map_err(|error| CallError::unreachable(url, &error))
}
