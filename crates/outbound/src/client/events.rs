//! The events of one open stream, over any binding.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use chancery_core::{Alarm, Unless};
use chancery_protocol::TaskEvent;
use chancery_wire::TaskNames;
use chancery_wire::tolerant::Unreadable;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::gate::CallPermit;
use super::grpc::GrpcEventStream;
use super::sse::SseEvents;
use super::swp::SwpEvents;
use super::{ClientError, Transport, WasSent};

/// One event as it was heard.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamedEvent {
    /// The names the agent gives the task; some events have none.
    pub face: Option<TaskNames>,
    /// The event.
    pub event: TaskEvent,
    /// The id to resume after, if the agent sends one. Repeats are forwarded as they arrive.
    pub id: Option<Arc<str>>,
}

/// An event of a stream that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadableEvent {
    /// Its place in the stream, from one.
    pub number: usize,
    /// What could not be read.
    pub fault: Unreadable,
}

impl std::fmt::Display for UnreadableEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {}: {}", self.number, self.fault)
    }
}

/// The events of a stream that could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedEvents {
    pub(super) count: usize,
    pub(super) first: Option<Box<UnreadableEvent>>,
}

/// Ends with `Ok(None)`. A stream that does not come to its end says so, and says it again when asked again, unless it goes on.
#[derive(Debug)]
pub struct EventStream {
    source: EventSource,
    ends_at: Option<Instant>,
    alarm: Alarm,
    skipped: SkippedEvents,
    /// Held as long as the stream is open.
    _place: CallPermit,
}

#[derive(Debug)]
pub(super) enum EventSource {
    Sse(Box<SseEvents>),
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "only the gRPC client makes it"))]
    Grpc(Box<GrpcEventStream>),
    #[cfg_attr(not(feature = "swp"), expect(dead_code, reason = "only the SWP client makes it"))]
    Swp(Box<SwpEvents>),
    /// An agent that does not stream answered at once.
    Answered(Box<StreamedEvent>),
    Ended,
    Failed(ClientError),
}

impl EventStream {
    pub(super) fn new(source: EventSource, ends_at: Option<Instant>, place: CallPermit) -> Self {
        Self { source, ends_at, alarm: Alarm::default(), skipped: SkippedEvents::default(), _place: place }
    }

    /// Waits for the next event. Nothing heard is lost when the wait is given up.
    pub async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        let heard = match self.ends_at {
            Some(ends_at) => {
                let late = || Err(ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe }));
                self.alarm.unless(ends_at, self.source.next()).await.unwrap_or_else(late)
            }
            None => self.source.next().await,
        };
        if let EventSource::Sse(events) = &self.source
            && events.skipped().count > self.skipped.count
        {
            self.skipped = events.skipped().clone();
        }
        match &heard {
            Ok(Some(_)) => {}
            Ok(None) => self.source = EventSource::Ended,
            Err(fault) if fault.is_late() || !self.goes_on() => self.source = EventSource::Failed(fault.clone()),
            Err(_) => {}
        }
        heard
    }

    /// The first event so far that could not be read and was skipped.
    pub fn unreadable(&self) -> Option<&UnreadableEvent> {
        self.skipped.first.as_deref()
    }

    /// How many events were skipped so far because they could not be read.
    pub fn skipped(&self) -> usize {
        self.skipped.count
    }

    /// Whether a stream that broke off can be taken up where it did, by asking for the next event.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(&self.source, EventSource::Swp(events) if events.goes_on())
    }
}

impl EventSource {
    async fn next(&mut self) -> Result<Option<StreamedEvent>, ClientError> {
        match self {
            Self::Sse(events) => events.next().await,
            Self::Grpc(events) => events.next().await,
            // Boxed, so that the others have no room for it.
            Self::Swp(events) => Box::pin(events.next()).await,
            Self::Answered(_) => match std::mem::replace(self, Self::Ended) {
                Self::Answered(heard) => Ok(Some(*heard)),
                _ => Ok(None),
            },
            Self::Ended => Ok(None),
            Self::Failed(fault) => Err(fault.clone()),
        }
    }
}

/// The duration of silence. It keeps counting when a wait is given up and begun again, and does not count
/// while no reader listens.
#[derive(Debug)]
pub(super) struct Silence {
    most: Duration,
    since: Option<Instant>,
    alarm: Alarm,
}

impl Silence {
    pub(super) fn new(most: Duration) -> Self {
        Self { most, since: None, alarm: Alarm::default() }
    }

    /// Waits for a sign of life.
    pub(super) fn hold<F: Future>(&mut self, sign: F) -> HoldUntil<'_, F> {
        let since = *self.since.get_or_insert_with(Instant::now);
        HoldUntil { sign: self.alarm.unless(since + self.most, sign), since: &mut self.since }
    }
}

pin_project! {
    /// Not an async function, because that would have room for the sign twice.
    pub(super) struct HoldUntil<'a, F> {
        #[pin]
        sign: Unless<'a, F>,
        since: &'a mut Option<Instant>,
    }
}

impl<F: Future> Future for HoldUntil<'_, F> {
    type Output = Result<F::Output, ClientError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let heard = ready!(this.sign.poll(context));
        Poll::Ready(match heard {
            Some(heard) => {
                **this.since = None;
                Ok(heard)
            }
            None => Err(ClientError::Transport(Transport::Cut("silent for too long".to_owned()))),
        })
    }
}
