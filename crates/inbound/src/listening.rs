//! Streams of the original protocol over GET: a client listens to a task by the name it will give it, then sends it.
//!
//! `GET /tasks/sendSubscribe?id=NAME` and `GET /tasks/resubscribe?id=NAME`, as the ADR's own clients call them. Events
//! are bare frames, from the task's beginning or from `Last-Event-ID` on.

use std::time::Duration;

use bytes::Bytes;
use chancery_core::{Answer, Subscription};
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Request, SubscribeToTask, TaskId, Version};
use chancery_wire::json::codecs::codec;
use chancery_wire::{Frames, errors};
use futures::{FutureExt as _, StreamExt as _};
use http::Method;
use http::request::Parts;

use crate::context::{CallHead, Draft, NamedTenants};
use crate::doors::Doors;
use crate::response::{self, DoorResponse};
use crate::sse::{ErrorShape, EventBody};

/// Whether a request is for this door. With a version header the same path is a 1.0 task of that name.
pub(crate) fn is_listening(head: &Parts, path: &str) -> bool {
    head.method == Method::GET
        && matches!(path, "/tasks/sendSubscribe" | "/tasks/resubscribe")
        && !head.headers.contains_key("a2a-version")
}

impl Doors {
    pub(crate) fn listening(&self, head: &Parts, draft: Draft) -> DoorResponse {
        let id = head.uri.query().and_then(|query| chancery_wire::rest::query_value(query, "id"));
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return response::rest_error(&Error::invalid_field("id", "is required in the query"), Version::Original);
        };
        // These clients send a time as their cursor, which says nothing about our log: they get it from the start.
        let cursor =
            head.headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(|value| value.trim().parse().ok());
        let context = CallHead::without_cursor(&head.headers).and_then(|head| {
            let head = CallHead { last_event_id: Some(cursor.unwrap_or(0)), ..head };
            let signposts = &self.settings().signposts;
            draft.context(head, NamedTenants::default(), signposts, Binding::JsonRpc, Version::Original)
        });
        let context = match context {
            Ok(context) => context,
            Err(error) => return response::rest_error(&error, Version::Original),
        };
        let patience = Duration::from_millis(self.settings().limits.listen_ms);
        let listener = Listener { doors: self.clone(), context, id: id.into() };
        response::events(EventBody::of(listener.frames(patience)))
    }
}

struct Listener {
    doors: Doors,
    context: CallContext,
    id: TaskId,
}

impl Listener {
    /// The head of the response goes out before the task exists.
    fn frames(self, patience: Duration) -> impl futures::Stream<Item = Bytes> + Send + 'static {
        let first = |bytes| futures::stream::once(std::future::ready(bytes));
        let subscribed = async move {
            let subscribed = tokio::time::timeout(patience, self.subscribe()).await;
            match subscribed.unwrap_or_else(|_| Err(Error::task_not_found())) {
                Ok(subscription) => {
                    let (codec, errors) = (codec(Version::Original, Binding::JsonRpc), ErrorShape::Rest(Version::Original));
                    let events = EventBody::new(subscription, codec, Frames::bare(), errors, &self.doors);
                    first(Bytes::from_static(b": listening\n\n")).chain(events.into_pieces()).left_stream()
                }
                Err(error) => first(failure(&error)).right_stream(),
            }
        };
        subscribed.into_stream().flatten()
    }

    /// Subscribes as soon as there is a task of this name. The refusal of the send that would have made it is the answer too.
    async fn subscribe(&self) -> Result<Box<Subscription>, Error> {
        let mut refusals = self.doors.refused_names().listen();
        let mut named = self.doors.chancery().tasks_named();
        let stopping = self.doors.chancery().shutdown_token();
        loop {
            let request = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: self.id.clone() });
            match self.doors.call_until(&self.context, request, None).await {
                Ok(Answer::Stream(subscription)) => return Ok(subscription),
                Ok(_) => {
                    return Err(Error::new(ErrorKind::Internal, "one reply was answered where a stream was asked for"));
                }
                Err(error) if error.kind == ErrorKind::TaskNotFound => {}
                Err(error) => return Err(error),
            }
            tokio::select! {
                changed = named.changed() => {
                    if changed.is_err() {
                        return Err(Error::task_not_found());
                    }
                }
                refusal = refusals.of(&self.context.caller, self.id.as_str()) => return Err(refusal),
                // Asked once more, the service says so.
                () = stopping.cancelled() => {}
            }
        }
    }
}

fn failure(error: &Error) -> Bytes {
    let mut frames = Frames::bare();
    frames.error(&errors::rest(error, Version::Original));
    frames.take().into()
}
