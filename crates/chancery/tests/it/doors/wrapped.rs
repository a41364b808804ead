//! Callers that mix versions, as frameworks ship them: 0.3 methods with parts of 1.0, and calls to an address without its card.

use serde_json::{Value, json};

use super::{JSON, NEWEST, post};
use crate::support::server::{Home, Server, Setup};

fn call(id: Value, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// What fasta2a's client sends: a part without `kind`.
fn message(text: &str) -> Value {
    json!({ "message": { "role": "user", "parts": [{ "text": text }], "messageId": "m" } })
}

async fn ask(server: &Server, id: Value, method: &str, params: Value) -> Value {
    let (status, answer) = post(server, "/", &[JSON], call(id, method, params)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn events(server: &Server, headers: &[(&str, &str)], body: String) -> Vec<Value> {
    let request = reqwest::Client::new().post(server.url()).body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let text = request.send().await.unwrap().text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].take()).collect()
}

#[tokio::test]
async fn law_1_5_2_a_message_without_kind_is_answered_in_the_wrapper_with_0_3_spellings() {
    let server = Setup::conformance().start();
    let task = ask(&server, json!("a"), "message/send", message("complete hello")).await["result"]["task"].take();
    assert_eq!(task["status"]["state"], "completed", "{task}");
    assert_eq!(task["history"][0]["role"], "user", "{task}");
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": "hello" }]), "{task}");
    assert_eq!(task.get("kind"), None, "{task}");

    let replied = ask(&server, json!("a"), "message/send", message("message hi")).await["result"]["message"].take();
    assert_eq!((&replied["role"], &replied["parts"]), (&json!("agent"), &json!([{ "text": "hi" }])), "{replied}");
}

#[tokio::test]
async fn law_1_5_2_a_message_without_kind_is_streamed_in_the_wrapper() {
    let server = Setup::conformance().start();
    let seen = events(&server, &[JSON], call(json!("a"), "message/stream", message("stream 2"))).await;
    let names: Vec<_> =
        seen.iter().map(|event| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join("+")).collect();
    assert_eq!(names, ["task", "artifactUpdate", "artifactUpdate", "statusUpdate"], "{seen:?}");
    assert_eq!(seen[0]["task"]["status"]["state"], "submitted");
    assert_eq!(seen[1]["artifactUpdate"]["artifact"]["parts"][0], json!({ "text": "chunk-1 " }));
    assert_eq!(seen[3]["statusUpdate"]["status"]["state"], "completed");
}

#[tokio::test]
async fn law_1_5_2_a_task_is_shown_in_the_dialect_that_made_it_after_a_restart_too() {
    let home = Home::new();
    let start = || Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let server = start();
    let made = ask(&server, json!("a"), "message/send", message("ask what?")).await["result"]["task"].take();
    server.kill();

    let server = start();
    // fasta2a asks without an id, and its reader wants the task itself here, as 1.0 has it.
    let got = ask(&server, Value::Null, "tasks/get", json!({ "id": made["id"] })).await;
    assert_eq!((&got["id"], &got["result"]["id"]), (&Value::Null, &made["id"]), "{got}");
    assert_eq!(got["result"]["status"]["state"], "input-required", "{got}");
    assert_eq!(got["result"]["status"]["message"]["parts"], json!([{ "text": "what?" }]), "{got}");
    let canceled = ask(&server, Value::Null, "tasks/cancel", json!({ "id": made["id"] })).await;
    assert_eq!(
        (canceled["result"].get("kind"), &canceled["result"]["status"]["state"]),
        (None, &json!("canceled")),
        "{canceled}"
    );
}

#[tokio::test]
async fn a_part_that_could_be_several_things_or_none_is_refused_as_before() {
    let server = Setup::conformance().start();
    for part in [json!({}), json!({ "text": "a", "data": {} }), json!({ "kind": "song", "text": "a" }), json!({ "song": "la" })] {
        let message = json!({ "message": { "role": "user", "parts": [part], "messageId": "m" } });
        let (_, answer) = post(&server, "/", &[JSON], call(json!(1), "message/send", message)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("message.parts[0]"), "{answer}");
    }
}

#[tokio::test]
async fn a_message_with_kind_gets_exactly_the_0_3_answer() {
    let server = Setup::conformance().start();
    let parts = json!([{ "kind": "text", "text": "complete hello" }]);
    let message = json!({ "message": { "role": "user", "parts": parts, "messageId": "m" } });
    let answer = ask(&server, json!(1), "message/send", message).await;
    assert_eq!(
        (&answer["result"]["kind"], &answer["result"]["status"]["state"]),
        (&json!("task"), &json!("completed")),
        "{answer}"
    );
    assert_eq!(answer["result"]["artifacts"][0]["parts"][0]["kind"], "text", "{answer}");
}

#[tokio::test]
async fn parts_of_the_0_3_rest_form_have_no_kind_either_way() {
    let server = Setup::conformance().start();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "complete hello" }] });
    let body = json!({ "request": message, "configuration": { "blocking": true } });
    let (status, answer) = post(&server, "/v1/message:send", &[JSON], body.to_string()).await;
    assert_eq!((status, &answer["task"]["artifacts"][0]["parts"][0]["text"]), (200, &json!("hello")), "{answer}");
}

