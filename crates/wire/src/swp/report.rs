//! What happens to a task, as events and the one result of the profile.

use bytes::Bytes;
use chancery_protocol::{ArtifactId, Error, ErrorKind, Part, PartContent, TaskEvent, TaskState, TaskStatus};
use chancery_swp::a2a::{self, ResultCondition, TaskResult};
use prost::Message as _;

use super::content::{Content, Convention, Given};
use crate::codec::TaskNames;
use crate::errors;
use crate::pb::v1;

/// Something to send, with what its envelope says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub message: a2a::A2aMessage,
    pub given: Given,
}

/// Turns the log of one task into reports. What may be its last word is held back until it is known whether it was.
#[derive(Debug)]
pub struct Reporter {
    task_id: Bytes,
    whole: bool,
    /// How the task stands, if it may stay so.
    held: Option<(TaskEvent, TaskNames)>,
    /// What the task made, in the order it was begun; nothing once that can fit into no result.
    made: Option<Vec<(ArtifactId, Vec<Part>)>>,
    /// How much that is, and how much a result may have.
    octets: usize,
    most: usize,
}

impl Reporter {
    /// `convention` is how the task's input was said to be read, `most` how many octets a result may have.
    pub fn new(task_id: Bytes, convention: Convention, most: usize) -> Self {
        Self { task_id, whole: convention == Convention::A2a, held: None, made: Some(Vec::new()), octets: 0, most }
    }

    /// What to send now.
    pub fn report(&mut self, face: &TaskNames, event: &TaskEvent) -> Vec<Report> {
        let mut reports = Vec::new();
        if let Some((earlier, face)) = self.held.take() {
            reports.extend(self.event(&face, &earlier));
        }
        self.note(event);
        if may_be_last(event) && !face.stays_open {
            self.held = Some((event.clone(), face.clone()));
        } else {
            reports.extend(self.event(face, event));
        }
        reports
    }

    /// The result, once nothing more will be heard.
    pub fn finish(mut self) -> Report {
        let Some((last, face)) = self.held.take() else {
            let unknown = Error::new(ErrorKind::Internal, "the task has no end to report");
            return refusal(self.task_id, &unknown);
        };
        let (ok, reason) = match status_of(&last) {
            Some(status) if status.state == TaskState::Completed => (true, String::new()),
            Some(status) => (false, failure(status)),
            None => (true, String::new()),
        };
        let content = match self.made.take() {
            _ if self.whole => whole(&face, &last),
            Some(made) => output(made, &last, ok),
            None => return refusal(self.task_id, &too_large("the result")),
        };
        let given = if content.bytes.is_empty() { Given::default() } else { content.given() };
        let result = TaskResult { task_id: self.task_id, ok, output: content.bytes, error_message: reason };
        Report { message: a2a::A2aMessage::Result(result), given }
    }

    fn event(&self, face: &TaskNames, event: &TaskEvent) -> Option<Report> {
        let (message, content) = if self.whole {
            if matches!(event, TaskEvent::Said(_)) {
                return None;
            }
            (String::new(), whole(face, event))
        } else {
            said(event)?
        };
        let given = if content.bytes.is_empty() { Given::default() } else { content.given() };
        let event = a2a::SwpEventMessage { task_id: self.task_id.clone(), message, event_payload: content.bytes };
        Some(Report { message: a2a::A2aMessage::Event(event), given })
    }

    /// Keeps the content of the result. A reader of whole events has it already.
    fn note(&mut self, event: &TaskEvent) {
        let TaskEvent::Artifact(chunk) = event else { return };
        if self.whole {
            return;
        }
        let Some(made) = &mut self.made else { return };
        let (id, parts) = (&chunk.artifact.artifact_id, chunk.artifact.parts.clone());
        self.octets += octets(&parts);
        match made.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) if chunk.append => known.extend(parts),
            Some((_, known)) => self.octets -= octets(&std::mem::replace(known, parts)),
            None => made.push((id.clone(), parts)),
        }
        if self.octets > self.most {
            self.made = None;
        }
    }
}

/// The output of the task, or its last message if it has no output. A failure has its text once, as the
/// reason.
fn output(made: Vec<(ArtifactId, Vec<Part>)>, last: &TaskEvent, ok: bool) -> Content {
    let words = match last {
        TaskEvent::Replied(message) => &message.parts[..],
        last => status_of(last).filter(|_| ok).and_then(|status| status.message.as_deref()).map_or(&[][..], |said| &said.parts),
    };
    let snapshot = match last {
        TaskEvent::Created(task) => task.artifacts.iter().flat_map(|artifact| artifact.parts.clone()).collect(),
        _ => Vec::new(),
    };
    let made: Vec<Part> = made.into_iter().flat_map(|(_, parts)| parts).chain(snapshot).collect();
    Content::of(if made.is_empty() { words } else { &made })
}

