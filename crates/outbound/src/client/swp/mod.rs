//! Agents over SWP's A2A profile: a message is a task, and its events and result are the stream. Nothing else can be asked there.

mod card;
mod events;
mod line;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chancery_core::task_state;
use chancery_protocol::{Error, ErrorKind, NamedTask, Reply, Request, SendMessage, Sent as Reached, TaskEvent, Version};
use chancery_wire::swp::codec::obs::{self, TraceContext};
use chancery_wire::swp::codec::{Envelope, Extensions, Profile, SwpLimits, a2a};
use chancery_wire::swp::{ReportReader, write_task};
use url::Url;
use uuid::Uuid;

use super::conditions::CallConditions;
use super::events::EventSource;
use super::interface::Interface;
use super::limits::ClientLimits;
use super::swp_terms::SwpTerms;
use super::{ClientError, Transport, WasSent};
use crate::guard::{Guard, SlimWay};

pub(crate) use self::card::{CardAnswer, ask_for_card};
pub(super) use self::events::SwpEvents;
pub(crate) use self::line::{OpenSwpLine, SwpLinePool};

/// The kind of a task whose sender names no skill, at a peer that lists none.
const SOME_KIND: &str = "message";

#[derive(Debug)]
pub(super) struct SwpAgent {
    lines: Arc<SwpLinePool>,
    /// What stands before every kind: the path of the address.
    prefix: String,
    speaks_a2a: bool,
    skill: Option<String>,
    limits: ClientLimits,
}

/// A task that is ready to be sent, again and again if need be: it is the same task each time.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) task_id: Bytes,
    pub(super) frames: Bytes,
    /// How many there are, as those count who limit them.
    pub(super) count: u32,
    /// A message that goes on with a task would be said twice.
    pub(super) may_repeat: bool,
}

impl SwpAgent {
    pub(super) fn new(
        guard: &Guard,
        interface: &Interface,
        limits: &ClientLimits,
        terms: &SwpTerms,
    ) -> Result<Self, ClientError> {
        let way = SlimWay::new(guard, &interface.url, terms.certificate.as_ref())?;
        Ok(Self {
            lines: Arc::new(SwpLinePool::new(way, limits)),
            prefix: prefix(&interface.url),
            speaks_a2a: terms.speaks_a2a,
            skill: terms.skill.clone(),
            limits: limits.clone(),
        })
    }

    /// Sends a message and listens. Only what the agent says shows whether it takes it.
    pub(super) async fn stream(
        &self,
        request: &Request,
        conditions: &CallConditions,
        left: Duration,
    ) -> Result<EventSource, ClientError> {
        let Request::StreamMessage(send) = request else { return Err(no_word(request)) };
        self.open(send, conditions, left).await.map(|events| EventSource::Swp(Box::new(events)))
    }