#[tokio::test]
async fn law_1_5_2_a_json_rpc_call_at_a_rest_path_is_answered_as_json_rpc() {
    // As Agno's client: the paths of 0.3 REST with JSON-RPC bodies.
    let server = Setup::conformance().start();
    let parts = json!([{ "kind": "text", "text": "complete hello" }]);
    let message = json!({ "message": { "role": "user", "parts": parts, "messageId": "m" } });
    let (status, answer) = post(&server, "/v1/message:send", &[JSON], call(json!("c"), "message/send", message.clone())).await;
    assert_eq!((status, &answer["id"], &answer["result"]["kind"]), (200, &json!("c"), &json!("task")), "{answer}");
    assert_eq!(answer["result"]["artifacts"][0]["parts"][0]["text"], "hello", "{answer}");
    let client = reqwest::Client::new().post(format!("{}/v1/message:stream", server.url())).header(JSON.0, JSON.1);
    let stream = client.body(call(json!("c"), "message/stream", message)).send().await.unwrap().text().await.unwrap();
    let is_whole = [r#""jsonrpc":"2.0""#, "hello", "completed"].iter().all(|word| stream.contains(word));
    assert!(is_whole, "{stream}");
    let (status, answer) = post(&server, "/v1/message:send", &[JSON], json!({ "jsonrpc": "2.0" }).to_string()).await;
    assert_eq!(status, 400, "neither: {answer}");
    let body = call(json!("c"), "message/send", json!({}));
    let (status, answer) = post(&server, "/acme/v1/message:send", &[JSON], body).await;
    assert_eq!((status, &answer["jsonrpc"]), (400, &Value::Null), "a tenant in the path is not overlooked: {answer}");
}

#[tokio::test]
async fn law_1_5_3_a_client_that_reads_no_card_posts_1_0_to_exactly_the_url_it_was_given() {
    let server = Setup::conformance().args(["--agent", "echo"]).start();
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    // The last two are where PraisonAI's client posts, below the URL that it was given.
    for path in ["", "/", "/agents/echo", "/agents/echo/", "/a2a", "/agents/echo/a2a"] {
        let (status, answer) = post(&server, path, &[JSON, NEWEST], call(json!(1), "SendMessage", message.clone())).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert_eq!(answer["result"]["task"]["artifacts"][0]["parts"][0]["text"], "hello", "{path}: {answer}");
        let client = reqwest::Client::new().post(format!("{}{path}", server.url())).header(JSON.0, JSON.1);
        let body = call(json!(1), "SendStreamingMessage", message.clone());
        let stream = client.header(NEWEST.0, NEWEST.1).body(body).send().await.unwrap().text().await.unwrap();
        assert!(stream.contains("hello") && stream.contains("TASK_STATE_COMPLETED"), "{path}: {stream}");
    }
}

#[tokio::test]
async fn law_1_5_4_a_client_of_0_3_goes_from_the_card_to_the_end_of_a_turn_without_a_version_header() {
    let server = Setup::conformance().start();
    let card = reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.unwrap();
    let card: Value = serde_json::from_str(&card.text().await.unwrap()).unwrap();
    assert_eq!((&card["preferredTransport"], &card["capabilities"]["streaming"]), (&json!("JSONRPC"), &json!(true)), "{card}");
    let url = card["url"].as_str().expect("0.3 clients call this address");
    // The stream ends where the turn does: done, or waiting for the caller.
    for (text, end) in [("complete hello", "completed"), ("ask which one?", "input-required")] {
        let parts = json!([{ "kind": "text", "text": text }]);
        let message = json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": parts } });
        let request = reqwest::Client::new().post(url).header(JSON.0, JSON.1);
        let stream = request.body(call(json!(1), "message/stream", message)).send().await.unwrap().text().await.unwrap();
        let last = stream.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().expect("an event");
        let last: Value = serde_json::from_str(last).unwrap();
        let result = &last["result"];
        assert_eq!((&result["status"]["state"], &result["final"]), (&json!(end), &json!(true)), "{stream}");
    }
}
