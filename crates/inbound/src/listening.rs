//! Streams of the original protocol over GET: a client listens to a task by the name it will give it, then sends it.
//!
//! `GET /tasks/sendSubscribe?id=NAME` and `GET /tasks/resubscribe?id=NAME`, as the ADR's own clients call them. Events
//! are bare frames, from the task's beginning or from `Last-Event-ID` on.

use std::time::Duration;

use bytes::Bytes;
use chancery_core::{Answer, Chancery, Next, Subscription};
use chancery_protocol::{Binding, CallContext, Error, ErrorKind, Request, SubscribeToTask, TaskId, Version};
use chancery_wire::{Face, Frames, errors};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::codecs::codec;
use crate::context::{Draft, settle_tenant};
use crate::doors::Doors;
use crate::response::{self, DoorResponse};
use crate::sse::{EventBody, face, farewell};

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
        let mut context = match draft.context(&without_cursor(&head.headers), Binding::JsonRpc, Version::Original) {
            Ok(context) => context,
            Err(error) => return response::rest_error(&error, Version::Original),
        };
        if let Err(error) = settle_tenant(&mut context, &self.settings().signposts, &head.headers, None, None) {
            return response::rest_error(&error, Version::Original);
        }
        // These clients send a time as their cursor, which says nothing about our log: they get it from the start.
        let cursor =
            head.headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(|value| value.trim().parse().ok());
        context.last_event_id = Some(cursor.unwrap_or(0));
        let limits = &self.settings().limits;
        let listener =
            Listener { chancery: self.chancery().clone(), context, id: id.into(), heartbeat: limits.stream_heartbeat() };
        let patience = Duration::from_millis(limits.listen_ms);
        response::events(EventBody::of(listener.frames(patience)))
    }
}

fn without_cursor(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove("last-event-id");
    headers
}

struct Listener {
    chancery: Chancery,
    context: CallContext,
    id: TaskId,
    heartbeat: Duration,
}

enum Stage {
    Waiting(Box<Listener>),
    Reading(Box<Subscription>, Duration),
}

impl Listener {
    fn frames(self, patience: Duration) -> impl futures::Stream<Item = Bytes> + Send + 'static {
        futures::stream::unfold(Some(Stage::Waiting(Box::new(self))), move |stage| async move {
            match stage? {
                // The head of the response goes out before the task exists.
                Stage::Waiting(listener) => {
                    let heartbeat = listener.heartbeat;
                    match tokio::time::timeout(patience, listener.subscribe()).await {
                        Ok(Ok(subscription)) => {
                            Some((Bytes::from_static(b": listening\n\n"), Some(Stage::Reading(subscription, heartbeat))))
                        }
                        Ok(Err(error)) => Some((failure(&error), None)),
                        Err(_) => Some((failure(&Error::task_not_found()), None)),
                    }
                }
                Stage::Reading(mut subscription, heartbeat) => {
                    let (bytes, more) = read(&mut subscription, heartbeat).await?;
                    Some((bytes, more.then_some(Stage::Reading(subscription, heartbeat))))
                }
            }
        })
    }

    /// Subscribes as soon as there is a task of this name.
    async fn subscribe(&self) -> Result<Box<Subscription>, Error> {
        let mut named = self.chancery.tasks_named();
        let stopping = self.chancery.shutdown_token();
        loop {
            let request = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: self.id.clone() });
            match self.chancery.call(&self.context, request).await {
                Ok(Answer::Stream(subscription)) => return Ok(subscription),
                Ok(Answer::Reply(_) | Answer::Late(_)) => {
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
                // Asked once more, the service says so.
                () = stopping.cancelled() => {}
            }
        }
    }
}

/// What comes next, and whether there will be more.
async fn read(subscription: &mut Subscription, heartbeat: Duration) -> Option<(Bytes, bool)> {
    let mut frames = Frames::bare();
    let Ok(next) = tokio::time::timeout(heartbeat, subscription.next()).await else {
        frames.comment("still here");
        return Some((frames.take().into(), true));
    };
    match next {
        Ok(Next::Events(entries)) => {
            let face = Face { artifacts: subscription.artifacts(), ..face(subscription) };
            for entry in entries {
                frames.set_event_id(entry.seq);
                codec(Version::Original, Binding::JsonRpc).encode_event(&mut frames, &face, &entry.event);
            }
            Some((frames.take().into(), true))
        }
        Ok(Next::ShuttingDown) => {
            frames.comment(&farewell(subscription));
            Some((frames.take().into(), false))
        }
        Ok(Next::Done) => None,
        Err(error) => Some((failure(&error), false)),
    }
}

fn failure(error: &Error) -> Bytes {
    let mut frames = Frames::bare();
    frames.error(&errors::rest(error, Version::Original));
    frames.take().into()
}
