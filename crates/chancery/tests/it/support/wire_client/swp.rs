//! The SWP client of the tests: a connection for every task, and whole messages of A2A in its frames.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use chancery_core::task_state;
use chancery_protocol::{NamedTask, Reply, Request, SendMessage, Sent, Task, TaskEvent, Version};
use chancery_wire::JsonLimits;
use chancery_wire::swp::codec::{Envelope, FramePayload, Profile, Reader, SwpLimits, Timestamps, a2a};
use chancery_wire::swp::{BINDING, ReportFault, ReportReader, write_task};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::events::{EventStream, Seen};
use super::refusal::Refusal;
use super::{Conditions, http};

#[derive(Clone)]
pub(super) struct SwpClient {
    url: String,
    /// What the profile has no word for is asked over JSON-RPC, so that a story can look at what SWP has made.
    beside: http::HttpClient,
}

/// The reports on one task.
pub(crate) struct SwpStream {
    line: TcpStream,
    reader: Reader,
    report_reader: ReportReader,
    waiting: VecDeque<Seen>,
    ended: bool,
}

/// Where a node's card says it is reached over SWP: host and port, and what stands before every kind.
pub(crate) async fn address(url: &str) -> (String, String) {
    let card = reqwest::Client::new().get(format!("{url}/.well-known/agent-card.json")).header("A2A-Version", "1.0");
    let card: Value = card.send().await.expect("the server answers").json().await.expect("with a card");
    let listed = card["supportedInterfaces"].as_array().expect("interfaces");
    let slim = listed.iter().find(|one| one["protocolBinding"] == BINDING).unwrap_or_else(|| panic!("no SWP in {card}"));
    let place = slim["url"].as_str().and_then(|url| url.strip_prefix("swp://")).expect("an SWP address");
    let (authority, prefix) = place.split_once('/').expect("the agent's name");
    (authority.to_owned(), prefix.to_owned())
}

impl SwpClient {
    pub(super) fn new(url: &str, beside: http::HttpClient) -> Self {
        Self { url: url.to_owned(), beside }
    }

    pub(super) async fn call(&self, request: &Request, conditions: &Conditions) -> Result<Reply, Refusal> {
        let Request::SendMessage(send) = request else { return self.beside.call(request, conditions).await };
        let mut stream = self.open(send, conditions).await?;
        let mut task: Option<Task> = None;
        while let Some(seen) = stream.next().await? {
            match (&mut task, seen.event) {
                (_, TaskEvent::Replied(message)) => return Ok(Reply::Sent(Sent::Message(message))),
                (task, TaskEvent::Created(picture)) => *task = Some(Task::clone(&picture)),
                (Some(task), event) => task_state::apply(task, &event),
                (None, event) => panic!("{event:?} of a task that was never shown"),
            }
            if send.configuration.return_immediately {
                break;
            }
        }
        let task = task.expect("a task was shown").into();
        Ok(Reply::Sent(Sent::Task(NamedTask { task, dialect: Version::V1_0.into(), client_task_id: None })))
    }

    pub(super) async fn stream(&self, request: &Request, conditions: &Conditions) -> Result<EventStream, Refusal> {
        match request {
            Request::StreamMessage(send) => self.open(send, conditions).await.map(|stream| EventStream::Swp(Box::new(stream))),
            _ => self.beside.stream(request, conditions).await,
        }
    }

    pub(super) async fn call_nothing(&self) -> Refusal {
        self.beside.call_nothing().await
    }

    /// Sends the task and waits for the first word on it, which may be a refusal. A caller's own key is the task's id.
    async fn open(&self, send: &SendMessage, conditions: &Conditions) -> Result<SwpStream, Refusal> {
        let (authority, prefix) = address(&self.url).await;
        let key = conditions.idempotency_key.clone();
        let task_id = key.unwrap_or_else(|| format!("task of {}", send.message.message_id));
        let (task, given) = write_task(send, Bytes::from(task_id.clone()), prefix, true).expect("can be said");
        let message = a2a::A2aMessage::Task(task);
        let msg_id = Bytes::copy_from_slice(&rand_id());
        let mut envelope = Envelope::new(Profile::A2a, message.msg_type(), msg_id, 0, message.to_payload());
        envelope.extensions = given.to_extensions();
        let frame = envelope.encode(&SwpLimits::default()).expect("fits");
        let mut line = TcpStream::connect(authority).await.expect("the node listens");
        line.write_all(&frame).await.expect("it takes the task");
        let answers = SwpLimits { duplicate_window_ms: 0, max_frames_per_window: u32::MAX, ..SwpLimits::default() };
        let report_reader = ReportReader::new(&task_id, JsonLimits::default());
        let mut stream = SwpStream { line, reader: Reader::new(answers), report_reader, waiting: VecDeque::new(), ended: false };
        stream.fill().await?;
        Ok(stream)
    }
}

impl SwpStream {
    pub(super) async fn next(&mut self) -> Result<Option<Seen>, Refusal> {
        self.fill().await?;
        Ok(self.waiting.pop_front())
    }

    async fn fill(&mut self) -> Result<(), Refusal> {
        while self.waiting.is_empty() && !self.ended {
            let Some(body) = self.reader.next_frame().expect("frames") else {
                let mut more = BytesMut::with_capacity(4096);
                let read = self.line.read_buf(&mut more).await.expect("the line holds");
                assert!(read > 0, "the line was closed before the result");
                self.reader.push(&more);
                continue;
            };
            let received = self.reader.read(body, Timestamps::Ignored, 0).expect("a frame that can be read");
            let extensions = &received.envelope.extensions;
            let heard = match received.payload {
                // It is still there.
                FramePayload::A2a(a2a::A2aMessage::Handshake(_)) => continue,
                FramePayload::A2a(a2a::A2aMessage::Event(event)) => self.report_reader.event(event, extensions),
                FramePayload::A2a(a2a::A2aMessage::Result(result)) => {
                    self.ended = true;
                    let reason = result.error_message.clone();
                    match self.report_reader.result(result, extensions) {
                        Err(ReportFault::Refused(_)) => return Err(Refusal::Swp(reason)),
                        heard => heard,
                    }
                }
                other => panic!("{other:?}"),
            };
            let seen = |(face, event)| Seen { event, face, id: None, is_final: None };
            self.waiting.extend(heard.expect("is understood").into_iter().map(seen));
        }
        Ok(())
    }
}

fn rand_id() -> [u8; 16] {
    rand::random()
}