/// How much of a result these take at least.
fn octets(parts: &[Part]) -> usize {
    let octets = |part: &Part| match &part.content {
        PartContent::Text(text) => text.len(),
        PartContent::Raw(bytes) => bytes.len(),
        PartContent::Data(data) => data.text().len(),
        PartContent::Url(url) => url.len(),
    };
    parts.iter().map(octets).sum()
}

/// The report in place of one that is too large for a frame.
pub fn too_large(what: &str) -> Error {
    Error::new(ErrorKind::TooLarge, format!("{what} does not fit into a frame (swp.max_frame_bytes)"))
}

/// A refusal as the result of a task.
pub fn refusal(task_id: Bytes, error: &Error) -> Report {
    let message = a2a::A2aMessage::Result(TaskResult::failure(task_id, errors::swp(error)));
    Report { message, given: Given::default() }
}

fn whole(face: &TaskNames, event: &TaskEvent) -> Content {
    let bytes = v1::event::write(face, event).map(|event| event.encode_to_vec()).unwrap_or_default();
    Content { bytes: bytes.into(), convention: Convention::A2a, media_type: None }
}

/// An event in few words: the news of a status, or a piece of something that comes in pieces. A whole artifact is the result's.
fn said(event: &TaskEvent) -> Option<(String, Content)> {
    let nothing = Content::text("");
    match event {
        TaskEvent::Status(change) => {
            let words = change.status.message.as_ref().map(|message| Content::of(&message.parts));
            match words {
                Some(Content { bytes, convention: Convention::Text, .. }) if !bytes.trim_ascii().is_empty() => {
                    Some((String::from_utf8_lossy(&bytes).into_owned(), nothing))
                }
                Some(content) if !content.bytes.is_empty() => Some((word(change.status.state).to_owned(), content)),
                _ => Some((word(change.status.state).to_owned(), nothing)),
            }
        }
        TaskEvent::Artifact(chunk) if chunk.append || !chunk.last_chunk => {
            let content = Content::of(&chunk.artifact.parts);
            let name = chunk.artifact.name.clone().unwrap_or_else(|| chunk.artifact.artifact_id.to_string());
            Some((name, content))
        }
        _ => None,
    }
}

fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified | TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth required",
    }
}

/// Why a task that did not complete has no output: its state by name, the profile's words for it, and the agent's.
fn failure(status: &TaskStatus) -> String {
    let condition = match status.state {
        TaskState::AuthRequired => ResultCondition::AuthorizationDenied,
        _ => ResultCondition::ExecutionFailed,
    };
    let words = status.message.as_ref().map(|message| Content::of(&message.parts));
    let words = words.filter(|content| content.convention == Convention::Text && !content.bytes.trim_ascii().is_empty());
    let words =
        words.map_or_else(|| word(status.state).to_owned(), |content| String::from_utf8_lossy(&content.bytes).into_owned());
    format!("{}: {}: {words}", status.state.name(), condition.says())
}

fn status_of(event: &TaskEvent) -> Option<&TaskStatus> {
    match event {
        TaskEvent::Status(change) => Some(&change.status),
        TaskEvent::Created(task) => Some(&task.status),
        _ => None,
    }
}

/// Whether a stream can end with this.
fn may_be_last(event: &TaskEvent) -> bool {
    let ends = |state: TaskState| state.is_terminal() || state.is_interrupted();
    matches!(event, TaskEvent::Replied(_)) || status_of(event).is_some_and(|status| ends(status.state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use chancery_protocol::{Artifact, ArtifactChunk, StatusChange, Unknown};

    fn piece(octets: usize, append: bool) -> TaskEvent {
        let artifact = Arc::new(Artifact::new("a", vec![Part::text("x".repeat(octets))]));
        TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk: false, metadata: None, unknown: Unknown::none() })
    }

    fn result(mut reporter: Reporter, face: &TaskNames) -> TaskResult {
        let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None, unknown: Unknown::none() };
        reporter.report(face, &TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() }));
        let a2a::A2aMessage::Result(result) = reporter.finish().message else { panic!("a result") };
        result
    }

    #[test]
    fn what_a_task_made_is_kept_for_as_long_as_it_may_fit_into_a_result() {
        let face = TaskNames::named("t".into(), "c".into());
        let reporter = || Reporter::new(Bytes::from_static(b"t"), Convention::Text, 10);
        let mut fits = reporter();
        for event in [piece(9, false), piece(4, false), piece(6, true)] {
            assert_eq!(fits.report(&face, &event).len(), 1);
        }
        assert_eq!(result(fits, &face).output.len(), 10, "what was made anew counts once");

        let mut large = reporter();
        for event in [piece(4, false), piece(7, true), piece(1, true)] {
            assert_eq!(large.report(&face, &event).len(), 1, "its pieces are told all the same");
        }
        assert_eq!(large.made, None, "and not kept");
        let refused = result(large, &face);
        assert!(!refused.ok && refused.error_message.starts_with("TOO_LARGE: "), "{}", refused.error_message);
    }
}
