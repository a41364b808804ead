//! One of everything the protocol can say, with fixed names and times, so that bytes can be compared.

pub(crate) mod calls;

use std::sync::Arc;

use bytes::Bytes;
use chancery_protocol::{
    Artifact, ArtifactChunk, Json, Message, Metadata, NamedTask, OpenObject, Part, PartContent, Role, StatusChange, Task,
    TaskEvent, TaskState, TaskStatus, Timestamp, Unknown, Version,
};
use chancery_wire::TaskNames;
use serde_json::json;

/// 2026-11-15T07:28:45.123Z
pub(crate) const AT: Timestamp = Timestamp::from_micros(1_794_727_725_123_000);

pub(crate) fn face() -> TaskNames {
    TaskNames {
        task_id: "task-1".into(),
        context_id: "context-1".into(),
        client_task_id: Some("client-1".into()),
        artifacts: Vec::new(),
        stays_open: false,
    }
}

pub(crate) fn metadata(text: &str) -> Option<Metadata> {
    Some(serde_json::from_str(text).expect("an object"))
}

/// Members that no version has, in spellings that have to stay as they are.
pub(crate) fn unknown<T: OpenObject>(place: &str) -> Unknown<T> {
    let json = |text: &str| Json::parse(text.to_owned()).expect("JSON");
    let mut unknown = Unknown::none();
    assert!(unknown.insert(&format!("x-{place}"), json(r#"{"n":[1.0e5, 0.10,12345678901234567890]}"#)));
    assert!(unknown.insert("\"quoted\" é", json(r#""\u0041\/""#)));
    unknown
}

/// A message with something unknown in every place.
pub(crate) fn said_more(role: Role) -> Message {
    let part = |mut part: Part| {
        part.unknown = unknown("part");
        part
    };
    let message = Message::of_parts(role, "message-3", parts().into_iter().map(part).collect());
    Message { context_id: Some("context-1".into()), unknown: unknown("message"), ..message }
}

/// A task with something unknown in every place.
pub(crate) fn task_with_more() -> Task {
    let parts = said_more(Role::Agent).parts;
    let message = Some(Arc::new(said_more(Role::Agent)));
    Task {
        status: TaskStatus { message, unknown: unknown("status"), ..status(TaskState::Working) },
        artifacts: vec![Arc::new(Artifact { unknown: unknown("artifact"), ..Artifact::new("artifact-3", parts) })],
        history: vec![Arc::new(said_more(Role::User))],
        unknown: unknown("task"),
        ..bare_task()
    }
}

/// Every kind of part there is.
pub(crate) fn parts() -> Vec<Part> {
    let named = |content| Part { filename: Some("plot.png".into()), media_type: Some("image/png".into()), ..Part::new(content) };
    vec![
        Part { metadata: metadata(r#"{"lang":"en"}"#), ..Part::text("Hello, \"agent\" \u{1f680}\n") },
        named(PartContent::Raw(Bytes::from_static(b"\x89PNG\xff"))),
        named(PartContent::Url("https://files.example/plot.png".into())),
        Part::data(&json!({"rows": [1, 2.5, null]})),
        Part::data(&json!(["no", "object"])),
    ]
}

pub(crate) fn said() -> Message {
    Message {
        context_id: Some("context-1".into()),
        metadata: metadata(r#"{"priority":1}"#),
        extensions: vec!["https://extensions.example/x".into()],
        reference_task_ids: vec!["task-0".into()],
        ..Message::of_parts(Role::User, "message-1", parts())
    }
}

pub(crate) fn answered() -> Message {
    Message {
        context_id: Some("context-1".into()),
        task_id: Some("task-1".into()),
        ..Message::text(Role::Agent, "message-2", "Working on it")
    }
}

pub(crate) fn artifact() -> Artifact {
    Artifact {
        name: Some("report".into()),
        description: Some("What was found".into()),
        metadata: metadata(r#"{"pages":2}"#),
        extensions: vec!["https://extensions.example/y".into()],
        ..Artifact::new("artifact-1", parts())
    }
}

pub(crate) fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, message: Some(Arc::new(answered())), timestamp: Some(AT), unknown: Default::default() }
}

pub(crate) fn task() -> Task {
    Task {
        id: "task-1".into(),
        context_id: "context-1".into(),
        status: status(TaskState::Completed),
        artifacts: vec![Arc::new(artifact()), Arc::new(Artifact::new("artifact-2", vec![Part::text("short")]))],
        history: vec![Arc::new(said()), Arc::new(answered())],
        metadata: metadata(r#"{"cost":"low"}"#),
        unknown: Default::default(),
    }
}

/// A task with nothing that may be left out.
pub(crate) fn bare_task() -> Task {
    Task {
        id: "task-2".into(),
        context_id: "context-2".into(),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(AT), unknown: Default::default() },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    }
}

pub(crate) fn shown(task: Task) -> NamedTask {
    NamedTask { task: Arc::new(task), dialect: Version::V1_0.into(), client_task_id: Some("client-1".into()) }
}

pub(crate) fn events() -> Vec<(&'static str, TaskEvent)> {
    let chunk = |append, last_chunk, metadata| {
        TaskEvent::Artifact(ArtifactChunk {
            artifact: Arc::new(artifact()),
            append,
            last_chunk,
            metadata,
            unknown: Default::default(),
        })
    };
    let change =
        |state, metadata| TaskEvent::Status(StatusChange { status: status(state), metadata, unknown: Default::default() });
    vec![
        ("created", TaskEvent::Created(Arc::new(bare_task()))),
        ("created-with-all", TaskEvent::Created(Arc::new(Task { status: status(TaskState::Working), ..task() }))),
        ("created-and-over", TaskEvent::Created(Arc::new(task()))),
        ("said", TaskEvent::Said(Arc::new(said()))),
        ("status-working", change(TaskState::Working, metadata(r#"{"step":1}"#))),
        ("status-input-required", change(TaskState::InputRequired, None)),
        ("status-auth-required", change(TaskState::AuthRequired, None)),
        ("status-completed", change(TaskState::Completed, None)),
        ("status-failed", change(TaskState::Failed, None)),
        ("status-canceled", change(TaskState::Canceled, None)),
        ("status-rejected", change(TaskState::Rejected, None)),
        ("artifact", chunk(false, false, None)),
        ("artifact-more", chunk(true, true, metadata(r#"{"chunk":2}"#))),
        ("replied", TaskEvent::Replied(Arc::new(answered()))),
        ("unknown-created", TaskEvent::Created(Arc::new(task_with_more()))),
        (
            "unknown-status",
            TaskEvent::Status(StatusChange { status: task_with_more().status, metadata: None, unknown: unknown("update") }),
        ),
        (
            "unknown-artifact",
            TaskEvent::Artifact(ArtifactChunk {
                artifact: task_with_more().artifacts.remove(0),
                append: false,
                last_chunk: true,
                metadata: None,
                unknown: unknown("update"),
            }),
        ),
        ("unknown-replied", TaskEvent::Replied(Arc::new(said_more(Role::Agent)))),
    ]
}