    async fn open(&self, send: &SendMessage, conditions: &CallConditions, left: Duration) -> Result<SwpEvents, ClientError> {
        let id = Uuid::now_v7();
        let ready = self.ready(send, conditions, id)?;
        let reader = ReportReader::new(&id.simple().to_string(), self.limits.json());
        let late = || ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe });
        let opened = SwpEvents::open(Arc::clone(&self.lines), ready, reader, self.speaks_a2a, &self.limits);
        tokio::time::timeout(left, opened).await.map_err(|_| late())?
    }

    /// Sends a message and waits for all that comes of it.
    pub(super) async fn call(
        &self,
        request: &Request,
        conditions: &CallConditions,
        left: Duration,
    ) -> Result<Reply, ClientError> {
        let Request::SendMessage(send) = request else { return Err(no_word(request)) };
        let answer = async {
            let mut events = self.open(send, conditions, left).await?;
            let mut task = None;
            while let Some(heard) = events.next().await? {
                match (&mut task, heard.event) {
                    (_, TaskEvent::Replied(message)) => return Ok(Reply::Sent(Reached::Message(message))),
                    (task, TaskEvent::Created(picture)) => *task = Some(chancery_protocol::Task::clone(&picture)),
                    (Some(task), event) => task_state::apply(task, &event),
                    (None, _) => return Err(ClientError::not_understood("it never showed the task".to_owned())),
                }
            }
            let task = task.ok_or_else(|| ClientError::not_understood("it never showed the task".to_owned()))?;
            Ok(Reply::Sent(Reached::Task(NamedTask {
                task: Arc::new(task),
                dialect: Version::V1_0.into(),
                client_task_id: None,
            })))
        };
        let late = ClientError::Transport(Transport::OutOfTime { sent: WasSent::Maybe });
        tokio::time::timeout(left, answer).await.unwrap_or(Err(late))
    }

    /// The frames of a task: its trace, where the peer knows what that is, and the task itself.
    fn ready(&self, send: &SendMessage, conditions: &CallConditions, id: Uuid) -> Result<Ready, ClientError> {
        let task_id = Bytes::copy_from_slice(id.as_bytes());
        let (task, mut given) =
            write_task(send, task_id.clone(), self.kind(send), self.speaks_a2a).map_err(ClientError::NotAsked)?;
        // Where the message has the token in its metadata, the conditions have none.
        given.hop_token.clone_from(&conditions.hop_token);
        let limits = SwpLimits { max_frame_bytes: u32::MAX, max_payload_bytes: u32::MAX, ..SwpLimits::default() };
        let mut frames = BytesMut::new();
        let mut write = |profile, msg_type, payload, extensions: Extensions| {
            let id = Uuid::now_v7();
            // Such an id begins with the time it was made at, in milliseconds.
            let ts_unix_ms = id.as_u64_pair().0 >> 16;
            let msg_id = Bytes::copy_from_slice(id.as_bytes());
            let envelope = Envelope { extensions, ..Envelope::new(profile, msg_type, msg_id, ts_unix_ms, payload) };
            let frame = envelope.encode(&limits);
            frame.map(|frame| frames.extend_from_slice(&frame)).map_err(|reject| {
                ClientError::NotAsked(Error::new(ErrorKind::TooLarge, format!("it does not fit into a frame: {reject}")))
            })
        };
        let mut count = 1;
        if self.speaks_a2a {
            let trace = obs::ObsMessage::Set(TraceContext {
                traceparent: conditions.traceparent(),
                tracestate: conditions.tracestate.as_deref().unwrap_or_default().to_owned(),
                task_id: task_id.clone(),
                ..TraceContext::default()
            });
            write(Profile::Obs, trace.msg_type(), trace.to_payload(), Extensions::default())?;
            count += 1;
        }
        let task = a2a::A2aMessage::Task(task);
        write(Profile::A2a, task.msg_type(), task.to_payload(), given.to_extensions())?;
        Ok(Ready { task_id, frames: frames.freeze(), count, may_repeat: send.message.task_id.is_none() })
    }

    /// The skill the message names, or the agent alone, or the first skill it lists.
    fn kind(&self, send: &SendMessage) -> String {
        let join = |skill: &str| if self.prefix.is_empty() { skill.to_owned() } else { format!("{}/{skill}", self.prefix) };
        match (send.skill(), &self.skill) {
            (Some(skill), _) => join(&skill),
            (None, _) if self.speaks_a2a && !self.prefix.is_empty() => self.prefix.clone(),
            (None, Some(skill)) => join(skill),
            (None, None) => join(SOME_KIND),
        }
    }
}

/// The path of an address, without the slashes around it.
pub(crate) fn prefix(url: &str) -> String {
    Url::parse(url).map(|url| url.path().trim_matches('/').to_owned()).unwrap_or_default()
}

fn no_word(request: &Request) -> ClientError {
    let message = format!("SWP's A2A profile has no word for {:?}", request.operation());
    ClientError::NotAsked(Error::new(ErrorKind::UnsupportedOperation, message))
}
