//! The REST door: the operation is in the path, the rest is as over JSON-RPC.

use bytes::Bytes;
use chancery_core::Answer;
use chancery_protocol::{Binding, Error, ErrorKind, Reply, Version};
use chancery_wire::rest::{Found, RestCall, Verb, find};
use chancery_wire::{Frames, scan};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use crate::codecs::codec;
use crate::context::{Asked, Draft, settle_tenant};
use crate::doors::Doors;
use crate::keepalive::{head_deadline, late};
use crate::response::{self, A2A_JSON, DoorResponse, JSON};
use crate::sse::{ErrorShape, EventBody};

/// Whether a path means something to this door, so that unknown ones can be refused before their body is read.
pub(crate) fn lookup(method: &Method, path: &str) -> Result<RestCall, Box<DoorResponse>> {
    let verb = match *method {
        Method::GET => Some(Verb::Get),
        Method::POST => Some(Verb::Post),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    };
    match verb.map(|verb| find(verb, path)) {
        Some(Found::Call(call)) => Ok(call),
        Some(Found::OtherVerb) => {
            let error = Error::new(ErrorKind::MethodNotFound, format!("{method} is not possible here"));
            let mut response = response::rest_error(&error, Version::V1_0);
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            Err(Box::new(response))
        }
        Some(Found::Nothing) | None => {
            let error = Error::new(ErrorKind::MethodNotFound, "nothing is served at this path");
            Err(Box::new(response::rest_error(&error, Version::V1_0)))
        }
    }
}

impl Doors {
    pub(crate) async fn rest(&self, head: &Parts, draft: Draft, call: RestCall, body: &Bytes) -> DoorResponse {
        let version = call.version;
        let asked = match Asked::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            Err(error) => return response::rest_error(&error, Version::V1_0),
        };
        if let Err(error) = asked.agree(version, head.uri.path()) {
            return response::rest_error(&error, Version::V1_0);
        }
        match self.rest_call(head, draft, &call, body).await {
            Ok(response) => response,
            Err(error) => response::rest_error(&error, version),
        }
    }

    async fn rest_call(&self, head: &Parts, draft: Draft, call: &RestCall, body: &Bytes) -> Result<DoorResponse, Error> {
        let version = call.version;
        let mut context = draft.context(&head.headers, Binding::Rest, version)?;
        let text = scan(body, &self.settings().json)?;
        let params = call.params(head.uri.query(), text)?;
        let codec = codec(version, Binding::Rest);
        let request = codec.decode_request(call.operation, &params)?;
        settle_tenant(&mut context, &self.settings().signposts, &head.headers, call.tenant(), request.tenant())?;
        let deadline = head_deadline(&self.settings().limits, &request);
        match self.call_until(&context, request, deadline).await? {
            Answer::Reply(Reply::Card(_)) => {
                let card = self.extended_card(head, &context)?;
                Ok(response::private(response::whole(StatusCode::OK, content_type(version), card.to_vec())))
            }
            Answer::Reply(reply) => {
                let mut out = Vec::with_capacity(1024);
                codec.encode_reply(&mut out, &reply);
                Ok(response::whole(StatusCode::OK, content_type(version), out))
            }
            Answer::Late(reply) => {
                let write = move |reply: &Reply| {
                    let mut out = Vec::with_capacity(1024);
                    codec.encode_reply(&mut out, reply);
                    out
                };
                Ok(late(*reply, content_type(version), &self.settings().limits, write))
            }
            Answer::Stream(subscription) => {
                let heartbeat = self.settings().limits.stream_heartbeat();
                Ok(response::events(EventBody::new(subscription, codec, Frames::bare(), ErrorShape::Rest(version), heartbeat)))
            }
        }
    }
}

fn content_type(version: Version) -> HeaderValue {
    if version == Version::V1_0 { A2A_JSON } else { JSON }
}
