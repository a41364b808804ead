//! What a peer reports of a task, as the events of a stream.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{
    Artifact, ArtifactChunk, Error, Message, MessageId, Part, Role, StatusChange, Task, TaskEvent, TaskId, TaskState, TaskStatus,
    Unknown,
};
use chancery_swp::Extensions;
use chancery_swp::a2a::{self, TaskResult};
use prost::Message as _;

use super::content::{Content, Convention, Given};
use crate::codec::TaskNames;
use crate::errors;
use crate::pb::v1;
use crate::scan::JsonLimits;

/// One event with the names its task has at the peer.
type ReportedEvent = (Option<TaskNames>, TaskEvent);

/// Why a report is no event.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportFault {
    /// The peer did not take the task.
    Refused(Error),
    NotUnderstood(Error),
}

/// Reads the reports on one task. A peer without A2A names neither task nor context: its task has the id of
/// the request.
#[derive(Debug)]
pub struct ReportReader {
    face: TaskNames,
    json: JsonLimits,
    /// Whether the task was shown.
    begun: bool,
}

impl ReportReader {
    /// `name` is the id of the task as text.
    pub fn new(name: &str, json: JsonLimits) -> Self {
        Self { face: TaskNames::named(TaskId::new(name), "".into()), json, begun: false }
    }

    pub fn event(&mut self, event: a2a::SwpEventMessage, extensions: &Extensions) -> Result<Vec<ReportedEvent>, ReportFault> {
        let given = Given::of(extensions).map_err(ReportFault::NotUnderstood)?;
        if given.convention == Some(Convention::A2a) {
            return read(event.event_payload).map(|heard| vec![heard]);
        }
        let words = (!event.message.trim().is_empty()).then(|| Part::text(event.message));
        let payload = self.part(event.event_payload, &given)?;
        let mut heard = self.begin();
        heard.push(self.status(TaskState::Working, words.into_iter().chain(payload).collect()));
        Ok(heard)
    }

    /// All that is left to report. A result that says nothing but a refusal is one, unless the task was seen to begin.
    pub fn result(&mut self, result: TaskResult, extensions: &Extensions) -> Result<Vec<ReportedEvent>, ReportFault> {
        let given = Given::of(extensions).map_err(ReportFault::NotUnderstood)?;
        if given.convention == Some(Convention::A2a) && !result.output.is_empty() {
            return read(result.output).map(|heard| vec![heard]);
        }
        if result.ok {
            let part = self.part(result.output, &given)?;
            let mut heard = self.begin();
            heard.extend(part.map(|part| self.whole(part)));
            heard.push(self.status(TaskState::Completed, Vec::new()));
            return Ok(heard);
        }
        if let Some(refusal) = errors::read::swp(&result.error_message).filter(|_| !self.begun) {
            return Err(ReportFault::Refused(refusal));
        }
        let (state, words) = ended(&result.error_message);
        let mut heard = self.begin();
        heard.push(self.status(state, vec![Part::text(words)]));
        Ok(heard)
    }

    fn part(&self, bytes: Bytes, given: &Given) -> Result<Option<Part>, ReportFault> {
        let guess = || if std::str::from_utf8(&bytes).is_ok() { Convention::Text } else { Convention::Opaque };
        let convention = given.convention.unwrap_or_else(guess);
        Content { bytes, convention, media_type: given.media_type.clone() }.part(&self.json).map_err(ReportFault::NotUnderstood)
    }

    /// The task as it began, once.
    fn begin(&mut self) -> Vec<ReportedEvent> {
        if std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Unknown::none() };
        let (id, context_id) = (self.face.task_id.clone(), self.face.context_id.clone());
        let (artifacts, history) = (Vec::new(), Vec::new());
        let task = Task { id, context_id, status, artifacts, history, metadata: None, unknown: Unknown::none() };
        vec![(Some(self.face.clone()), TaskEvent::Created(Arc::new(task)))]
    }

    fn status(&self, state: TaskState, parts: Vec<Part>) -> ReportedEvent {
        let message = (!parts.is_empty()).then(|| Arc::new(Message::of_parts(Role::Agent, MessageId::new(""), parts)));
        let status = TaskStatus { state, message, timestamp: None, unknown: Unknown::none() };
        let change = StatusChange { status, metadata: None, unknown: Unknown::none() };
        (Some(self.face.clone()), TaskEvent::Status(change))
    }

    fn whole(&self, part: Part) -> ReportedEvent {
        let artifact = Arc::new(Artifact::new("output", vec![part]));
        let chunk = ArtifactChunk { artifact, append: false, last_chunk: true, metadata: None, unknown: Unknown::none() };
        (Some(self.face.clone()), TaskEvent::Artifact(chunk))
    }
}

fn read(bytes: Bytes) -> Result<ReportedEvent, ReportFault> {
    let malformed = |fault: prost::DecodeError| ReportFault::NotUnderstood(crate::pb::decode_error(&fault));
    let event = v1::proto::StreamResponse::decode(bytes).map_err(malformed)?;
    v1::event::read(event).map_err(ReportFault::NotUnderstood)
}

/// The state a failure names, and its words.
fn ended(reason: &str) -> (TaskState, &str) {
    let named = reason.split_once(": ").and_then(|(name, rest)| {
        let state = TaskState::ALL.into_iter().find(|state| state.name() == name && *state != TaskState::Completed)?;
        let words = rest.split_once(": ").map_or(rest, |(_, words)| words);
        (state.is_terminal() || state.is_interrupted()).then_some((state, words))
    });
    named.unwrap_or((TaskState::Failed, reason))
}
