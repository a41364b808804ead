//! Ids and names with control characters are refused by the name of their field, and nothing comes of the call.

use serde_json::{Value, json};

use super::{JSON, NEWEST, post, tasks};
use crate::support::server::Setup;

/// A message that would be taken, with something else in one place.
fn message_with(place: &str, value: Value) -> Value {
    let mut params = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete x" }] } });
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    params.pointer_mut(parent).expect("it is there")[name] = value;
    params
}

#[tokio::test]
async fn an_id_or_a_name_with_a_control_character_is_refused_by_the_name_of_its_field() {
    let server = Setup::conformance().config("[push]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n").start();
    let bad = "a\u{1b}[2Jb";
    let cases = [
        ("message.messageId", message_with("/message/messageId", json!(bad))),
        ("message.contextId", message_with("/message/contextId", json!(bad))),
        ("message.taskId", message_with("/message/taskId", json!(bad))),
        ("message.referenceTaskIds[1]", message_with("/message/referenceTaskIds", json!(["t", bad]))),
        ("message.metadata.skill", message_with("/message/metadata", json!({ "skill": bad }))),
        ("tenant", message_with("/tenant", json!(bad))),
        (
            "configuration.taskPushNotificationConfig.id",
            message_with("/configuration", json!({ "taskPushNotificationConfig": { "url": "http://127.0.0.1:9/", "id": bad } })),
        ),
    ];
    for (field, params) in cases {
        for method in ["SendMessage", "SendStreamingMessage"] {
            let body = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params });
            let (_, answer) = post(&server, "/", &[JSON, NEWEST], body.to_string()).await;
            let error = &answer["error"];
            assert_eq!(error["code"], -32602, "{field}: {answer}");
            let message = error["message"].as_str().expect("words");
            assert!(message.starts_with(&format!("{field}: ")), "{field}: {answer}");
        }
        let (status, answer) = post(&server, "/message:send", &[JSON, NEWEST], params.to_string()).await;
        assert!(status == 400 && answer.to_string().contains(field), "{field}: {status} {answer}");
    }
    let original = json!({ "jsonrpc": "2.0", "id": 5, "method": "tasks/send", "params": {
        "id": "a\nb", "message": { "role": "user", "parts": [{ "type": "text", "text": "complete x" }] } } });
    let (_, answer) = post(&server, "/", &[JSON], original.to_string()).await;
    let said = answer["error"]["message"].as_str().expect("words");
    assert!(said.starts_with("id: has the control character U+000A"), "{answer}");
    assert_eq!(tasks(&server).await, 0, "nothing came of them");
}
