//! Limits on one call: its body, its JSON, its message, its page.

use futures::stream;
use serde_json::{Value, json};

use super::{assert_refused, limited, refusal};
use crate::support::server::{Home, Server, Setup};

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const PARSE: i64 = -32700;
const TOO_LARGE: i64 = -32041;
const NOT_FOUND: i64 = -32001;

/// A call that gets as far as the service, which then does not know the task.
const HARMLESS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"nobody"}"#;

async fn post(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let request = reqwest::Client::new().post(format!("{}{path}", server.url())).header("A2A-Version", "1.0");
    let response = request.header("Content-Type", "application/json").body(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Without a length, so that it is only known when all of it has come.
fn in_pieces(body: &str) -> reqwest::Body {
    let pieces: Vec<_> = body.as_bytes().chunks(100).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    reqwest::Body::wrap_stream(stream::iter(pieces))
}

#[tokio::test]
async fn a_body_at_its_limit_is_read_and_a_longer_one_refused_however_it_is_sent() {
    let server = limited("body_bytes = 1000");
    let call = format!("{HARMLESS}}}");
    let exact = format!("{call:1000}");
    let longer = format!("{call:1001}");
    for body in [reqwest::Body::from(exact.clone()), in_pieces(&exact)] {
        let (status, answer) = post(&server, "/", body).await;
        assert_eq!((status, refusal(&answer).0), (200, NOT_FOUND), "{answer}");
    }
    for body in [reqwest::Body::from(longer.clone()), in_pieces(&longer)] {
        let (status, answer) = post(&server, "/", body).await;
        assert_eq!(status, 413, "{answer}");
        assert_refused(&answer, TOO_LARGE, "limits.body_bytes");
    }
    let (status, answer) = post(&server, "/message:send", longer).await;
    assert_eq!(status, 413, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("limits.body_bytes"), "{answer}");
}

#[tokio::test]
async fn a_grpc_message_at_the_limit_of_bodies_is_read_and_a_longer_one_refused() {
    let server = limited("body_bytes = 1000");
    let call = async |bytes: usize| {
        // Any text field will do: only the length of the whole message matters.
        let id = "x".repeat(bytes - 3);
        let message: Vec<u8> = [&[0x0a, 0x80 | (id.len() & 0x7f) as u8, (id.len() >> 7) as u8], id.as_bytes()].concat();
        assert_eq!(message.len(), bytes);
        let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
        let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
        let url = format!("{}/lf.a2a.v1.A2AService/GetTask", server.url());
        let request = client.post(url).header("content-type", "application/grpc").header("te", "trailers").body(framed);
        let response = request.send().await.unwrap();
        response.headers().get("grpc-status").map(|status| status.to_str().unwrap().to_owned())
    };
    let exact = call(1000).await;
    assert!(exact.as_deref() != Some("8") && exact.as_deref() != Some("11"), "at the limit it is read: {exact:?}");
    assert_eq!(call(1001).await.as_deref(), Some("8"), "RESOURCE_EXHAUSTED");
}

#[tokio::test]
async fn json_is_held_at_its_depth_its_values_and_its_names() {
    let server = limited("json_depth = 8\njson_nodes = 40\njson_key_bytes = 16");
    let with = async |more: &str| post(&server, "/", format!("{HARMLESS},{more}}}")).await.1;
    let nested = |depth: usize| format!(r#""x":{}{}"#, "[".repeat(depth), "]".repeat(depth));
    let named = |bytes: usize| format!(r#""{}":1"#, "k".repeat(bytes));
    // The call itself has two objects, and four commas between its members and ours.
    let values = |count: usize| format!(r#""x":[{}]"#, vec!["1"; count - 6].join(","));
    for (passes, refused, limit) in [
        (nested(7), nested(8), "limits.json_depth = 8"),
        (named(16), named(17), "limits.json_key_bytes = 16"),
        (values(40), values(41), "limits.json_nodes = 40"),
    ] {
        let answer = with(&passes).await;
        assert_eq!(refusal(&answer).0, NOT_FOUND, "{limit}: {answer}");
        assert_refused(&with(&refused).await, PARSE, limit);
    }
}

fn message(parts: usize) -> Value {
    json!({ "messageId": "m", "role": "ROLE_USER", "parts": vec![json!({ "text": "hello" }); parts] })
}

async fn send(server: &Server, message: Value) -> Value {
    server.call("SendMessage", json!({ "message": message })).await
}

#[track_caller]
fn assert_done(answer: &Value) {
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
}

#[tokio::test]
async fn a_message_has_as_many_parts_as_it_may_and_no_more() {
    let server = limited("message_parts = 3");
    assert_done(&send(&server, message(3)).await);
    assert_refused(&send(&server, message(4)).await, INVALID_PARAMS, "limits.message_parts = 3");
    let listed = server.call("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 1, "a refused message leaves nothing behind: {listed}");
}

#[tokio::test]
async fn a_message_points_at_as_many_tasks_as_it_may_and_no_more() {
    // The default is sixteen; a configured one holds as well.
    for (server, limit) in [(limited(""), 16), (limited("reference_tasks = 2"), 2)] {
        let task = send(&server, message(1)).await["result"]["task"]["id"].take();
        let pointing = async |count: usize| {
            let mut message = message(1);
            message["referenceTaskIds"] = vec![task.clone(); count].into();
            send(&server, message).await
        };
        assert_done(&pointing(limit).await);
        assert_refused(&pointing(limit + 1).await, INVALID_PARAMS, &format!("limits.reference_tasks = {limit}"));
    }
}

#[tokio::test]
async fn metadata_is_as_long_as_it_may_be_and_no_longer() {
    let server = limited("metadata_bytes = 50");
    let metadata = |bytes: usize| json!({ "k": "x".repeat(bytes - r#"{"k":""}"#.len()) });
    let of_message = |bytes: usize| {
        let mut message = message(1);
        message["metadata"] = metadata(bytes);
        json!({ "message": message })
    };
    let of_part = |bytes: usize| {
        let mut message = message(1);
        message["parts"][0]["metadata"] = metadata(bytes);
        json!({ "message": message })
    };
    let of_call = |bytes: usize| json!({ "message": message(1), "metadata": metadata(bytes) });
    for params in [of_message(50), of_part(50), of_call(50)] {
        assert_done(&server.call("SendMessage", params).await);
    }
    for params in [of_message(51), of_part(51), of_call(51)] {
        assert_refused(&server.call("SendMessage", params).await, INVALID_PARAMS, "limits.metadata_bytes = 50");
    }
}

#[tokio::test]
async fn unknown_members_of_an_object_are_as_long_as_its_metadata_may_be_and_no_longer() {
    let server = limited("metadata_bytes = 50");
    let filling = |bytes: usize| json!("x".repeat(bytes - r#""u":"","#.len()));
    let of_message = |bytes: usize| {
        let mut message = message(1);
        message["u"] = filling(bytes);
        json!({ "message": message })
    };
    let of_part = |bytes: usize| {
        let mut message = message(1);
        message["parts"][0]["u"] = filling(bytes);
        json!({ "message": message })
    };
    let of_call = |bytes: usize| json!({ "message": message(1), "u": filling(bytes) });
    for params in [of_message(50), of_part(50), of_call(50)] {
        assert_done(&server.call("SendMessage", params).await);
    }
    for params in [of_message(51), of_part(51), of_call(51)] {
        assert_refused(&server.call("SendMessage", params).await, INVALID_PARAMS, "limits.metadata_bytes = 50");
    }
}

#[tokio::test]
async fn ids_that_callers_choose_are_as_long_as_they_may_be_and_no_longer() {
    let server = limited("id_bytes = 40");
    for field in ["messageId", "contextId", "taskId"] {
        let with = async |bytes: usize| {
            let mut message = message(1);
            message[field] = json!("i".repeat(bytes));
            send(&server, message).await
        };
        let answer = with(40).await;
        assert!(answer["result"].is_object() || refusal(&answer).0 == NOT_FOUND, "{field}: {answer}");
        assert_refused(&with(41).await, INVALID_PARAMS, "limits.id_bytes = 40");
    }
    let with_key = async |bytes: usize| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message(1) } });
        let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0");
        let answer: Value =
            request.header("Idempotency-Key", "k".repeat(bytes)).json(&body).send().await.unwrap().json().await.unwrap();
        answer
    };
    assert_done(&with_key(40).await);
    assert_refused(&with_key(41).await, INVALID_PARAMS, "limits.id_bytes = 40");
}

#[tokio::test]
async fn the_id_of_a_json_rpc_call_is_as_long_as_it_may_be_and_no_longer() {
    let server = limited("");
    let with = async |id: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "SendMessage", "params": { "message": message(1) } });
        let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let longest = json!("i".repeat(256));
    let answer = with(longest.clone()).await;
    assert_done(&answer);
    assert_eq!(answer["id"], longest);
    let refused = with(json!("i".repeat(257))).await;
    assert_refused(&refused, INVALID_REQUEST, "limits.json_rpc_id_bytes = 256");
    assert_eq!(refused["id"], Value::Null, "it is not repeated");
}

#[tokio::test]
async fn a_page_is_as_large_as_it_may_be_and_no_larger() {
    let server = limited("page_size = 3\npage_size_default = 2");
    for _ in 0..4 {
        assert_done(&send(&server, message(1)).await);
    }
    let page = async |params: Value| server.call("ListTasks", params).await;
    let length = |page: &Value| page["result"]["tasks"].as_array().map(Vec::len);
    assert_eq!(length(&page(json!({ "pageSize": 3 })).await), Some(3));
    assert_refused(&page(json!({ "pageSize": 4 })).await, INVALID_PARAMS, "limits.page_size = 3");
    assert_refused(&page(json!({ "pageSize": 0 })).await, INVALID_PARAMS, "pageSize");
    let first = page(json!({})).await;
    assert_eq!(length(&first), Some(2));
    let rest = page(json!({ "pageToken": first["result"]["nextPageToken"] })).await;
    assert_eq!((length(&rest), rest["result"]["nextPageToken"].as_str()), (Some(2), Some("")), "nothing is lost between pages");
}

#[tokio::test]
async fn a_page_of_the_catalog_is_as_large_as_it_may_be_and_no_larger() {
    let agents = ["a", "b", "c"].map(|name| format!("[agents.{name}]\nrun = \"echo\"\n")).concat();
    let server = Setup::in_home(&Home::new()).config(&format!("[limits]\ncatalog_page = 2\n{agents}")).start();
    let page = async |query: &str| -> Value {
        reqwest::get(format!("{}/agents{query}", server.url())).await.unwrap().json().await.unwrap()
    };
    for query in ["", "?limit=2"] {
        let first = page(query).await;
        assert_eq!((first["agents"].as_array().map(Vec::len), &first["next"]), (Some(2), &json!("b")), "{first}");
    }
    let rest = page("?after=b").await;
    assert_eq!((&rest["agents"][0]["name"], &rest["next"]), (&json!("c"), &Value::Null));
    for query in ["?limit=3", "?limit=0"] {
        let refused = page(query).await;
        assert_eq!(refused["error"]["code"], 400, "{refused}");
        assert!(refused.to_string().contains("limits.catalog_page = 2"), "{refused}");
    }
}
