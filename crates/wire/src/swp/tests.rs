//! Tests of reports on a task, from its worker to its caller.

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{
    Artifact, ArtifactChunk, Error, ErrorKind, Message, Part, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Unknown,
};
use chancery_swp::a2a;

use super::*;
use crate::codec::TaskNames;
use crate::{JsonLimits, errors};

fn face() -> TaskNames {
    TaskNames::named("t-1".into(), "talk".into())
}

fn status(state: TaskState, words: Option<&str>) -> TaskStatus {
    let message = words.map(|words| Arc::new(Message::text(Role::Agent, "m", words)));
    TaskStatus { state, message, timestamp: None, unknown: Unknown::none() }
}

fn changed(state: TaskState, words: Option<&str>) -> TaskEvent {
    TaskEvent::Status(StatusChange { status: status(state, words), metadata: None, unknown: Unknown::none() })
}

fn created() -> TaskEvent {
    TaskEvent::Created(Arc::new(Task {
        id: "t-1".into(),
        context_id: "talk".into(),
        status: status(TaskState::Submitted, None),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Unknown::none(),
    }))
}

fn piece(text: &str, append: bool, last_chunk: bool) -> TaskEvent {
    let artifact = Arc::new(Artifact::new("a-1", vec![Part::text(text)]));
    TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata: None, unknown: Unknown::none() })
}

fn reports(convention: Convention, log: &[TaskEvent]) -> Vec<Report> {
    let mut reporter = Reporter::new(Bytes::from_static(b"id"), convention, usize::MAX);
    let mut reports: Vec<Report> = log.iter().flat_map(|event| reporter.report(&face(), event)).collect();
    reports.push(reporter.finish());
    reports
}

/// What a peer hears, as the model has it.
fn heard(reports: Vec<Report>) -> Result<Vec<TaskEvent>, ReportFault> {
    let mut reader = ReportReader::new("our-id", JsonLimits::default());
    let mut events = Vec::new();
    for report in reports {
        let extensions = report.given.to_extensions();
        let heard = match report.message {
            a2a::A2aMessage::Event(event) => reader.event(event, &extensions)?,
            a2a::A2aMessage::Result(result) => reader.result(result, &extensions)?,
            other => panic!("{other:?}"),
        };
        events.extend(heard.into_iter().map(|(_, event)| event));
    }
    Ok(events)
}

fn short(report: &Report) -> (bool, String, String) {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    match &report.message {
        a2a::A2aMessage::Event(event) => (false, event.message.clone(), text(&event.event_payload)),
        a2a::A2aMessage::Result(result) => (result.ok, result.error_message.clone(), text(&result.output)),
        other => panic!("{other:?}"),
    }
}

fn row(ok: bool, words: &str, content: &str) -> (bool, String, String) {
    (ok, words.to_owned(), content.to_owned())
}

#[test]
fn a_plain_task_is_reported_in_few_words_and_its_result_is_all_it_made() {
    let log = [
        created(),
        changed(TaskState::Working, None),
        changed(TaskState::Working, Some("half-way")),
        piece("one ", false, false),
        piece("two", true, true),
        changed(TaskState::Completed, Some("there you are")),
    ];
    let told: Vec<_> = reports(Convention::Text, &log).iter().map(short).collect();
    assert_eq!(
        told,
        [
            row(false, "working", ""),
            row(false, "half-way", ""),
            row(false, "a-1", "one "),
            row(false, "a-1", "two"),
            row(true, "", "one two"),
        ]
    );
    let whole = [created(), piece("all at once", false, true), changed(TaskState::Completed, None)];
    let told: Vec<_> = reports(Convention::Json, &whole).iter().map(short).collect();
    assert_eq!(told, [row(true, "", "all at once")]);
    let words = [created(), changed(TaskState::Completed, Some("only words"))];
    assert_eq!(short(&reports(Convention::Text, &words)[0]), row(true, "", "only words"));
    let reply = [TaskEvent::Replied(Arc::new(Message::text(Role::Agent, "m", "no task at all")))];
    assert_eq!(short(&reports(Convention::Text, &reply)[0]), row(true, "", "no task at all"));
}

