//! Stands in for the SWP client in a build without the feature `swp`: no agent can be called over SWP.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use chancery_protocol::{ErrorKind, Reply, Request};

use super::conditions::CallConditions;
use super::events::{EventSource, StreamedEvent};
use super::interface::Interface;
use super::limits::ClientLimits;
use super::swp_terms::SwpTerms;
use super::{ClientError, not_asked};
use crate::guard::{Guard, GuardError};
use crate::terms::ClientCertificate;

const NOT_BUILT: &str = "this build does not have the feature `swp`";

#[derive(Debug)]
pub(super) struct SwpAgent(Infallible);

impl SwpAgent {
    pub(super) fn new(_: &Guard, _: &Interface, _: &ClientLimits, _: &SwpTerms) -> Result<Self, ClientError> {
        Err(not_asked(ErrorKind::UnsupportedOperation, NOT_BUILT))
    }

    pub(super) async fn call(&self, _: &Request, _: &CallConditions, _: Duration) -> Result<Reply, ClientError> {
        match self.0 {}
    }

    pub(super) async fn stream(&self, _: &Request, _: &CallConditions, _: Duration) -> Result<EventSource, ClientError> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct SwpEvents(Infallible);

impl SwpEvents {
    pub(crate) async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        match self.0 {}
    }

    pub(crate) fn goes_on(&self) -> bool {
        match self.0 {}
    }
}

/// The answers of a peer with SWP.
#[derive(Debug)]
#[expect(dead_code, reason = "no peer is ever asked")]
pub(crate) enum CardAnswer {
    Card { text: Bytes, etag: String },
    NotModified,
    None,
}

pub(crate) async fn ask_for_card(
    _: &Guard,
    _: &str,
    _: Option<&ClientCertificate>,
    _: Option<&str>,
    _: u64,
    _: Duration,
) -> Result<CardAnswer, GuardError> {
    Err(GuardError::Request(NOT_BUILT.to_owned()))
}
