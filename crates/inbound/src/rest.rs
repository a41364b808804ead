//! The REST door: the operation is in the path, the rest is as over JSON-RPC.

use bytes::Bytes;
use chancery_core::Answer;
use chancery_protocol::raw_json::pick;
use chancery_protocol::{Binding, Error, ErrorKind, Operation, Reply, Version};
use chancery_wire::json::codecs::codec;
use chancery_wire::rest::{Found, RestCall, Verb, find};
use chancery_wire::{Frames, JsonLimits, scan};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use crate::context::{CallHead, Draft, NamedTenants, RequestedVersion};
use crate::doors::Doors;
use crate::keepalive::{head_deadline, late};
use crate::paging;
use crate::response::{self, A2A_JSON, DoorResponse, JSON};
use crate::sse::{ErrorShape, EventBody};

const NO_SUCH_PATH: &str =
    "nothing is served at this path; the card at /.well-known/agent-card.json lists the addresses of this node";

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
            let error = Error::new(ErrorKind::MethodNotFound, NO_SUCH_PATH);
            Err(Box::new(response::rest_error(&error, Version::V1_0)))
        }
    }
}

impl Doors {
    pub(crate) async fn rest(&self, head: &Parts, draft: Draft, call: RestCall, body: &Bytes) -> DoorResponse {
        if is_json_rpc(&call, body, &self.settings().json) {
            return Box::pin(self.json_rpc(head, draft, body)).await;
        }
        let version = call.version;
        let asked = match RequestedVersion::of(&head.headers, head.uri.query()) {
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
        let call_head = CallHead::read(&head.headers)?;
        let text = scan(body, &self.settings().json)?;
        let params = call.params(head.uri.query(), text)?;
        let codec = codec(version, Binding::Rest);
        let request = codec.decode_request(call.operation, &params)?;
        let named = NamedTenants { in_path: call.tenant(), in_body: request.tenant() };
        let context = draft.context(call_head, named, &self.settings().signposts, Binding::Rest, version)?;
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
            Answer::Large(reply, permit) => {
                let mut out = response::buffer_for(&permit);
                codec.encode_reply(&mut out, &reply);
                Ok(response::large(content_type(version), out, permit))
            }
            Answer::Page(page) => {
                Ok(Box::pin(paging::answer(page, codec, content_type(version), Vec::with_capacity(1024), Vec::new())).await)
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
                Ok(response::events(EventBody::new(subscription, codec, Frames::bare(), ErrorShape::Rest(version), self)))
            }
        }
    }
}

/// Whether the body of a sent message is a whole JSON-RPC call: some frameworks' clients post those to the paths of REST. It says
/// itself what it asks for, and no version of the protocol has these members in a REST body. A path with a tenant is REST alone.
fn is_json_rpc(call: &RestCall, body: &Bytes, json: &JsonLimits) -> bool {
    let sends = matches!(call.operation, Operation::SendMessage | Operation::StreamMessage) && call.tenant().is_none();
    let may_be = || std::str::from_utf8(body).is_ok_and(|text| text.contains("\"jsonrpc\""));
    let is_call = |text: &str| pick(text, ["jsonrpc", "method", "params"]).iter().all(Option::is_some);
    sends && may_be() && scan(body, json).is_ok_and(is_call)
}

fn content_type(version: Version) -> HeaderValue {
    if version == Version::V1_0 { A2A_JSON } else { JSON }
}
