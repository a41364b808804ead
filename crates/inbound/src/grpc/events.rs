//! A task's events as the body of a gRPC answer: messages in their frames, then the status in the trailers.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chancery_core::{AnswerPermit, LogEntry, NextEvents, Subscription};
use chancery_protocol::{Error, ErrorKind, TaskEvent, Version};
use chancery_wire::{Payload, TaskNames, errors};
use futures::Stream;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use prost::Message;
use tonic::Status;

use crate::response::DoorBody;
use crate::shared_events::{EventForm, SharedEvents};
use crate::sse::face;
use crate::unwritten::UnwrittenBuffers;

/// A flag that says it is not compressed, and the length.
const FRAME_HEAD: usize = 5;

pub(crate) type GrpcFrames = std::pin::Pin<Box<dyn Stream<Item = Frame<Bytes>> + Send>>;

/// The body on its way around tonic, which carries what can be cloned.
#[derive(Clone)]
pub(super) struct GrpcEventBody {
    frames: Arc<Mutex<Option<GrpcFrames>>>,
    unwritten: Arc<UnwrittenBuffers>,
}

struct EventWriter<E> {
    subscription: Box<Subscription>,
    face: TaskNames,
    version: Version,
    write: fn(&TaskNames, &TaskEvent) -> Option<E>,
    form: EventForm,
    shared: Arc<SharedEvents>,
    unwritten: Arc<UnwrittenBuffers>,
}

impl GrpcEventBody {
    pub(super) fn new<E: Message + 'static>(
        subscription: Box<Subscription>,
        version: Version,
        shared: Arc<SharedEvents>,
        write: fn(&TaskNames, &TaskEvent) -> Option<E>,
    ) -> Self {
        use futures::StreamExt as _;
        let unwritten = Arc::<UnwrittenBuffers>::default();
        let codec = if version == Version::V1_0 { "lf.a2a.v1" } else { "a2a.v1" };
        let form = EventForm { codec, references: subscription.takes_references(), stays_open: false };
        let face = face(&subscription);
        let writer = EventWriter { subscription, face, version, write, form, shared, unwritten: Arc::clone(&unwritten) };
        let batches = futures::stream::unfold(Some(writer), |writer| async move {
            let mut writer = writer?;
            let (batch, more) = writer.next().await;
            Some((batch, more.then_some(writer)))
        });
        let frames: GrpcFrames = Box::pin(batches.flat_map(futures::stream::iter));
        Self { frames: Arc::new(Mutex::new(Some(frames))), unwritten }
    }

    pub(super) fn into_body(self) -> DoorBody {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner).take();
        DoorBody::grpc_events(frames.unwrap_or_else(|| Box::pin(futures::stream::empty())), self.unwritten)
    }
}

impl<E: Message + 'static> EventWriter<E> {
    /// What comes next, and whether there is more.
    async fn next(&mut self) -> (Vec<Frame<Bytes>>, bool) {
        let error = match self.subscription.next().await {
            Ok(NextEvents::Events(entries)) => return (self.frames(&entries), true),
            Ok(NextEvents::Done) => return (vec![Frame::trailers(trailers(&Status::ok("")))], false),
            Ok(NextEvents::ShuttingDown) => Error::new(ErrorKind::Unavailable, "the node is shutting down; subscribe again"),
            Err(error) => error,
        };
        (vec![Frame::trailers(trailers(&errors::grpc(&error, self.version)))], false)
    }

    fn frames(&mut self, entries: &[Arc<LogEntry>]) -> Vec<Frame<Bytes>> {
        let permit = self.subscription.take_permit().map(Arc::new);
        let (mut pieces, mut small) = (Vec::new(), Vec::new());
        for entry in entries {
            self.face.stays_open = self.subscription.stays_open_at(entry);
            self.form.stays_open = self.face.stays_open;
            let encode = |bytes| {
                let mut out = Vec::with_capacity(bytes);
                self.message(&mut out, &entry.event);
                vec![Payload::whole(out)]
            };
            match self.shared.encoded(&self.face.task_id, entry, &self.form, permit.as_ref(), encode) {
                None => self.message(&mut small, &entry.event),
                Some(event) => {
                    pieces.extend(self.piece(std::mem::take(&mut small), permit.as_ref()));
                    pieces.extend(event.payloads().map(|(_, bytes)| Frame::data(self.unwritten.count(bytes, None))));
                }
            }
        }
        pieces.extend(self.piece(small, permit.as_ref()));
        pieces
    }

    /// Adds the message of an event, if this version shows it.
    fn message(&self, out: &mut Vec<u8>, event: &TaskEvent) {
        let Some(message) = (self.write)(&self.face, event) else { return };
        let length = message.encoded_len();
        out.reserve(FRAME_HEAD + length);
        out.push(0);
        out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        // There is room for it; nothing else can fail.
        let _ = message.encode(out);
    }

    fn piece(&self, bytes: Vec<u8>, permit: Option<&Arc<AnswerPermit>>) -> Option<Frame<Bytes>> {
        (!bytes.is_empty()).then(|| {
            Frame::data(match permit {
                Some(permit) => self.unwritten.count(bytes, Some(Arc::clone(permit))),
                None => bytes.into(),
            })
        })
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // What cannot be said in a header is left out; the code alone always can.
        trailers.insert("grpc-status", HeaderValue::from(status.code() as i32));
    }
    trailers
}
