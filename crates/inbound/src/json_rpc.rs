//! The JSON-RPC door: one address, the method in the body, every version.

use bytes::Bytes;
use chancery_core::Answer;
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Reply, Request, Sent, Shown, Version};
use chancery_wire::json::methods::{Method, method};
use chancery_wire::{Codec, Frames, json_rpc, scan};
use http::StatusCode;
use http::request::Parts;

use crate::codecs::codec;
use crate::context::{Asked, Draft, settle_tenant};
use crate::doors::Doors;
use crate::keepalive::{head_deadline, late};
use crate::response::{self, DoorResponse, JSON};
use crate::sse::{ErrorShape, EventBody};

/// A call as it was understood.
struct Understood<'a> {
    context: CallContext,
    method: Method,
    request: Request,
    id: &'a str,
}

impl Doors {
    /// Everything that waits for nobody is done outside of this flow, so that the flow stays small.
    pub(crate) async fn json_rpc(&self, head: &Parts, draft: Draft, body: &Bytes) -> DoorResponse {
        let Understood { context, method, request, id } = match self.understand(head, draft, body) {
            Ok(call) => call,
            Err(refused) => return *refused,
        };
        let deadline = head_deadline(&self.settings().limits, &request);
        let answer = self.call_until(&context, request, deadline).await;
        match answer.and_then(|answer| self.json_rpc_answer(head, &context, method, id, answer)) {
            Ok(response) => response,
            Err(error) => response::json_rpc_error(&error, method.version, id),
        }
    }

    fn understand<'a>(&self, head: &Parts, draft: Draft, body: &'a Bytes) -> Result<Understood<'a>, Box<DoorResponse>> {
        let refuse = |error: &Error, version, id| Err(Box::new(response::json_rpc_error(error, version, id)));
        let scanned = scan(body, &self.settings().json);
        let asked = match Asked::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            // A caller from another version gets the newest shape we know, with its own id where we can find it.
            Err(error) => {
                let id = scanned.ok().and_then(|text| json_rpc::open(text).ok()).map_or("null", |call| call.id);
                return refuse(&error, Version::V1_0, id);
            }
        };
        let text = match scanned {
            Ok(text) => text,
            Err(error) => return refuse(&error, asked.or_0_3(), "null"),
        };
        // What is written like most calls and can be read is not looked at more closely.
        let usual = json_rpc::usual_call(text).and_then(|call| {
            let method = method(&call.method).filter(|method| asked.agree(method.version, &call.method).is_ok())?;
            Some((method, decode(method, call.params).ok()?, call.id))
        });
        let (method, request, id) = match usual {
            Some(usual) => usual,
            None => closely(text, asked)?,
        };
        let context = draft.context(&head.headers, Binding::JsonRpc, method.version).and_then(|mut context| {
            settle_tenant(&mut context, &self.settings().signposts, &head.headers, None, request.tenant())?;
            Ok(context)
        });
        match context {
            Ok(context) => Ok(Understood { context, method, request, id }),
            Err(error) => refuse(&error, method.version, id),
        }
    }

    fn json_rpc_answer(
        &self,
        head: &Parts,
        context: &CallContext,
        method: Method,
        id: &str,
        answer: Answer,
    ) -> Result<DoorResponse, Error> {
        match answer {
            Answer::Reply(Reply::Card(_)) => {
                let card = self.extended_card(head, context)?;
                let body = json_rpc::respond(id, |out| out.extend_from_slice(&card));
                Ok(response::private(response::whole(StatusCode::OK, JSON, body)))
            }
            Answer::Reply(reply) => {
                let codec = dialect(method, reply_dialect(&reply));
                let body = json_rpc::respond(id, |out| codec.encode_reply(out, &reply));
                Ok(response::whole(StatusCode::OK, JSON, body))
            }
            Answer::Late(reply) => {
                let id: Box<str> = id.into();
                let write = move |reply: &Reply| {
                    json_rpc::respond(&id, |out| dialect(method, reply_dialect(reply)).encode_reply(out, reply))
                };
                Ok(late(*reply, JSON, &self.settings().limits, write))
            }
            Answer::Stream(subscription) => {
                let codec = dialect(method, Some(subscription.dialect()));
                let errors = ErrorShape::JsonRpc { version: method.version, id: id.into() };
                let heartbeat = self.settings().limits.stream_heartbeat();
                Ok(response::events(EventBody::new(subscription, codec, Frames::json_rpc(id), errors, heartbeat)))
            }
        }
    }
}

/// A call that is not written the usual way, or the right words for what is wrong with it.
fn closely(text: &str, asked: Asked) -> Result<(Method, Request, &str), Box<DoorResponse>> {
    let refuse = |error: &Error, version, id| Err(Box::new(response::json_rpc_error(error, version, id)));
    let call = match json_rpc::open(text) {
        Ok(call) => call,
        Err(refused) => return refuse(&refused.error, asked.or_0_3(), refused.id),
    };
    let Some(method) = method(&call.method) else {
        let error = Error::new(ErrorKind::MethodNotFound, format!("no method {:?}", shortened(&call.method)));
        return refuse(&error, asked.or_0_3(), call.id);
    };
    if let Err(error) = asked.agree(method.version, &call.method) {
        let version = if method.version == Version::V1_0 { Version::V1_0 } else { asked.or_0_3() };
        return refuse(&error, version, call.id);
    }
    match decode(method, call.params) {
        Ok(request) => Ok((method, request, call.id)),
        Err(error) => refuse(&error, method.version, call.id),
    }
}

fn decode(method: Method, params: &str) -> Result<Request, Error> {
    codec(method.version, Binding::JsonRpc).decode_request(method.operation, params)
}

/// A method that two versions share is answered in the one that made the task.
fn dialect(method: Method, task: Option<Version>) -> &'static dyn Codec {
    let version = match task {
        Some(Version::Original) if method.ambiguous => Version::Original,
        _ => method.version,
    };
    codec(version, Binding::JsonRpc)
}

fn reply_dialect(reply: &Reply) -> Option<Version> {
    match reply {
        Reply::Task(Shown { dialect, .. }) | Reply::Sent(Sent::Task(Shown { dialect, .. })) => Some(*dialect),
        _ => None,
    }
}

/// Names come from outside: a long one is not repeated whole.
fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(64).map_or(name.len(), |(at, _)| at);
    &name[..end]
}