#[test]
fn a_task_that_did_not_complete_says_how_it_stands_and_why() {
    for (state, words, reason) in [
        (TaskState::Failed, Some("no paper"), "TASK_STATE_FAILED: execution failed: no paper"),
        (TaskState::Canceled, None, "TASK_STATE_CANCELED: execution failed: canceled"),
        (TaskState::InputRequired, Some("which colour?"), "TASK_STATE_INPUT_REQUIRED: execution failed: which colour?"),
        (TaskState::AuthRequired, None, "TASK_STATE_AUTH_REQUIRED: authorization denied: auth required"),
    ] {
        let reports = reports(Convention::Text, &[created(), changed(state, words)]);
        assert_eq!(reports.len(), 1);
        assert_eq!(short(&reports[0]), row(false, reason, ""));
        let events = heard(reports).unwrap();
        let Some(TaskEvent::Status(change)) = events.last() else { panic!("{events:?}") };
        assert_eq!(change.status.state, state);
    }
}

#[test]
fn what_seemed_the_end_and_was_not_is_an_event() {
    let log = [
        created(),
        changed(TaskState::InputRequired, Some("which?")),
        changed(TaskState::Working, None),
        changed(TaskState::Completed, None),
    ];
    let told: Vec<_> = reports(Convention::Text, &log).iter().map(short).collect();
    assert_eq!(told, [row(false, "which?", ""), row(false, "working", ""), row(true, "", "")]);
}

#[test]
fn whoever_sends_protobuf_hears_every_event_as_it_was() {
    let log = vec![
        created(),
        changed(TaskState::Working, Some("on it")),
        piece("one ", false, false),
        piece("two", true, true),
        changed(TaskState::Completed, Some("done")),
    ];
    let reports = reports(Convention::A2a, &log);
    assert_eq!(reports.len(), log.len(), "the last one is the result");
    assert_eq!(heard(reports).unwrap(), log);
    let asked = vec![created(), changed(TaskState::InputRequired, Some("which?"))];
    assert_eq!(heard(self::reports(Convention::A2a, &asked)).unwrap(), asked);
}

#[test]
fn every_kind_of_refusal_is_read_as_what_it_was() {
    for kind in ErrorKind::ALL {
        let error = Error::new(kind, "these are the words: all of them");
        let refused = heard(vec![refusal(Bytes::from_static(b"id"), &error)]).unwrap_err();
        let ReportFault::Refused(read) = refused else { panic!("{refused:?}") };
        let expected = if kind == ErrorKind::Parse { ErrorKind::InvalidRequest } else { kind };
        assert_eq!((read.kind, &*read.message), (expected, "these are the words: all of them"));
    }
    for (text, kind) in [
        ("unsupported capability", Some(ErrorKind::UnsupportedOperation)),
        ("Malformed task input", Some(ErrorKind::InvalidParams)),
        ("authorization denied: ask again", Some(ErrorKind::PermissionDenied)),
        ("unknown task reference", Some(ErrorKind::TaskNotFound)),
        ("execution failed", None),
        ("TASK_STATE_FAILED: execution failed: x", None),
        ("it rained", None),
    ] {
        assert_eq!(errors::read::swp(text).map(|error| error.kind), kind, "{text}");
    }
}

#[test]
fn a_peer_that_declares_nothing_is_heard_too() {
    let mut reader = ReportReader::new("our-id", JsonLimits::default());
    let task_id = Bytes::from_static(b"id");
    let event =
        a2a::SwpEventMessage { task_id: task_id.clone(), message: "running".into(), event_payload: Bytes::from_static(&[0xff]) };
    let none = codec::Extensions::default();
    let heard = reader.event(event, &none).unwrap();
    let names: Vec<_> = heard.iter().map(|(face, _)| face.as_ref().unwrap().task_id.as_str()).collect();
    assert_eq!(names, ["our-id", "our-id"]);
    let heard = reader.result(a2a::TaskResult::success(task_id.clone(), Bytes::from_static(b"out")), &none).unwrap();
    let [(_, TaskEvent::Artifact(chunk)), (_, TaskEvent::Status(end))] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((&chunk.artifact.parts[..], end.status.state), (&[Part::text("out")][..], TaskState::Completed));
    // A refusal's words after the task began are those of its failure.
    let mut begun = ReportReader::new("our-id", JsonLimits::default());
    let event = a2a::SwpEventMessage { task_id: task_id.clone(), message: "running".into(), event_payload: Bytes::new() };
    begun.event(event, &none).unwrap();
    let heard = begun.result(a2a::TaskResult::failure(task_id, "unsupported capability"), &none).unwrap();
    assert!(matches!(&heard[..], [(_, TaskEvent::Status(end))] if end.status.state == TaskState::Failed));
}
