//! The JSON-RPC door: one address, the method in the body, every version.

use bytes::Bytes;
use chancery_core::Answer;
use chancery_protocol::{Binding, CallContext, Dialect, Error, ErrorKind, NamedTask, Operation, Reply, Request, Sent, Version};
use chancery_wire::json::codecs::{codec, dialect_codec};
use chancery_wire::json::methods::{Method, method};
use chancery_wire::{Codec, Frames, json_rpc, scan};
use http::StatusCode;
use http::request::Parts;

use crate::context::{CallHead, Draft, NamedTenants, RequestedVersion};
use crate::doors::Doors;
use crate::keepalive::{head_deadline, late};
use crate::paging;
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
    /// All work that does not wait is done outside of this flow, so that the flow stays small.
    pub(crate) async fn json_rpc(&self, head: &Parts, draft: Draft, body: &Bytes) -> DoorResponse {
        let Understood { context, method, request, id } = match self.understand(head, draft, body) {
            Ok(call) => call,
            Err(refused) => return *refused,
        };
        let deadline = head_deadline(&self.settings().limits, &request);
        let awaited = self.refused_names().awaited(&request);
        let answer = self.call_until(&context, request, deadline).await;
        if let (Err(error), Some(name)) = (&answer, awaited) {
            self.refused_names().announce(&context, name, error);
        }
        let answered = match answer {
            Ok(Answer::Page(page)) => {
                let (mut before, mut after) = (Vec::with_capacity(1024), Vec::new());
                json_rpc::begin(&mut before, id);
                json_rpc::end(&mut after);
                let codec = answering(&context, method, None);
                Ok(Box::pin(paging::answer(page, codec, JSON, before, after)).await)
            }
            answer => answer.and_then(|answer| self.json_rpc_answer(head, &context, method, id, answer)),
        };
        match answered {
            Ok(response) => response,
            Err(error) => refusal(&error, method, id),
        }
    }

    fn understand<'a>(&self, head: &Parts, draft: Draft, body: &'a Bytes) -> Result<Understood<'a>, Box<DoorResponse>> {
        let refuse = |error: &Error, version, id| Err(Box::new(response::json_rpc_error(error, version, id)));
        let scanned = scan(body, &self.settings().json);
        let id_bytes = self.settings().limits.json_rpc_id_bytes;
        let asked = match RequestedVersion::of(&head.headers, head.uri.query()) {
            Ok(asked) => asked,
            // A caller from another version gets the newest shape we know, with its own id where we can find it.
            Err(error) => {
                let id = scanned.ok().and_then(|text| json_rpc::open(text, id_bytes).ok()).map_or("null", |call| call.id);
                return refuse(&error, Version::V1_0, id);
            }
        };
        let text = match scanned {
            Ok(text) => text,
            Err(error) => return refuse(&error, asked.or_0_3(), "null"),
        };
        // What is written like most calls and can be read is not looked at more closely.
        let usual = json_rpc::usual_call(text, id_bytes).and_then(|call| {
            let method = method(&call.method).filter(|method| asked.agree(method.version, &call.method).is_ok())?;
            Some((method, (decode(method, call.params).ok()?, false), call.id))
        });
        let (method, (request, wrapped), id) = match usual {
            Some(usual) => usual,
            None => closely(text, asked, id_bytes)?,
        };
        let context = CallHead::read(&head.headers).and_then(|head| {
            let named = NamedTenants { in_path: None, in_body: request.tenant() };
            draft.context(head, named, &self.settings().signposts, Binding::JsonRpc, method.version)
        });
        match context.map(|context| CallContext { wrapped, ..context }) {
            Ok(context) => Ok(Understood { context, method, request, id }),
            Err(error) => Err(Box::new(refusal(&error, method, id))),
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
                let codec = answering(context, method, reply_dialect(&reply));
                let body = json_rpc::respond(id, |out| codec.encode_reply(out, &reply));
                Ok(response::whole(StatusCode::OK, JSON, body))
            }
            Answer::Large(reply, permit) => {
                let codec = answering(context, method, reply_dialect(&reply));
                let buffer = response::buffer_for(&permit);
                let body = json_rpc::respond_in(buffer, id, |out| codec.encode_reply(out, &reply));
                Ok(response::large(JSON, body, permit))
            }
            Answer::Page(_) => Err(Error::new(ErrorKind::Internal, "the answer is a page, and this operation has no pages")),
            Answer::Late(reply) => {
                // Only sends are answered late, and those say their dialect themselves.
                let (id, codec): (Box<str>, _) = (id.into(), answering(context, method, None));
                let write = move |reply: &Reply| json_rpc::respond(&id, |out| codec.encode_reply(out, reply));
                Ok(late(*reply, JSON, &self.settings().limits, write))
            }
            Answer::Stream(subscription) => {
                let codec = answering(context, method, Some(subscription.dialect()));
                let errors = ErrorShape::JsonRpc { version: method.version, id: id.into() };
                Ok(response::events(EventBody::new(subscription, codec, Frames::json_rpc(id), errors, self)))
            }
        }
    }
}

