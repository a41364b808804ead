//! Stands in for the gRPC door in a build without the feature `grpc`: every gRPC call is refused in words of HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use chancery_core::Chancery;
use chancery_protocol::{Error, ErrorKind, Version};
use futures::Stream;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::Empty;

use crate::card::PublishedCards;
use crate::limits::InboundLimits;
use crate::response::{self, DoorResponse};
use crate::shared_events::SharedEvents;
use crate::signposts::Signposts;
use crate::unwritten::UnwrittenBuffers;

pub(crate) type GrpcBody = Empty<Bytes>;
pub(crate) type GrpcFrames = Pin<Box<dyn Stream<Item = Frame<Bytes>> + Send>>;

/// No message is ever written.
#[derive(Debug)]
pub(crate) struct MessagePermit(Infallible);

impl MessagePermit {
    pub(crate) fn count(&self, _: Bytes) -> Bytes {
        match self.0 {}
    }

    pub(crate) fn unwritten(&self) -> Arc<UnwrittenBuffers> {
        match self.0 {}
    }
}

#[derive(Clone, Debug)]
pub(crate) struct GrpcDoors;

impl GrpcDoors {
    pub(crate) fn new(_: Chancery, _: PublishedCards, _: Arc<Signposts>, _: Arc<SharedEvents>, _: &InboundLimits) -> Self {
        Self
    }

    /// 415, as every HTTP server answers a content type that it does not read.
    pub(crate) async fn call<B: Body>(&self, _: Request<B>) -> DoorResponse {
        let error = Error::new(ErrorKind::ContentTypeNotSupported, "this node does not serve gRPC; call it over JSON-RPC");
        let mut response = response::rest_error(&error, Version::V1_0);
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        response
    }

    pub(crate) fn refuse(error: &Error, _: &str) -> DoorResponse {
        response::rest_error(error, Version::V1_0)
    }
}
