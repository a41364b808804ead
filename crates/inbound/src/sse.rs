//! A task's events as a response body: encoded in the caller's version, with a heartbeat when nothing happens.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chancery_core::{Alarm, AnswerPermit, LogEntry, NextEvents, Subscription};
use chancery_protocol::Version;
use chancery_wire::{Codec, Frames, TaskNames, errors};
use futures::Stream;
use tokio::time::Instant;

use crate::doors::Doors;
use crate::shared_events::{EventForm, SharedEvents};
use crate::unwritten::UnwrittenBuffers;

/// How errors look in this stream, should one come after the first event.
#[derive(Clone, Debug)]
pub(crate) enum ErrorShape {
    JsonRpc { version: Version, id: Box<str> },
    Rest(Version),
}

pub struct EventBody {
    pieces: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    unwritten: Option<Arc<UnwrittenBuffers>>,
}

impl std::fmt::Debug for EventBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventBody")
    }
}

struct Writer {
    subscription: Box<Subscription>,
    codec: &'static dyn Codec,
    face: TaskNames,
    frames: Frames,
    errors: ErrorShape,
    heartbeat: Duration,
    alarm: Alarm,
    shared: Arc<SharedEvents>,
    unwritten: Arc<UnwrittenBuffers>,
    /// Written and not handed out yet.
    ready: VecDeque<Bytes>,
}

impl EventBody {
    pub(crate) fn new(
        subscription: Box<Subscription>,
        codec: &'static dyn Codec,
        frames: Frames,
        errors: ErrorShape,
        doors: &Doors,
    ) -> Self {
        let (face, heartbeat) = (face(&subscription), doors.settings().limits.stream_heartbeat());
        let (alarm, shared, unwritten) =
            (Alarm::default(), Arc::clone(doors.shared_events()), Arc::<UnwrittenBuffers>::default());
        let counted = Arc::clone(&unwritten);
        let ready = VecDeque::new();
        let writer = Writer { subscription, codec, face, frames, errors, heartbeat, alarm, shared, unwritten, ready };
        let pieces = futures::stream::unfold((writer, true), |(mut writer, mut more)| async move {
            while writer.ready.is_empty() && more {
                more = writer.write().await;
            }
            writer.ready.pop_front().map(|piece| (piece, (writer, more)))
        });
        Self { pieces: Box::pin(pieces), unwritten: Some(counted) }
    }

    /// A stream of frames that are already bytes.
    pub(crate) fn of(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { pieces: Box::pin(stream), unwritten: None }
    }

    /// The same, with what counts of them until they are written.
    pub(crate) fn counted(stream: impl Stream<Item = Bytes> + Send + 'static, unwritten: Arc<UnwrittenBuffers>) -> Self {
        Self { pieces: Box::pin(stream), unwritten: Some(unwritten) }
    }

    /// Its pieces, to stand in another body.
    pub(crate) fn into_pieces(self) -> impl Stream<Item = Bytes> + Send + 'static {
        self.pieces
    }

    pub(crate) fn unwritten(&self) -> Option<Arc<UnwrittenBuffers>> {
        self.unwritten.clone()
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.pieces.as_mut().poll_next(context)
    }
}

pub(crate) fn face(subscription: &Subscription) -> TaskNames {
    TaskNames {
        task_id: subscription.task_id().clone(),
        context_id: subscription.context_id().clone(),
        client_task_id: subscription.client_task_id().cloned(),
        artifacts: Vec::new(),
        stays_open: false,
    }
}

/// What a stream says last when the node stops.
fn farewell(subscription: &Subscription) -> String {
    format!("the node is shutting down; resume with Last-Event-ID: {}", subscription.cursor())
}

impl Writer {
    /// Writes what comes next. `false` when that was the last of it.
    async fn write(&mut self) -> bool {
        // Waiting is cut short by the heartbeat; the subscription loses nothing by that.
        let next = self.alarm.unless(Instant::now() + self.heartbeat, self.subscription.next());
        let more = match next.await {
            None => {
                self.frames.comment("still here");
                true
            }
            Some(Ok(NextEvents::Events(entries))) => {
                self.write_events(entries);
                return true;
            }
            Some(Ok(NextEvents::Done)) => false,
            Some(Ok(NextEvents::ShuttingDown)) => {
                self.frames.comment(&farewell(&self.subscription));
                false
            }
            Some(Err(error)) => {
                let payload = match &self.errors {
                    ErrorShape::JsonRpc { version, id } => errors::json_rpc(&error, *version, id),
                    ErrorShape::Rest(version) => errors::rest(&error, *version),
                };
                self.frames.error(&payload);
                false
            }
        };
        self.flush(None);
        more
    }

    /// Events that this version does not show leave nothing to send.
    fn write_events(&mut self, entries: Vec<Arc<LogEntry>>) {
        let permit = self.subscription.take_permit().map(Arc::new);
        if self.codec.knows_artifacts_by_place() {
            self.face.artifacts = self.subscription.artifacts();
        }
        for entry in entries {
            self.face.stays_open = self.subscription.stays_open_at(&entry);
            let form = EventForm {
                codec: self.codec.name(),
                references: self.subscription.takes_references(),
                stays_open: self.face.stays_open,
            };
            self.frames.set_event_id(entry.seq);
            let encode = |bytes| {
                let mut frames = Frames::apart();
                frames.reserve(bytes);
                self.codec.encode_event(&mut frames, &self.face, &entry.event);
                frames.take_payloads()
            };
            match self.shared.encoded(&self.face.task_id, &entry, &form, permit.as_ref(), encode) {
                None => self.codec.encode_event(&mut self.frames, &self.face, &entry.event),
                Some(event) => {
                    for (payload, bytes) in event.payloads() {
                        self.frames.before(payload);
                        self.flush(permit.as_ref());
                        self.ready.push_back(self.unwritten.count(bytes, None));
                        self.frames.after();
                    }
                }
            }
        }
        self.flush(permit.as_ref());
    }

    /// What was written becomes a piece.
    fn flush(&mut self, permit: Option<&Arc<AnswerPermit>>) {
        if self.frames.is_empty() {
            return;
        }
        let bytes = self.frames.take();
        self.ready.push_back(match permit {
            Some(permit) => self.unwritten.count(bytes, Some(Arc::clone(permit))),
            None => bytes.into(),
        });
    }
}
