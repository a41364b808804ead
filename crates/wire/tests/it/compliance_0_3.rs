//! The final checklist of the 0.3.0 compliance document, row by row, on what is really written and read.
//!
//! Two of its rows are put right where the specification disagrees with it: there are nine task states, `unknown` among
//! them, and a message's `contextId` is optional. Its last row, the content type, is the HTTP door's and is tested there.

use std::sync::Arc;

use chancery_protocol::{Artifact, Message, Operation, Part, Reply, Role, Sent, Task, TaskEvent, TaskState, TaskStatus};
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::{Codec, Frames, json_rpc};
use serde_json::{Value, json};

use crate::samples;

fn written(reply: &Reply) -> Value {
    let mut out = Vec::new();
    V0_3.encode_reply(&mut out, reply);
    serde_json::from_slice(&out).unwrap()
}

fn task(task: Task) -> Value {
    written(&Reply::Task(samples::shown(task)))
}

fn message(message: Message) -> Value {
    written(&Reply::Sent(Sent::Message(Arc::new(message))))
}

fn part(part: Part) -> Value {
    message(Message::of_parts(Role::Agent, "m", vec![part]))["parts"][0].take()
}

fn event(event: &TaskEvent) -> Value {
    let mut frames = Frames::bare();
    V0_3.encode_event(&mut frames, &samples::face(), event);
    let text = String::from_utf8(frames.take()).unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(data).unwrap()
}

fn change(state: TaskState) -> Value {
    let status = TaskStatus { state, message: None, timestamp: None, unknown: Default::default() };
    event(&TaskEvent::Status(chancery_protocol::StatusChange { status, metadata: None, unknown: Default::default() }))
}

/// The field at fault when a caller's message is refused.
fn refused(message: Value) -> String {
    let params = json!({ "message": message }).to_string();
    V0_3.decode_request(Operation::SendMessage, &params).unwrap_err().violations.remove(0).field
}

fn accepted(message: Value) -> bool {
    V0_3.decode_request(Operation::SendMessage, &json!({ "message": message }).to_string()).is_ok()
}

fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn task_state_is_one_of_nine_kebab_case_names() {
    let names: Vec<Value> = TaskState::ALL.into_iter().map(|state| change(state)["status"]["state"].take()).collect();
    let expected =
        ["unknown", "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"];
    assert_eq!(names, expected);
    for name in ["TASK_STATE_WORKING", "input_required", "Working", "cancelled", ""] {
        let text = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": name}}).to_string();
        assert!(V0_3.decode_reply(Operation::GetTask, &text).is_err(), "{name}");
    }
}

#[test]
fn role_is_user_or_agent_in_lower_case() {
    assert_eq!(message(Message::text(Role::User, "m", "x"))["role"], "user");
    assert_eq!(message(Message::text(Role::Agent, "m", "x"))["role"], "agent");
    for role in ["ROLE_USER", "User", "assistant"] {
        assert_eq!(refused(json!({"messageId": "m", "role": role, "parts": []})), "message.role");
    }
}

#[test]
fn part_discriminator_kind_is_written_and_required() {
    let kinds: Vec<Value> = samples::parts().into_iter().map(|one| part(one)["kind"].take()).collect();
    assert_eq!(kinds, ["text", "file", "file", "data", "data"]);
    let without = json!({"messageId": "m", "role": "user", "parts": [{"text": "x"}]});
    assert_eq!(refused(without), "message.parts[0].kind");
}

