//! What webhooks are sent is read whatever its form, and each example of the 0.3.0 compliance document is.

use chancery_protocol::{PartContent, Role, TaskEvent, TaskState, Timestamp};
use chancery_wire::{JsonLimits, Notification, NotificationForm, read_notification};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(body: &Value) -> Notification {
    read_notification(body.to_string().as_bytes(), &JsonLimits::default()).unwrap()
}

fn task_of(notification: &Notification) -> &str {
    notification.face.as_ref().unwrap().task_id.as_str()
}

#[test]
fn the_documents_simple_message_is_read() {
    let read = read(&json!({
        "jsonrpc": "2.0",
        "id": "msg-uuid-123",
        "result": {
            "kind": "message",
            "messageId": "msg-uuid-123",
            "contextId": "ctx-uuid-456",
            "role": "user",
            "parts": [{ "kind": "text", "text": "Hello, agent!" }]
        }
    }));
    assert_eq!(read.form, NotificationForm::NeuralPost);
    let TaskEvent::Replied(message) = &read.event else { panic!("{:?}", read.event) };
    assert_eq!(
        (message.message_id.as_str(), message.role, message.first_text()),
        ("msg-uuid-123", Role::User, Some("Hello, agent!"))
    );
    assert_eq!(message.context_id.as_ref().map(|id| id.as_str()), Some("ctx-uuid-456"));
}

#[test]
fn the_documents_task_with_artifacts_is_read() {
    let read = read(&json!({
        "jsonrpc": "2.0",
        "id": "task-uuid-789",
        "result": {
            "kind": "task",
            "id": "task-uuid-789",
            "contextId": "ctx-uuid-456",
            "status": { "state": "completed", "timestamp": "2024-01-15T10:30:00Z" },
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
    }));
    assert_eq!((read.form, task_of(&read)), (NotificationForm::NeuralPost, "task-uuid-789"));
    let TaskEvent::Created(task) = &read.event else { panic!("{:?}", read.event) };
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.status.timestamp, Some(Timestamp::parse("2024-01-15T10:30:00Z").unwrap()));
    let part = &task.artifacts[0].parts[0];
    assert_eq!(part.content, PartContent::Url("https://cdn.example.com/report.pdf".to_owned()));
    assert_eq!((part.filename.as_deref(), part.media_type.as_deref()), (Some("report.pdf"), Some("application/pdf")));
    assert_eq!(task.history[0].first_text(), Some("Generate a report"));
}

#[test]
fn the_documents_status_update_is_read() {
    let read = read(&json!({
        "jsonrpc": "2.0",
        "id": "event-001",
        "result": {
            "kind": "status-update",
            "taskId": "task-uuid-789",
            "contextId": "ctx-uuid-456",
            "status": { "state": "working", "timestamp": "2024-01-15T10:25:00Z" },
            "final": false
        }
    }));
    assert_eq!(task_of(&read), "task-uuid-789");
    assert!(matches!(&read.event, TaskEvent::Status(change) if change.status.state == TaskState::Working));
}

#[test]
fn the_documents_parts_and_states_are_read_in_the_form_it_calls_right() {
    let of_parts = |parts: Value| {
        let message = json!({ "kind": "message", "messageId": "m", "contextId": "c", "role": "agent", "parts": parts });
        read_notification(json!({ "jsonrpc": "2.0", "id": 1, "result": message }).to_string().as_bytes(), &JsonLimits::default())
    };
    let good = json!([
        { "kind": "text", "text": "Hello", "metadata": { "a": 1 } },
        { "kind": "file", "file": { "uri": "https://example.com/doc.pdf", "name": "doc.pdf", "mimeType": "application/pdf" } },
        { "kind": "file", "file": { "bytes": "aGk=", "name": "hi.txt" } },
        { "kind": "data", "data": { "foo": "bar" } }
    ]);
    let TaskEvent::Replied(message) = of_parts(good).unwrap().event else { panic!() };
    assert_eq!(message.parts.len(), 4);
    for state in ["submitted", "working", "input-required", "completed", "canceled", "failed", "rejected", "auth-required"] {
        let update =
            json!({ "kind": "status-update", "taskId": "t", "contextId": "c", "status": { "state": state }, "final": false });
        let TaskEvent::Status(change) = read(&json!({ "jsonrpc": "2.0", "id": null, "result": update })).event else { panic!() };
        assert_ne!(change.status.state, TaskState::Unspecified, "{state}");
    }
    // A call, not an answer: what the document says was wrong before.
    let call = json!({ "jsonrpc": "2.0", "method": "message/send", "params": { "message": {} } });
    assert!(read_notification(call.to_string().as_bytes(), &JsonLimits::default()).is_err());
}

#[test]
fn every_form_is_known_by_what_no_other_has() {
    let status = json!({ "state": "TASK_STATE_WORKING" });
    let v1_0 = [
        json!({ "task": { "id": "t", "contextId": "c", "status": status } }),
        json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": status } }),
        json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "artifact": { "artifactId": "a", "parts": [{ "text": "x" }] } } }),
    ];
    for body in v1_0 {
        let read = read(&body);
        assert_eq!((read.form, task_of(&read)), (NotificationForm::V1_0, "t"), "{body}");
    }
    let bare = json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "working" } });
    assert_eq!(read(&bare).form, NotificationForm::V0_3);
    let untagged = json!({ "id": "t", "contextId": "c", "status": { "state": "working" } });
    assert_eq!(read(&untagged).form, NotificationForm::V0_3);
    let original = json!({ "id": "t", "sessionId": "s", "status": { "state": "working" } });
    let read = read(&original);
    assert_eq!((read.form, task_of(&read)), (NotificationForm::Original, "t"));
    assert!(matches!(read.event, TaskEvent::Created(_)));
    let shown_by_its_streams = json!({ "id": "t", "status": { "state": "working" }, "final": false });
    let read = self::read(&shown_by_its_streams);
    assert!(matches!((read.form, read.event), (NotificationForm::Original, TaskEvent::Status(_))));
}

#[test]
fn what_is_none_of_them_is_refused() {
    let two = br#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}},"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}"#;
    let deep = "[".repeat(100) + &"]".repeat(100);
    let doubled = br#"{"kind":"task","kind":"message"}"#;
    for body in [&b""[..], b"{}", b"[]", b"null", b"{", b"\xff", two, deep.as_bytes(), doubled] {
        assert!(read_notification(body, &JsonLimits::default()).is_err(), "{}", String::from_utf8_lossy(body));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_notification(&body, &JsonLimits::default());
    }

    #[test]
    fn no_object_of_known_members_panics(
        members in prop::collection::vec(("kind|id|taskId|contextId|status|result|jsonrpc|task|message|statusUpdate|artifact", "null|1|\"task\"|\\{\\}|\\[\\]|\\{\"state\":\"working\"\\}"), 0..6),
    ) {
        let body = format!("{{{}}}", members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(","));
        let _ = read_notification(body.as_bytes(), &JsonLimits::default());
    }
}
