//! What goes back: one body type for everything the doors answer with.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::{Error, Version};
use chancery_wire::errors;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::sse::EventBody;

pub(crate) type DoorResponse = Response<DoorBody>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug)]
pub enum DoorBody {
    /// Everything at once; `None` once it is sent.
    Whole(Option<Bytes>),
    Events(Box<EventBody>),
    Grpc(tonic::body::Body),
    Pages(axum::body::Body),
}

impl From<Vec<u8>> for DoorBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for DoorBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Grpc(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Pages(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Events(_) => false,
            Self::Grpc(body) => body.is_end_stream(),
            Self::Pages(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
            Self::Grpc(body) => body.size_hint(),
            Self::Pages(body) => body.size_hint(),
        }
    }
}

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

pub(crate) fn whole(status: StatusCode, content_type: HeaderValue, bytes: Vec<u8>) -> DoorResponse {
    let mut response = Response::new(DoorBody::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// For the caller alone: no cache may show it to another.
pub(crate) fn private(mut response: DoorResponse) -> DoorResponse {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

pub(crate) fn events(body: EventBody) -> DoorResponse {
    let mut response = unbuffered(HeaderValue::from_static("text/event-stream"), body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A body that comes in pieces, which no proxy on the way should collect.
pub(crate) fn unbuffered(content_type: HeaderValue, body: EventBody) -> DoorResponse {
    let mut response = Response::new(DoorBody::Events(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(crate) fn json_rpc_error(error: &Error, version: Version, id: &str) -> DoorResponse {
    let status = StatusCode::from_u16(errors::json_rpc_http_status(error.kind)).unwrap_or(StatusCode::OK);
    with_retry_after(whole(status, JSON, errors::json_rpc(error, version, id)), error.retry_after)
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
