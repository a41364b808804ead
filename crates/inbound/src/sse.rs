//! A task's events as a response body: encoded in the caller's version, with a heartbeat when nothing happens.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chancery_core::{Alarm, Next, Subscription};
use chancery_protocol::{Part, PartContent, TaskEvent, Version};
use chancery_wire::{Codec, Face, Frames, errors};
use futures::Stream;
use tokio::time::Instant;

/// How errors look in this stream, should one come after the first event.
#[derive(Clone, Debug)]
pub(crate) enum ErrorShape {
    JsonRpc { version: Version, id: Box<str> },
    Rest(Version),
}

pub struct EventBody(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl std::fmt::Debug for EventBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventBody")
    }
}

struct Writer {
    subscription: Box<Subscription>,
    codec: &'static dyn Codec,
    face: Face,
    frames: Frames,
    errors: ErrorShape,
    heartbeat: Duration,
    alarm: Alarm,
}

impl EventBody {
    pub(crate) fn new(
        subscription: Box<Subscription>,
        codec: &'static dyn Codec,
        frames: Frames,
        errors: ErrorShape,
        heartbeat: Duration,
    ) -> Self {
        let face = face(&subscription);
        let writer = Writer { subscription, codec, face, frames, errors, heartbeat, alarm: Alarm::default() };
        Self(Box::pin(futures::stream::unfold(Some(writer), |writer| async move {
            let mut writer = writer?;
            let more = writer.write().await;
            let bytes = Bytes::from(writer.frames.take());
            (more || !bytes.is_empty()).then_some((bytes, more.then_some(writer)))
        })))
    }

    /// A stream of frames that are already bytes.
    pub(crate) fn of(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(context)
    }
}

pub(crate) fn face(subscription: &Subscription) -> Face {
    Face {
        task_id: subscription.task_id().clone(),
        context_id: subscription.context_id().clone(),
        client_task_id: subscription.client_task_id().cloned(),
        artifacts: Vec::new(),
    }
}

/// What a stream says last when the node stops.
pub(crate) fn farewell(subscription: &Subscription) -> String {
    format!("the node is shutting down; resume with Last-Event-ID: {}", subscription.cursor())
}

/// About how much an event takes that has parts of many bytes: a buffer that grows under them takes twice that, and more.
fn large(event: &TaskEvent) -> Option<usize> {
    const LARGE: usize = 64 << 10;
    const AROUND: usize = 4 << 10;
    let TaskEvent::Artifact(chunk) = event else { return None };
    let bytes = |part: &Part| match &part.content {
        PartContent::Raw(raw) => raw.len() / 3 * 4,
        PartContent::Text(text) => text.len(),
        PartContent::Url(_) | PartContent::Data(_) => 0,
    };
    let bytes: usize = chunk.artifact.parts.iter().map(bytes).sum();
    (bytes > LARGE).then_some(bytes + AROUND)
}

impl Writer {
    /// Writes what comes next. `false` when that was the last of it.
    async fn write(&mut self) -> bool {
        loop {
            // Waiting is cut short by the heartbeat; the subscription loses nothing by that.
            let next = self.alarm.unless(Instant::now() + self.heartbeat, self.subscription.next());
            let Some(next) = next.await else {
                self.frames.comment("still here");
                return true;
            };
            match next {
                Ok(Next::Events(entries)) => {
                    if self.codec.knows_artifacts_by_place() {
                        self.face.artifacts = self.subscription.artifacts();
                    }
                    for entry in entries {
                        self.frames.set_event_id(entry.seq);
                        if let Some(bytes) = large(&entry.event) {
                            self.frames.reserve(bytes);
                        }
                        self.codec.encode_event(&mut self.frames, &self.face, &entry.event);
                    }
                    // Events that this version does not show leave nothing to send.
                    if !self.frames.is_empty() {
                        return true;
                    }
                }
                Ok(Next::Done) => return false,
                Ok(Next::ShuttingDown) => {
                    self.frames.comment(&farewell(&self.subscription));
                    return false;
                }
                Err(error) => {
                    let payload = match &self.errors {
                        ErrorShape::JsonRpc { version, id } => errors::json_rpc(&error, *version, id),
                        ErrorShape::Rest(version) => errors::rest(&error, *version),
                    };
                    self.frames.error(&payload);
                    return false;
                }
            }
        }
    }
}
