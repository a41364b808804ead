//! The JSON-RPC door: one address, the method in the body, every version.

use bytes::Bytes;
use chancery_core::Answer;
use chancery_protocol::{Binding, Error, ErrorKind, Reply, Request, Sent, Shown, Version};
use chancery_wire::json::methods::{Method, method};
use chancery_wire::{Codec, Frames, json_rpc, scan};
use http::StatusCode;
use http::request::Parts;

use crate::codecs::codec;
use crate::context::{Asked, Draft, settle_tenant};
use crate::doors::Doors;
use crate::response::{self, DoorResponse, JSON};
use crate::sse::{ErrorShape, EventBody};

impl Doors {
    pub(crate) async fn json_rpc(&self, head: &Parts, draft: Draft, body: &Bytes) -> DoorResponse {
        let asked = match Asked::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            // A caller from another version gets the newest shape we know, with its own id where we can find it.
            Err(error) => {
                let id = scan(body, &self.settings().json)
                    .ok()
                    .and_then(|text| json_rpc::open(text).ok())
                    .map_or("null", |call| call.id);
                return response::json_rpc_error(&error, Version::V1_0, id);
            }
        };
        let text = match scan(body, &self.settings().json) {
            Ok(text) => text,
            Err(error) => return response::json_rpc_error(&error, asked.or_0_3(), "null"),
        };
        // What is written like most calls and can be read is not looked at more closely.
        if let Some(call) = json_rpc::usual_call(text)
            && let Some(method) = method(&call.method).filter(|method| asked.agree(method.version, &call.method).is_ok())
            && let Ok(request) = decode(method, call.params)
        {
            return self.json_rpc_call(head, draft, method, request, call.id).await;
        }
        let call = match json_rpc::open(text) {
            Ok(call) => call,
            Err(refused) => return response::json_rpc_error(&refused.error, asked.or_0_3(), refused.id),
        };
        let Some(method) = method(&call.method) else {
            let error = Error::new(ErrorKind::MethodNotFound, format!("no method {:?}", shortened(&call.method)));
            return response::json_rpc_error(&error, asked.or_0_3(), call.id);
        };
        if let Err(error) = asked.agree(method.version, &call.method) {
            let version = if method.version == Version::V1_0 { Version::V1_0 } else { asked.or_0_3() };
            return response::json_rpc_error(&error, version, call.id);
        }
        match decode(method, call.params) {
            Ok(request) => Box::pin(self.json_rpc_call(head, draft, method, request, call.id)).await,
            Err(error) => response::json_rpc_error(&error, method.version, call.id),
        }
    }

    async fn json_rpc_call(&self, head: &Parts, draft: Draft, method: Method, request: Request, id: &str) -> DoorResponse {
        match self.json_rpc_answer(head, draft, method, request, id).await {
            Ok(response) => response,
            Err(error) => response::json_rpc_error(&error, method.version, id),
        }
    }

    async fn json_rpc_answer(
        &self,
        head: &Parts,
        draft: Draft,
        method: Method,
        request: Request,
        id: &str,
    ) -> Result<DoorResponse, Error> {
        let mut context = draft.context(&head.headers, Binding::JsonRpc, method.version)?;
        settle_tenant(&mut context, &self.settings().signposts, &head.headers, None, request.tenant())?;
        match self.call(&context, request).await? {
            Answer::Reply(Reply::Card(_)) => {
                let card = self.extended_card(head, &context)?;
                let body = json_rpc::respond(id, |out| out.extend_from_slice(&card));
                Ok(response::private(response::whole(StatusCode::OK, JSON, body)))
            }
            Answer::Reply(reply) => {
                let codec = dialect(method, reply_dialect(&reply));
                let body = json_rpc::respond(id, |out| codec.encode_reply(out, &reply));
                Ok(response::whole(StatusCode::OK, JSON, body))
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
