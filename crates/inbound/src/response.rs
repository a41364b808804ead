//! What goes back: one body type for everything the doors answer with.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chancery_core::AnswerPermit;
use chancery_protocol::{Error, Version};
use chancery_wire::{Frames, errors};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::grpc::{GrpcBody, GrpcFrames, MessagePermit};
use crate::sse::EventBody;
use crate::stalled_streams::{ReadState, in_stream, note};
use crate::unwritten::{UnwrittenBuffers, counted};

pub(crate) type DoorResponse = Response<DoorBody>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The most bytes of a chunk for HTTP/2. So it holds little for a slow reader, and a reader that takes
/// nothing is noticed soon. It is also the largest frame of most clients.
const HTTP2_PIECE: usize = 16 * 1024;

/// What an answer consists of.
enum Content {
    /// Everything at once; `None` once it is sent.
    Whole(Option<Bytes>),
    Events(Box<EventBody>),
    Grpc(GrpcBody, Option<Arc<MessagePermit>>),
    GrpcEvents(GrpcFrames),
    Pages(axum::body::Body),
}

pub struct DoorBody {
    content: Content,
    /// The rest of what is given to HTTP/2 piece by piece.
    rest: Bytes,
    /// What was given and counts until it is written. The stream stays open, and watched, until then.
    unwritten: Option<Arc<UnwrittenBuffers>>,
    end: BodyEnd,
}

impl std::fmt::Debug for DoorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DoorBody")
    }
}

enum BodyEnd {
    Open,
    /// These come last, once all before them is written.
    Trailers(Box<HeaderMap>),
    Over,
}

impl From<Content> for DoorBody {
    fn from(content: Content) -> Self {
        Self { content, rest: Bytes::new(), unwritten: None, end: BodyEnd::Open }
    }
}

impl From<Vec<u8>> for DoorBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Bytes::from(bytes))
    }
}

impl From<Bytes> for DoorBody {
    fn from(bytes: Bytes) -> Self {
        Content::Whole(Some(bytes)).into()
    }
}

impl From<EventBody> for DoorBody {
    fn from(events: EventBody) -> Self {
        let unwritten = events.unwritten();
        Self { unwritten, ..Content::Events(Box::new(events)).into() }
    }
}

impl From<axum::body::Body> for DoorBody {
    fn from(pages: axum::body::Body) -> Self {
        Content::Pages(pages).into()
    }
}

impl DoorBody {
    /// A body that tonic writes, with the permit of its message.
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "only the gRPC door makes it"))]
    pub(crate) fn grpc(body: GrpcBody, permit: Option<Arc<MessagePermit>>) -> Self {
        let unwritten = permit.as_ref().map(|permit| permit.unwritten());
        Self { unwritten, ..Content::Grpc(body, permit).into() }
    }

    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "only the gRPC door makes it"))]
    pub(crate) fn grpc_events(frames: GrpcFrames, unwritten: Arc<UnwrittenBuffers>) -> Self {
        Self { unwritten: Some(unwritten), ..Content::GrpcEvents(frames).into() }
    }

    fn poll_content(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.rest)))));
        }
        match &mut self.content {
            Content::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Content::Events(events) => events.poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Content::Grpc(body, permit) => Pin::new(body).poll_frame(context).map_err(Into::into).map(|frame| match permit {
                Some(permit) => frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| permit.count(bytes)))),
                None => frame,
            }),
            Content::GrpcEvents(frames) => frames.as_mut().poll_next(context).map(|frame| frame.map(Ok)),
            Content::Pages(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    /// The same for a stream of HTTP/2: chunk by chunk, and with an end only when all before it is written,
    /// because a stream is not watched after its end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if matches!(self.end, BodyEnd::Open) {
            match self.poll_content(context) {
                Poll::Pending => {
                    if self.poll_written(context).is_ready() {
                        note(ReadState::Waiting);
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(mut bytes) => {
                        note(ReadState::Unwritten);
                        if bytes.len() > HTTP2_PIECE {
                            self.rest = bytes.split_off(HTTP2_PIECE);
                        }
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.end = BodyEnd::Trailers(Box::new(trailers));
                    }
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => self.end = BodyEnd::Over,
            }
        }
        std::task::ready!(self.poll_written(context));
        match std::mem::replace(&mut self.end, BodyEnd::Over) {
            BodyEnd::Trailers(trailers) => Poll::Ready(Some(Ok(Frame::trailers(*trailers)))),
            BodyEnd::Open | BodyEnd::Over => Poll::Ready(None),
        }
    }

    fn poll_written(&self, context: &mut Context<'_>) -> Poll<()> {
        self.unwritten.as_ref().map_or(Poll::Ready(()), |unwritten| unwritten.poll_written(context))
    }
}

