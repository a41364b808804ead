//! API keys: in either header, in both, added, rotated and revoked while the node runs.

use chancery_identity::credentials::KeyHash;
use serde_json::json;

use super::{assert_accepted, assert_turned_away, hello, operate, server};
use crate::support::server::Home;
use crate::support::wire_client::{Combination, RawClient};

const GOOD: &str = "the-key-of-the-planner";
const OTHER: &str = "the-key-of-the-auditor";

#[tokio::test]
async fn a_key_is_taken_from_either_header_and_two_different_ones_from_none() {
    let home = Home::new();
    let (good, other) = (KeyHash::of(GOOD), KeyHash::of(OTHER));
    let server = server(&home, &format!("[callers.planner]\nkey_hash = '{good}'\n[callers.auditor]\nkey_hash = '{other}'\n"));
    let client = RawClient::new(server.url());
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    let header = |key: &str| ("x-api-key", key.to_owned());
    for combination in Combination::ALL {
        for (what, headers, accepted) in [
            ("X-API-Key", vec![header(GOOD)], true),
            ("Bearer", vec![bearer(GOOD)], true),
            ("bearer, small", vec![("authorization", format!("bearer {GOOD}"))], true),
            ("the same in both", vec![header(GOOD), bearer(GOOD)], true),
            ("nothing", vec![], false),
            ("two good ones of two callers", vec![header(GOOD), bearer(OTHER)], false),
            ("a good and a bad one", vec![header(GOOD), bearer("no-key-of-anybody")], false),
            ("two in one header's name", vec![header(GOOD), header(OTHER)], false),
            ("one of nobody", vec![header("no-key-of-anybody")], false),
            ("one that is nearly right", vec![header(&GOOD[..GOOD.len() - 1])], false),
            ("its hash", vec![header(&good.to_string())], false),
            ("an empty one", vec![header("")], false),
            ("another scheme", vec![("authorization", "Basic cGxhbm5lcjp4".to_owned())], false),
        ] {
            let call = headers.iter().fold(hello(combination), |call, (name, value)| call.with(name, value));
            let answer = client.ask(&call).await;
            if accepted {
                assert_accepted(&answer, what);
            } else {
                assert_turned_away(combination, &answer, what);
            }
            assert!(!format!("{answer:?}").contains(GOOD), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn an_added_key_works_at_once_until_it_is_rotated_out_or_revoked() {
    let home = Home::new();
    let server = server(&home, &format!("[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(GOOD)));
    let (client, http) = (RawClient::new(server.url()), reqwest::Client::new());
    let post = async |path: &str, body| operate(&http, &home, &server, path, &body).await;
    let key = |answer: &serde_json::Value| answer["key"].as_str().expect("a key").to_owned();
    let added = key(&post("callers", json!({ "name": "ci" })).await);
    let check = async |what: &str, key: &str, accepted: bool| {
        for combination in Combination::ALL {
            let answer = client.ask(&hello(combination).with("x-api-key", key)).await;
            if accepted {
                assert_accepted(&answer, what);
            } else {
                assert_turned_away(combination, &answer, what);
            }
        }
    };
    check("added", &added, true).await;
    let second = key(&post("callers/ci/rotate", json!({ "overlap_seconds": 3600 })).await);
    check("within the overlap", &added, true).await;
    check("the new one", &second, true).await;
    let third = key(&post("callers/ci/rotate", json!({ "overlap_seconds": 0 })).await);
    check("expired", &added, false).await;
    check("expired", &second, false).await;
    check("the newest", &third, true).await;
    post("callers/ci/revoke", json!({})).await;
    check("revoked", &third, false).await;
    check("of the config", GOOD, true).await;
}

#[tokio::test]
async fn whoever_is_turned_away_is_told_so_in_the_words_of_its_own_call() {
    let home = Home::new();
    let server = server(&home, &format!("[callers.planner]\nkey_hash = '{}'\n", KeyHash::of(GOOD)));
    let http = reqwest::Client::new();
    for (body, code, id) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}"#, -32046, json!(7)),
        // Methods that 0.3 has too. Its JS client names the type it wants, and takes -32001 for a missing task.
        (r#"{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"id":"x"}}"#, -32001, json!("a")),
        (r#"{"jsonrpc":"2.0","id":"a","method":"tasks/cancel","params":{"id":"x"}}"#, -32001, json!("a")),
        (r#"{"jsonrpc":"2.0","id":"a","method":"tasks/resubscribe","params":{"id":"x"}}"#, -32001, json!("a")),
        (r#"{"jsonrpc":"2.0","id":"b","method":"tasks/sendSubscribe","params":{}}"#, -32001, json!("b")),
        (r#"{"jsonrpc":"2.0","id":"c","method":"no/such","params":{}}"#, -32046, json!("c")),
        // Whose id nobody can read.
        ("no JSON", -32046, json!(null)),
        ("", -32046, json!(null)),
    ] {
        let response =
            http.post(server.url()).header("content-type", "application/json").body(body).send().await.expect("an answer");
        assert_eq!((response.status().as_u16(), response.headers().contains_key("www-authenticate")), (401, true), "{body}");
        // Streams of older versions are refused with an event, which is what their clients read.
        let text = response.text().await.expect("an answer to its end");
        let answer: serde_json::Value = serde_json::from_str(text.strip_prefix("data: ").unwrap_or(&text)).expect("JSON");
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
        assert_eq!(text.starts_with("data: "), body.contains("ubscribe"), "{body}: {text}");
    }
    for accept in ["application/json", "text/event-stream"] {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#;
        let request = http.post(server.url()).header("content-type", "application/json").header("accept", accept).body(body);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 401, "{accept}");
        let answer: serde_json::Value = response.json().await.expect("JSON");
        assert_eq!(answer["error"]["code"], -32046, "{accept}: {answer}");
    }
    // The streams that the original protocol's clients open before they send.
    for path in ["sendSubscribe", "resubscribe"] {
        let request = http.get(format!("{}/tasks/{path}?id=x", server.url()));
        let response = request.send().await.expect("an answer");
        assert_eq!((response.status().as_u16(), response.headers().contains_key("www-authenticate")), (401, true), "{path}");
    }
    // What everybody may know needs no credentials, good or bad.
    for path in ["/healthz", "/.well-known/agent-card.json", "/.well-known/agent.json", "/.well-known/jwks.json"] {
        for key in [None, Some("no-key-of-anybody")] {
            let request = http.get(format!("{}{path}", server.url()));
            let request = key.into_iter().fold(request, |request, key| request.header("x-api-key", key));
            assert_eq!(request.send().await.expect("an answer").status(), 200, "{path} {key:?}");
        }
    }
}
