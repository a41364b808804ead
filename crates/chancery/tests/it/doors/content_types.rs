//! JSON in, said to be JSON, and JSON out, said to be JSON: the last row of the 0.3 checklist, at the door.

use std::sync::Arc;

use chancery_protocol::{Binding, Message, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::json;

use super::{JSON, NEWEST, get, post, tasks};
use crate::support::server::{Server, Setup};
use crate::support::wire_client::{Combination, RawCall, RawClient};

fn send(method: &str) -> String {
    let parts = json!([{ "kind": "text", "text": "complete x" }]);
    let message = json!({ "kind": "message", "messageId": "m", "role": "user", "parts": parts });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } }).to_string()
}

async fn content_type_of(server: &Server, method: &str) -> String {
    let request = reqwest::Client::new().post(server.url()).header(JSON.0, JSON.1).body(send(method));
    request.send().await.unwrap().headers()["content-type"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn json_rpc_answers_are_application_json_whether_they_are_results_or_errors() {
    let server = Setup::conformance().start();
    assert_eq!(content_type_of(&server, "message/send").await, "application/json");
    assert_eq!(content_type_of(&server, "message/frobnicate").await, "application/json");
    assert_eq!(content_type_of(&server, "message/stream").await, "text/event-stream");
}

#[tokio::test]
async fn a_body_that_is_not_said_to_be_json_is_refused_and_nothing_is_made_of_it() {
    let server = Setup::conformance().start();
    let body = || send("message/send");
    for taken in ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/a2a+json"] {
        let (_, answer) = post(&server, "/", &[("Content-Type", taken)], body()).await;
        assert_eq!(answer["result"]["kind"], "task", "{taken}: {answer}");
    }
    let made = tasks(&server).await;
    for refused in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        let (status, answer) = post(&server, "/", &[("Content-Type", refused)], body()).await;
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32005)), "{refused}: {answer}");
    }
    let (status, newer) = post(&server, "/message:send", &[NEWEST, ("Content-Type", "text/plain")], body()).await;
    assert_eq!((status, &newer["error"]["details"][0]["reason"]), (400, &json!("CONTENT_TYPE_NOT_SUPPORTED")), "{newer}");
    let (status, older) = post(&server, "/v1/message:send", &[("Content-Type", "text/plain")], body()).await;
    assert_eq!((status, &older["type"]), (415, &json!("ContentTypeNotSupportedError")), "{older}");
    let (_, packed) = post(&server, "/", &[JSON, ("Content-Encoding", "gzip")], body()).await;
    assert_eq!(packed["error"]["code"], -32005, "{packed}");
    assert_eq!(tasks(&server).await, made);
}

#[tokio::test]
async fn calls_without_a_body_need_no_content_type() {
    let server = Setup::conformance().start();
    let (status, answer) = get(&server, "/tasks/nobody", &[NEWEST]).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(404)), "{answer}");
    let (status, answer) = post(&server, "/tasks/nobody:cancel", &[NEWEST], "").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(404)), "{answer}");
    let (status, answer) = post(&server, "/tasks/nobody:cancel", &[NEWEST, JSON], "").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(404)), "{answer}");
}

/// Deflate without compression, in the wrapper of gzip: small, and a bomb would look no different before it is unpacked.
fn gzipped(message: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packer, message).expect("memory takes it");
    packer.finish().expect("memory takes it")
}

#[tokio::test]
async fn a_grpc_message_that_is_packed_is_refused_unopened_and_nothing_is_made_of_it() {
    let server = Setup::conformance().start();
    let client = RawClient::new(server.url());
    let message = SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "x".repeat(1024 * 1024))),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    };
    for version in [Version::V1_0, Version::V0_3] {
        let combination = Combination { version, binding: Binding::Grpc };
        let plain = RawCall::of(combination, &Request::SendMessage(message.clone())).expect("a call");
        for encoding in ["gzip", "deflate", "zstd", "br"] {
            let packed = gzipped(&plain.body[5..]);
            let mut call = plain.clone().with("grpc-encoding", encoding);
            call.body = [&[1][..], &u32::try_from(packed.len()).unwrap().to_be_bytes(), &packed].concat();
            assert!(call.body.len() < 16 * 1024, "a thousandth of what it unpacks to");
            let answer = client.ask(&call).await;
            assert_eq!(answer.header("grpc-status"), Some("12"), "{version} {encoding}: {answer:?}");
        }
        // A message that says it is packed, of a call that does not say how.
        let mut unsaid = plain.clone();
        unsaid.body[0] = 1;
        assert!(client.ask(&unsaid).await.is_refusal(), "{version}");
    }
    assert_eq!(tasks(&server).await, 0);
}