#[test]
fn text_part_has_kind_text_and_optional_metadata() {
    assert_eq!(part(Part::text("x")), json!({"kind": "text", "text": "x"}));
    let with = Part { metadata: samples::metadata(r#"{"a":1}"#), ..Part::text("") };
    assert_eq!(part(with), json!({"kind": "text", "text": "", "metadata": {"a": 1}}));
}

#[test]
fn file_part_nests_the_file_and_has_optional_metadata() {
    let with = Part { metadata: samples::metadata(r#"{"a":1}"#), ..samples::parts().remove(2) };
    let value = part(with);
    assert_eq!(members(&value), ["file", "kind", "metadata"]);
    assert_eq!(value["kind"], "file");
    let without = json!({"messageId": "m", "role": "user", "parts": [{"kind": "file", "uri": "https://h"}]});
    assert_eq!(refused(without), "message.parts[0].file");
}

#[test]
fn data_part_holds_an_object_and_has_optional_metadata() {
    let with = Part { metadata: samples::metadata(r#"{"a":1}"#), ..Part::data(&json!({"k": [1]})) };
    assert_eq!(part(with), json!({"kind": "data", "data": {"k": [1]}, "metadata": {"a": 1}}));
    let list = json!({"messageId": "m", "role": "user", "parts": [{"kind": "data", "data": [1]}]});
    assert_eq!(refused(list), "message.parts[0]");
}

#[test]
fn file_with_uri_has_the_uri_and_optionally_name_and_mime_type() {
    let [_, _, url, ..] = &samples::parts()[..] else { panic!() };
    let full = json!({"uri": "https://files.example/plot.png", "name": "plot.png", "mimeType": "image/png"});
    assert_eq!(part(url.clone())["file"], full);
    let bare = Part { filename: None, media_type: None, ..url.clone() };
    assert_eq!(part(bare)["file"], json!({"uri": "https://files.example/plot.png"}));
}

#[test]
fn file_with_bytes_has_base64_and_optionally_name_and_mime_type() {
    let [_, raw, ..] = &samples::parts()[..] else { panic!() };
    assert_eq!(part(raw.clone())["file"], json!({"bytes": "iVBOR/8=", "name": "plot.png", "mimeType": "image/png"}));
    let both = json!({"kind": "file", "file": {"bytes": "aGk=", "uri": "https://h"}});
    assert_eq!(refused(json!({"messageId": "m", "role": "user", "parts": [both]})), "message.parts[0]");
}

#[test]
fn message_has_its_kind_and_its_core_members() {
    let value = message(samples::answered());
    assert_eq!(members(&value), ["contextId", "kind", "messageId", "parts", "role", "taskId"]);
    assert_eq!(value["kind"], "message");
    let full = message(samples::said());
    assert_eq!(full["referenceTaskIds"], json!(["task-0"]));
    assert_eq!(full["extensions"], json!(["https://extensions.example/x"]));
    // The specification makes contextId optional; the document's own types do not.
    assert!(accepted(json!({"kind": "message", "messageId": "m", "role": "user", "parts": []})));
    assert_eq!(refused(json!({"kind": "message", "role": "user", "parts": []})), "message.messageId");
}

#[test]
fn task_has_its_kind_and_its_core_members() {
    assert_eq!(members(&task(samples::bare_task())), ["contextId", "id", "kind", "status"]);
    let full = task(samples::task());
    assert_eq!(members(&full), ["artifacts", "contextId", "history", "id", "kind", "metadata", "status"]);
    assert_eq!(full["kind"], "task");
}

#[test]
fn task_status_has_a_state_and_optionally_message_and_timestamp() {
    assert_eq!(change(TaskState::Working)["status"], json!({"state": "working"}));
    let full = task(samples::task())["status"].take();
    assert_eq!(members(&full), ["message", "state", "timestamp"]);
    assert_eq!(full["message"]["kind"], "message");
    assert_eq!(full["timestamp"], "2026-11-15T07:28:45.123Z");
}

#[test]
fn artifact_has_its_id_and_parts_and_optional_rest() {
    let mut full = task(samples::task());
    let full = full["artifacts"][0].take();
    assert_eq!(members(&full), ["artifactId", "description", "extensions", "metadata", "name", "parts"]);
    let bare = Task { artifacts: vec![Arc::new(Artifact::new("a", Vec::new()))], ..samples::bare_task() };
    assert_eq!(task(bare)["artifacts"][0], json!({"artifactId": "a", "parts": []}));
}

#[test]
fn task_status_update_event_says_whether_it_is_final() {
    let value = change(TaskState::Working);
    assert_eq!(members(&value), ["contextId", "final", "kind", "status", "taskId"]);
    assert_eq!(value["kind"], "status-update");
    for state in TaskState::ALL {
        let over = state.is_terminal() || state.is_interrupted();
        assert_eq!(change(state)["final"], over, "{state:?}");
    }
}

#[test]
fn task_artifact_update_event_has_its_members() {
    let chunk = samples::events().into_iter().find(|(name, _)| *name == "artifact-more").unwrap().1;
    let value = event(&chunk);
    assert_eq!(members(&value), ["append", "artifact", "contextId", "kind", "lastChunk", "metadata", "taskId"]);
    assert_eq!(value["kind"], "artifact-update");
    assert_eq!((&value["append"], &value["lastChunk"]), (&json!(true), &json!(true)));
}

#[test]
fn json_rpc_response_wraps_replies_and_every_event_of_a_stream() {
    let reply = Reply::Task(samples::shown(samples::bare_task()));
    let whole: Value = serde_json::from_slice(&json_rpc::respond("\"r\"", |out| V0_3.encode_reply(out, &reply))).unwrap();
    assert_eq!(members(&whole), ["id", "jsonrpc", "result"]);
    assert_eq!((&whole["jsonrpc"], &whole["id"], &whole["result"]["kind"]), (&json!("2.0"), &json!("r"), &json!("task")));

    for (name, event) in samples::events() {
        let mut frames = Frames::json_rpc("7");
        V0_3.encode_event(&mut frames, &samples::face(), &event);
        let text = String::from_utf8(frames.take()).unwrap();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let whole: Value = serde_json::from_str(data).unwrap();
            assert_eq!(members(&whole), ["id", "jsonrpc", "result"], "{name}");
            assert_eq!((&whole["jsonrpc"], &whole["id"]), (&json!("2.0"), &json!(7)), "{name}");
        }
    }
}
