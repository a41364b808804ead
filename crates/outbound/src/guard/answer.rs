//! What comes back: judged by its head, then read part by part under a size and a time limit.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use chancery_core::Alarm;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::CaptureConnection;
use tokio::time::Instant;

use super::{ConnectStage, GuardError, Whole};

/// Refuses headers beyond the limit.
pub(super) fn judge_size(headers: &HeaderMap, most_header_bytes: usize) -> Result<(), GuardError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > most_header_bytes { Err(GuardError::TooBig(Whole::Headers)) } else { Ok(()) }
}

/// Refuses an answer by its head: redirects, unrequested encodings, headers beyond the limit.
pub(super) fn judge_head(status: StatusCode, headers: &HeaderMap, most_header_bytes: usize) -> Result<(), GuardError> {
    judge_size(headers, most_header_bytes)?;
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return Err(GuardError::Redirect(status));
    }
    for value in headers.get_all(CONTENT_ENCODING) {
        let encoding = value.as_bytes().trim_ascii();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity") {
            return Err(GuardError::Encoded(encoding.escape_ascii().to_string()));
        }
    }
    Ok(())
}

/// The connection an exchange ran over.
#[derive(Clone, Debug)]
pub(super) struct UsedConnection(pub(super) CaptureConnection);

impl UsedConnection {
    /// A server that misbehaved once gets no second exchange over the same connection. Exchanges that share
    /// it now continue.
    pub(super) fn abandon(&self) {
        if let Some(connected) = self.0.connection_metadata().as_ref() {
            connected.poison();
        }
    }
}

/// How long the body may take: all of it, or from one part to the next.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyDeadline {
    Until(Instant),
    BetweenParts(Duration),
}

/// A response body that stops at its limits.
#[derive(Debug)]
pub struct GuardedBody {
    body: Incoming,
    connection: UsedConnection,
    left: u64,
    patience: BodyDeadline,
    alarm: Alarm,
}

impl GuardedBody {
    pub(super) fn new(
        body: Incoming,
        connection: UsedConnection,
        most_bytes: u64,
        patience: BodyDeadline,
    ) -> Result<Self, GuardError> {
        // A body that admits to being too big is not begun.
        if http_body::Body::size_hint(&body).lower() > most_bytes {
            connection.abandon();
            return Err(GuardError::TooBig(Whole::Body));
        }
        Ok(Self { body, connection, left: most_bytes, patience, alarm: Alarm::default() })
    }

    /// The next part, or `None` at the end. After an error there is nothing more to read.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, GuardError> {
        let chunk = self.next().await;
        if chunk.is_err() {
            self.connection.abandon();
        }
        chunk
    }

    async fn next(&mut self) -> Result<Option<Bytes>, GuardError> {
        let (deadline, stage) = match self.patience {
            BodyDeadline::Until(deadline) => (deadline, ConnectStage::Exchange),
            BodyDeadline::BetweenParts(pause) => (Instant::now() + pause, ConnectStage::Idle),
        };
        loop {
            let frame = match self.alarm.unless(deadline, self.body.frame()).await {
                None => return Err(GuardError::TimedOut(stage)),
                Some(None) => return Ok(None),
                Some(Some(Err(fault))) => return Err(GuardError::BrokeOff(chain(&fault))),
                Some(Some(Ok(frame))) => frame,
            };
            // Trailers say nothing we act on.
            let Ok(data) = frame.into_data() else { continue };
            self.left = self.left.checked_sub(data.len() as u64).ok_or(GuardError::TooBig(Whole::Body))?;
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }

    /// All of it.
    pub async fn collect(mut self) -> Result<Bytes, GuardError> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut whole = Vec::from(first);
        whole.extend_from_slice(&second);
        while let Some(part) = self.chunk().await? {
            whole.extend_from_slice(&part);
        }
        Ok(whole.into())
    }
}

/// An error and what caused it, on one line.
pub(super) fn chain(fault: &(dyn Error + 'static)) -> String {
    let mut text = fault.to_string();
    let mut next = fault.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