/// The method of a call, its request, whether that is in the wrapped dialect, and its id.
type ReadCall<'a> = (Method, (Request, bool), &'a str);

/// A call that is not written the usual way, or the right words for what is wrong with it.
fn closely(text: &str, asked: RequestedVersion, id_bytes: usize) -> Result<ReadCall<'_>, Box<DoorResponse>> {
    let refuse = |error: &Error, version, id| Err(Box::new(response::json_rpc_error(error, version, id)));
    let call = match json_rpc::open(text, id_bytes) {
        Ok(call) => call,
        Err(refused) => return refuse(&refused.error, asked.or_0_3(), refused.id),
    };
    let Some(method) = method(&call.method) else {
        let message =
            format!("no version of A2A has a method {:?}; 1.0 has SendMessage, 0.3 message/send", shortened(&call.method));
        let error = Error::new(ErrorKind::MethodNotFound, message);
        return refuse(&error, asked.or_0_3(), call.id);
    };
    if let Err(error) = asked.agree(method.version, &call.method) {
        let version = if method.version == Version::V1_0 { Version::V1_0 } else { asked.or_0_3() };
        return refuse(&error, version, call.id);
    }
    match decode(method, call.params).map(|request| (request, false)).or_else(|error| wrapped(method, call.params, error)) {
        Ok(request) => Ok((method, request, call.id)),
        Err(error) => Err(Box::new(refusal(&error, method, call.id))),
    }
}

/// The answer to a call of a known method that is refused.
///
/// Clients of 0.3 and of the original protocol read the answer to a streaming call as events only. So they
/// get the refusal as the only event of a successful answer. Only missing credentials also change the HTTP
/// status.
fn refusal(error: &Error, method: Method, id: &str) -> DoorResponse {
    let status = if error.kind == ErrorKind::Unauthenticated { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    match reads_events_only(method) {
        true => response::refused_stream(error, method.version, id, status),
        false => response::json_rpc_error(error, method.version, id),
    }
}

/// Whether the callers of a method look for its answer, a refusal too, among events.
pub(crate) fn reads_events_only(method: Method) -> bool {
    method.operation.streams() && method.version != Version::V1_0
}

/// A message of 0.3 whose parts have no `kind`, and the mark that its answer is written in the same dialect. What is not that
/// either keeps the fault that 0.3 found.
fn wrapped(method: Method, params: &str, fault: Error) -> Result<(Request, bool), Error> {
    let is_message = matches!(method.operation, Operation::SendMessage | Operation::StreamMessage);
    if method.version != Version::V0_3 || !is_message {
        return Err(fault);
    }
    dialect_codec(Dialect::Wrapped0_3).decode_request(method.operation, params).map(|request| (request, true)).map_err(|_| fault)
}

fn decode(method: Method, params: &str) -> Result<Request, Error> {
    codec(method.version, Binding::JsonRpc).decode_request(method.operation, params)
}

/// Which codec writes an answer: the call's own dialect, or that of the task for a method that says nothing of its dialect.
fn answering(context: &CallContext, method: Method, task: Option<Dialect>) -> &'static dyn Codec {
    match task {
        Some(dialect) if method.ambiguous && dialect.version() != Version::V1_0 => dialect_codec(dialect),
        _ => dialect_codec(context.dialect()),
    }
}

fn reply_dialect(reply: &Reply) -> Option<Dialect> {
    match reply {
        Reply::Task(NamedTask { dialect, .. }) | Reply::Sent(Sent::Task(NamedTask { dialect, .. })) => Some(*dialect),
        _ => None,
    }
}

/// Names come from outside: a long one is not repeated whole.
fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(64).map_or(name.len(), |(at, _)| at);
    &name[..end]
}
