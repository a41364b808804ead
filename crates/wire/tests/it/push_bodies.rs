//! What webhooks are sent, in every shape; the examples of the 0.3.0 compliance document among them, member for member.

use std::sync::Arc;

use chancery_protocol::{Message, NamedTask, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp, Version};
use chancery_wire::json::push::{Kind, NotificationBody, Shape, body};
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::{Codec, TaskNames};
use serde_json::{Value, json};

fn face() -> TaskNames {
    TaskNames {
        task_id: "task-2".into(),
        context_id: "context-1".into(),
        client_task_id: Some("mine".into()),
        artifacts: vec![],
        stays_open: false,
    }
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, message: None, timestamp: None, unknown: Default::default() }
}

fn shown() -> NamedTask {
    let task = Task {
        id: "task-2".into(),
        context_id: "context-1".into(),
        status: status(TaskState::Completed),
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    };
    NamedTask { task: Arc::new(task), dialect: Version::Original.into(), client_task_id: Some("mine".into()) }
}

fn told(shape: Shape, told: NotificationBody<'_>) -> Value {
    let body = body(shape, told, "msg_0_1_2").unwrap();
    serde_json::from_slice(&body.bytes).unwrap()
}

/// Reads what an envelope holds and writes the envelope again.
fn again(document: &Value) -> Value {
    let id = document["id"].as_str().unwrap();
    let (face, event) = V0_3.decode_event(&document["result"].to_string()).unwrap();
    let face = face.unwrap_or_else(|| TaskNames {
        task_id: "".into(),
        context_id: "".into(),
        client_task_id: None,
        artifacts: vec![],
        stays_open: false,
    });
    let written = body(Shape::Envelope, NotificationBody::Event(&face, &event), id).unwrap();
    assert_eq!(written.kind.as_str(), document["result"]["kind"].as_str().unwrap());
    serde_json::from_slice(&written.bytes).unwrap()
}

/// The document writes whole seconds, we write milliseconds.
fn at(text: &str) -> String {
    Timestamp::parse(text).unwrap().to_string()
}

#[test]
fn the_documents_simple_message_is_what_we_send() {
    let document = json!({
        "jsonrpc": "2.0",
        "id": "msg-uuid-123",
        "result": {
            "kind": "message",
            "messageId": "msg-uuid-123",
            "contextId": "ctx-uuid-456",
            "role": "user",
            "parts": [{ "kind": "text", "text": "Hello, agent!" }]
        }
    });
    assert_eq!(again(&document), document);
}

#[test]
fn the_documents_task_with_artifacts_is_what_we_send() {
    let document = json!({
        "jsonrpc": "2.0",
        "id": "task-uuid-789",
        "result": {
            "kind": "task",
            "id": "task-uuid-789",
            "contextId": "ctx-uuid-456",
            "status": { "state": "completed", "timestamp": at("2024-01-15T10:30:00Z") },
            "artifacts": [{
                "artifactId": "art-001",
                "name": "report.pdf",
                "parts": [{
                    "kind": "file",
                    "file": { "uri": "https://cdn.example.com/report.pdf", "name": "report.pdf", "mimeType": "application/pdf" }
                }]
            }],
            "history": [{
                "kind": "message",
                "messageId": "msg-001",
                "contextId": "ctx-uuid-456",
                "role": "user",
                "parts": [{ "kind": "text", "text": "Generate a report" }]
            }]
        }
    });
    assert_eq!(again(&document), document);
}

#[test]
fn the_documents_status_update_is_what_we_send() {
    let document = json!({
        "jsonrpc": "2.0",
        "id": "event-001",
        "result": {
            "kind": "status-update",
            "taskId": "task-uuid-789",
            "contextId": "ctx-uuid-456",
            "status": { "state": "working", "timestamp": at("2024-01-15T10:25:00Z") },
            "final": false
        }
    });
    assert_eq!(again(&document), document);
}

fn working() -> TaskEvent {
    TaskEvent::Status(StatusChange { status: status(TaskState::Working), metadata: None, unknown: Default::default() })
}

#[test]
fn each_version_is_told_in_its_own_shape() {
    let (face, event) = (face(), working());
    let event = NotificationBody::Event(&face, &event);
    assert_eq!(told(Shape::V1, event)["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(told(Shape::V0_3Event, event)["kind"], "status-update");
    assert_eq!(told(Shape::Envelope, event)["id"], "msg_0_1_2");
    assert_eq!(body(Shape::V0_3Task, event, ""), None, "a 0.3 receiver is told whole tasks");
    assert_eq!(body(Shape::Original, event, ""), None);

    let shown = shown();
    let task = NotificationBody::Task(&shown);
    assert_eq!(told(Shape::V1, task)["task"]["id"], "task-2");
    let (_, read) = V1_0.decode_event(&told(Shape::V1, task).to_string()).unwrap();
    assert_eq!(read, TaskEvent::Created(Arc::clone(&shown.task)));
    for shape in [Shape::V0_3Task, Shape::V0_3Event] {
        assert_eq!(told(shape, task)["kind"], "task");
    }
    assert_eq!(told(Shape::Envelope, task)["id"], "task-2");
    assert_eq!(told(Shape::Original, task)["id"], "mine");
}

#[test]
fn what_the_caller_said_is_told_to_nobody() {
    let (face, said) = (face(), TaskEvent::Said(Arc::new(Message::text(Role::User, "m", "hi"))));
    for shape in [Shape::V1, Shape::V0_3Task, Shape::V0_3Event, Shape::Original, Shape::Envelope] {
        assert_eq!(body(shape, NotificationBody::Event(&face, &said), ""), None);
    }
}

#[test]
fn a_message_alone_is_told_as_one() {
    let (face, reply) = (face(), TaskEvent::Replied(Arc::new(Message::text(Role::Agent, "m-9", "hi"))));
    let event = NotificationBody::Event(&face, &reply);
    assert_eq!(told(Shape::V1, event)["message"]["messageId"], "m-9");
    assert_eq!(told(Shape::V0_3Task, event)["kind"], "message");
    assert_eq!(told(Shape::Envelope, event)["id"], "m-9");
    assert_eq!(body(Shape::Envelope, event, "").unwrap().kind, Kind::Message);
}
