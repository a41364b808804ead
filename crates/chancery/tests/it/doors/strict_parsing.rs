//! What two readers could understand differently, and what is simply wrong, is refused by name, and nothing comes of it.

use serde_json::{Value, json};

use super::{JSON, NEWEST, get, post, tasks};
use crate::support::server::Setup;

/// The params of a message that would be taken, with something else in place of one of its pieces.
fn send_with(piece: &str, other: &str) -> Vec<u8> {
    let whole = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"complete x"}]},"configuration":{}}"#;
    assert!(whole.contains(piece), "{piece}");
    whole.replace(piece, other).into_bytes()
}

fn enveloped(params: &[u8]) -> Vec<u8> {
    let head = br#"{"jsonrpc":"2.0","id":5,"method":"SendMessage","params":"#;
    [head, params, b"}"].concat()
}

/// Kind of refusal, and the place that has to be named in it.
enum Wrong {
    /// No JSON that means one thing: the document is refused.
    Parse(&'static str),
    /// JSON, but not a request: the field is named, also for machines.
    Field(&'static str),
}

fn cases() -> Vec<(&'static str, Vec<u8>, Wrong)> {
    use Wrong::{Field, Parse};
    let deep = format!(r#""parts":[{{"data":{}{}}}]"#, "[".repeat(70), "]".repeat(70));
    let not_utf8 = {
        let mut bytes = send_with("complete x", "complete #");
        let place = bytes.iter().position(|byte| *byte == b'#').unwrap();
        bytes[place] = 0xff;
        bytes
    };
    let parts = r#""parts":[{"text":"complete x"}]"#;
    let long_id = format!(r#""messageId":"{}""#, "m".repeat(257));
    let much_metadata = format!(r#""configuration":{{}},"metadata":{{"a":"{}"}}"#, "x".repeat(65 * 1024));
    let many_parts = format!(r#""parts":[{}]"#, vec![r#"{"text":"x"}"#; 257].join(","));
    vec![
        (
            "a key twice",
            send_with(r#""messageId":"m""#, r#""messageId":"m","messageId":"n""#),
            Parse("message.messageId: appears twice"),
        ),
        (
            "a key twice in another spelling",
            send_with(r#""role":"#, r#""rol\u0065":"ROLE_AGENT","role":"#),
            Parse("message.role: appears twice"),
        ),
        ("not UTF-8", not_utf8, Parse("not UTF-8")),
        ("too deep", send_with(parts, &deep), Parse("limits.json_depth = 64")),
        ("cut off", send_with(r#""configuration":{}}"#, r#""configuration":{"#), Parse("EOF")),
        ("a number for a text", send_with(r#""messageId":"m""#, r#""messageId":7"#), Field("message.messageId")),
        ("an object for a list", send_with(r#"[{"text":"complete x"}]"#, "{}"), Field("message.parts")),
        ("a list for an object", send_with(r#""configuration":{}"#, r#""configuration":[]"#), Field("configuration")),
        (
            "a number that is too large",
            send_with(r#""configuration":{}"#, r#""configuration":{"historyLength":3000000000}"#),
            Field("configuration.historyLength"),
        ),
        (
            "a number below zero",
            send_with(r#""configuration":{}"#, r#""configuration":{"historyLength":-1}"#),
            Field("configuration.historyLength"),
        ),
        ("an unknown role", send_with("ROLE_USER", "ROLE_KING"), Field("message.role")),
        ("no message", b"{}".to_vec(), Field("message")),
        ("no id", send_with(r#""messageId":"m","#, ""), Field("message.messageId")),
        ("no parts", send_with(r#"[{"text":"complete x"}]"#, "[]"), Field("message.parts")),
        ("a part that is nothing", send_with(r#"{"text":"complete x"}"#, r#"{"text":"a"},{}"#), Field("message.parts[1]")),
        (
            "a part that is two things",
            send_with(r#"{"text":"complete x"}"#, r#"{"text":"a","url":"b"}"#),
            Field("message.parts[0]"),
        ),
        ("bytes that are no base64", send_with(r#"{"text":"complete x"}"#, r#"{"raw":"%%"}"#), Field("message.parts[0].raw")),
        ("metadata that is no object", send_with(r#""configuration":{}"#, r#""metadata":3"#), Field("metadata")),
        ("an id that is too long", send_with(r#""messageId":"m""#, &long_id), Field("message.messageId")),
        ("too much metadata", send_with(r#""configuration":{}"#, &much_metadata), Field("metadata")),
        ("too many parts", send_with(parts, &many_parts), Field("message.parts")),
    ]
}

fn violations(details: &Value) -> Vec<&str> {
    let lists = details.as_array().into_iter().flatten().filter_map(|detail| detail["fieldViolations"].as_array());
    lists.flatten().filter_map(|violation| violation["field"].as_str()).collect()
}

#[tokio::test]
async fn every_kind_of_wrong_input_is_refused_by_name_over_both_json_bindings_and_nothing_comes_of_it() {
    let server = Setup::conformance().start();
    for (what, params, wrong) in cases() {
        let (status, json_rpc) = post(&server, "/", &[NEWEST, JSON], enveloped(&params)).await;
        let (rest_status, rest) = post(&server, "/message:send", &[NEWEST, JSON], params).await;
        let (of_json_rpc, of_rest) = (&json_rpc["error"], &rest["error"]);
        let (code, reason, word) = match wrong {
            Wrong::Parse(word) => (-32700, "INVALID_REQUEST", word),
            Wrong::Field(field) => (-32602, "INVALID_PARAMS", field),
        };
        assert_eq!((status, &of_json_rpc["code"]), (200, &json!(code)), "{what}: {json_rpc}");
        assert_eq!((rest_status, &of_rest["code"]), (400, &json!(400)), "{what}: {rest}");
        for (error, details) in [(of_json_rpc, &of_json_rpc["data"]), (of_rest, &of_rest["details"])] {
            assert_eq!(details[0]["reason"], reason, "{what}: {error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains(word)), "{what}: {error}");
            if let Wrong::Field(field) = wrong {
                assert_eq!(violations(details), [field], "{what}: {error}");
            }
        }
        // A document that could be read as far as its id is answered to that id.
        let id = if matches!(wrong, Wrong::Parse(_)) { Value::Null } else { json!(5) };
        assert_eq!(json_rpc["id"], id, "{what}: {json_rpc}");
    }
    assert_eq!(tasks(&server).await, 0, "nothing came of any of it");
}

#[tokio::test]
async fn what_is_not_known_is_passed_over_and_both_spellings_are_read() {
    let server = Setup::conformance().start();
    let params = br#"{"message":{"message_id":"m","role":1,"parts":[{"text":"complete x","media_type":"text/plain"}],"mood":{"a":[1]}},"later":true}"#;
    let (_, answer) = post(&server, "/", &[NEWEST, JSON], enveloped(params)).await;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(tasks(&server).await, 1);
}

#[tokio::test]
async fn the_older_forms_are_as_strict() {
    let server = Setup::conformance().start();
    let older = |message: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"method":"message/send","params":{{"message":{message}}}}}"#);
    for (message, code, field) in [
        (r#"{"kind":"message","messageId":"m","messageId":"n","role":"user","parts":[]}"#, -32700, "message.messageId"),
        (r#"{"kind":"message","messageId":"m","role":"king","parts":[{"kind":"text","text":"x"}]}"#, -32602, "message.role"),
        (r#"{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"song","text":"x"}]}"#, -32602, "message.parts[0]"),
        (r#"{"kind":"message","messageId":"m","role":"user","parts":[]}"#, -32602, "message.parts"),
    ] {
        let (_, answer) = post(&server, "/", &[JSON], older(message)).await;
        assert_eq!(answer["error"]["code"], code, "{message}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(field), "{message}: {answer}");
    }
    let wrong_role = r#"{"message":{"messageId":"m","role":"ROLE_KING","content":[{"text":"x"}]}}"#;
    let (status, answer) = post(&server, "/v1/message:send", &[JSON], wrong_role).await;
    assert_eq!((status, &answer["code"]), (400, &json!(-32602)), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("message.role"), "{answer}");
    let original = r#"{"jsonrpc":"2.0","id":5,"method":"tasks/send","params":{"message":{"role":"user","parts":[{"type":"text","text":"x"}]}}}"#;
    let (_, answer) = post(&server, "/", &[JSON], original).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("id: "), "{answer}");
    assert_eq!(tasks(&server).await, 0);
}

#[tokio::test]
async fn wrong_values_in_a_query_are_refused_and_not_taken_for_none() {
    let server = Setup::conformance().start();
    for (query, field) in [
        ("status=working", "status"),
        ("status=TASK_STATE_HAPPY", "status"),
        ("pageSize=many", "pageSize"),
        ("pageSize=0", "pageSize"),
        ("pageToken=made-up", "pageToken"),
        ("includeArtifacts=perhaps", "includeArtifacts"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("historyLength=-3", "historyLength"),
    ] {
        let (status, answer) = get(&server, &format!("/tasks?{query}"), &[NEWEST]).await;
        assert_eq!((status, violations(&answer["error"]["details"])), (400, vec![field]), "{query}: {answer}");
    }
}
