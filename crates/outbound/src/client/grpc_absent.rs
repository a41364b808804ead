//! Stands in for the gRPC client in a build without the feature `grpc`: no agent can be called over gRPC.

use std::convert::Infallible;
use std::time::Duration;

use chancery_protocol::{ErrorKind, Reply, Request};
use http::HeaderMap;

use super::events::{EventSource, StreamedEvent};
use super::interface::Interface;
use super::limits::ClientLimits;
use super::{ClientError, not_asked};
use crate::guard::Guard;

#[derive(Debug)]
pub(super) struct GrpcAgent(Infallible);

impl GrpcAgent {
    pub(super) fn new(_: &Guard, _: &Interface, _: &ClientLimits) -> Result<Self, ClientError> {
        Err(not_asked(ErrorKind::UnsupportedOperation, "this build does not have the feature `grpc`"))
    }

    pub(super) async fn call(&self, _: &Request, _: &HeaderMap, _: Duration) -> Result<Reply, ClientError> {
        match self.0 {}
    }

    pub(super) async fn stream(&self, _: &Request, _: &HeaderMap, _: Duration) -> Result<EventSource, ClientError> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(super) struct GrpcEventStream(Infallible);

impl GrpcEventStream {
    pub(super) async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        match self.0 {}
    }
}