impl Body for DoorBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = self.get_mut();
        if in_stream() { body.poll_piece(context) } else { body.poll_content(context) }
    }

    fn is_end_stream(&self) -> bool {
        if !self.rest.is_empty() || (in_stream() && self.unwritten.is_some()) {
            return false;
        }
        match &self.content {
            Content::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Content::Events(_) | Content::GrpcEvents(_) => false,
            Content::Grpc(body, _) => body.is_end_stream(),
            Content::Pages(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact((bytes.as_ref().map_or(0, Bytes::len) + self.rest.len()) as u64),
            Content::Events(_) | Content::GrpcEvents(_) => SizeHint::default(),
            Content::Grpc(body, _) => body.size_hint(),
            Content::Pages(body) => body.size_hint(),
        }
    }
}

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

pub(crate) fn whole(status: StatusCode, content_type: HeaderValue, bytes: Vec<u8>) -> DoorResponse {
    let mut response = Response::new(DoorBody::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// An answer of many bytes: its room is given back when they are written.
pub(crate) fn large(content_type: HeaderValue, bytes: Vec<u8>, permit: AnswerPermit) -> DoorResponse {
    let (bytes, unwritten) = counted(bytes, permit);
    let mut response = Response::new(DoorBody { unwritten: Some(unwritten), ..bytes.into() });
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A buffer for an answer of about this weight. One that grows under a large answer takes twice the memory, and more.
pub(crate) fn buffer_for(permit: &AnswerPermit) -> Vec<u8> {
    let bytes = usize::try_from(permit.bytes()).unwrap_or(0);
    Vec::with_capacity(bytes + bytes / 16 + 4096)
}

/// For the caller alone: no cache may show it to another.
pub(crate) fn private(mut response: DoorResponse) -> DoorResponse {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

/// An answer that no browser takes for something else than it says it is.
pub(crate) fn unsniffed(mut response: DoorResponse) -> DoorResponse {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) fn events(body: EventBody) -> DoorResponse {
    let mut response = unbuffered(EVENT_STREAM, body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A body that comes in pieces, which no proxy on the way should collect.
pub(crate) fn unbuffered(content_type: HeaderValue, body: EventBody) -> DoorResponse {
    let mut response = in_pieces(content_type, body);
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A body that is written while it is read from the store.
pub(crate) fn in_pieces(content_type: HeaderValue, body: EventBody) -> DoorResponse {
    let mut response = Response::new(DoorBody::from(body));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

pub(crate) fn json_rpc_status(error: &Error) -> StatusCode {
    StatusCode::from_u16(errors::json_rpc_http_status(error.kind)).unwrap_or(StatusCode::OK)
}

pub(crate) fn json_rpc_error(error: &Error, version: Version, id: &str) -> DoorResponse {
    with_retry_after(whole(json_rpc_status(error), JSON, errors::json_rpc(error, version, id)), error.retry_after)
}

/// A stream of one event, the error, for clients that read the answer to a streaming call as events and nothing else.
pub(crate) fn refused_stream(error: &Error, version: Version, id: &str, status: StatusCode) -> DoorResponse {
    let mut frames = Frames::json_rpc(id);
    frames.refusal(&errors::json_rpc(error, version, id));
    let mut response = whole(status, EVENT_STREAM, frames.take());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    with_retry_after(response, error.retry_after)
}

pub(crate) fn rest_error(error: &Error, version: Version) -> DoorResponse {
    let status = StatusCode::from_u16(errors::http_status(error.kind, version)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_retry_after(whole(status, JSON, errors::rest(error, version)), error.retry_after)
}

fn with_retry_after(mut response: DoorResponse, after: Option<Duration>) -> DoorResponse {
    if let Some(after) = after {
        // Whole seconds, never zero: "now" would be wrong.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    response
}
