//! Streams that are refused before their first event: each version gets the refusal where its clients look for it.

use serde_json::{Value, json};

use super::{JSON, NEWEST};
use crate::support::server::{Server, Setup};

const NO_SKILL: &str = "[policy.default]\nallowed_skills = ['no such skill']\n";
const SKILL_DENIED: i64 = -32056;
const TASK_NOT_FOUND: i64 = -32001;
const INVALID_PARAMS: i64 = -32602;

struct Refused {
    status: u16,
    content_type: String,
    text: String,
}

async fn call(server: &Server, headers: &[(&str, &str)], method: &str, params: &Value) -> Refused {
    let body = json!({ "jsonrpc": "2.0", "id": "r-1", "method": method, "params": params }).to_string();
    let request = reqwest::Client::new().post(server.url()).body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.expect("an answer");
    let content_type = response.headers()["content-type"].to_str().expect("text").to_owned();
    Refused { status: response.status().as_u16(), content_type, text: response.text().await.expect("an answer to its end") }
}

fn message_0_3() -> Value {
    json!({ "message": { "kind": "message", "role": "user", "messageId": "m", "parts": [{ "kind": "text", "text": "hi" }] } })
}

fn message_original(name: &str) -> Value {
    json!({ "id": name, "message": { "role": "user", "parts": [{ "type": "text", "text": "hi" }] } })
}

#[tokio::test]
async fn older_clients_get_a_refused_stream_as_one_error_event() {
    let server = Setup::conformance().config(NO_SKILL).start();
    for (method, params, code) in [
        ("message/stream", message_0_3(), SKILL_DENIED),
        ("message/stream", json!({ "message": 7 }), INVALID_PARAMS),
        ("tasks/resubscribe", json!({ "id": "nobody" }), TASK_NOT_FOUND),
        ("tasks/sendSubscribe", message_original("mine"), SKILL_DENIED),
    ] {
        let Refused { status, content_type, text } = call(&server, &[JSON], method, &params).await;
        assert_eq!((status, content_type.as_str()), (200, "text/event-stream"), "{method}: {text}");
        let data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let [data] = data[..] else { panic!("{method}: one event was wanted: {text}") };
        let event: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!((&event["jsonrpc"], &event["id"]), (&json!("2.0"), &json!("r-1")), "{method}: {event}");
        assert_eq!(event["error"]["code"], code, "{method}: {event}");
    }
}

#[tokio::test]
async fn a_refused_stream_of_1_0_and_a_refused_unary_call_are_json() {
    let server = Setup::conformance().config(NO_SKILL).start();
    let message = json!({ "message": { "role": "ROLE_USER", "messageId": "m", "parts": [{ "text": "hi" }] } });
    for (headers, method, params, code) in [
        (&[JSON, NEWEST][..], "SendStreamingMessage", message, SKILL_DENIED),
        (&[JSON, NEWEST], "SubscribeToTask", json!({ "id": "nobody" }), TASK_NOT_FOUND),
        (&[JSON], "message/send", message_0_3(), SKILL_DENIED),
        (&[JSON], "tasks/send", message_original("mine"), SKILL_DENIED),
    ] {
        let Refused { content_type, text, .. } = call(&server, headers, method, &params).await;
        assert_eq!(content_type, "application/json", "{method}: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_stream_that_waits_for_a_task_gets_the_refusal_of_its_send() {
    let server = Setup::conformance().config(&format!("{NO_SKILL}[limits]\nlisten_ms = 3600000\n")).start();
    let listening = reqwest::get(format!("{}/tasks/sendSubscribe?id=mine", server.url())).await.expect("a stream");
    // The head of the stream is sent before the listener waits: sends go out until one finds it there.
    let sends = async {
        loop {
            call(&server, &[JSON], "tasks/send", &message_original("another")).await;
            call(&server, &[JSON], "tasks/send", &message_original("mine")).await;
        }
    };
    let text = tokio::select! {
        text = listening.text() => text.expect("a stream to its end"),
        () = sends => unreachable!("it goes on until the listener has its answer"),
    };
    let [frame] = text.split_terminator("\n\n").collect::<Vec<_>>()[..] else { panic!("one event was wanted: {text}") };
    let data = frame.strip_prefix("event: error\ndata: ").unwrap_or_else(|| panic!("{text}"));
    let error: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(error["code"], SKILL_DENIED, "{error}");
}
