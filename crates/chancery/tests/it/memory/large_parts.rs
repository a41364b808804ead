//! Large parts for those who fetch them by range, and for webhooks, which are told all of them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::push::receiver::{Act, Receiver};
use crate::push::{LOCAL, admin};
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};

/// A node whose agent says again what it is told.
fn node() -> (Home, TempDir, Server) {
    let (home, tier) = (Home::new(), tempfile::tempdir().unwrap());
    let folder = tier.path().display();
    let config =
        format!("{LOCAL}barrier_ms = 20000\nschedule_s = [0, 1, 1]\n[memory]\ntier = '{folder}'\n[artifacts]\noffload = true\n");
    let server = Setup::in_home(&home).args(["--agent", "echo"]).config(&config).start();
    (home, tier, server)
}

async fn call(server: &Server, method: &str, params: Value, extensions: &str) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0");
    let answer: Value = request.header("A2A-Extensions", extensions).json(&body).send().await.unwrap().json().await.unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

fn message(text: &str) -> Value {
    json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_what_was_asked_for_or_all_of_it() {
    let (_home, _tier, server) = node();
    let text: String = (0..60_000).map(|number| format!("{number:05}")).collect();
    let references = "https://chancery.dev/a2a/artifact-references/v1";
    let sent = call(&server, "SendMessage", json!({ "message": message(&text) }), references).await;
    let url = sent["task"]["artifacts"][0]["parts"][0]["url"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
    let tag = format!("\"{}\"", url.rsplit('/').next().unwrap());
    let fetch = async |method: Method, headers: &[(&str, &str)]| {
        let request = headers
            .iter()
            .fold(reqwest::Client::new().request(method, &url), |request, (name, value)| request.header(*name, *value));
        let answer = request.send().await.unwrap();
        let range = answer.headers().get("content-range").map(|range| range.to_str().unwrap().to_owned());
        assert!(answer.status() == StatusCode::RANGE_NOT_SATISFIABLE || answer.headers()["etag"] == tag.as_str());
        (answer.status().as_u16(), range, answer.text().await.unwrap())
    };
    let all = (200, None, text.clone());
    let part = |range: std::ops::Range<usize>| {
        let said = format!("bytes {}-{}/{}", range.start, range.end - 1, text.len());
        (206, Some(said), text[range].to_owned())
    };
    let get = Method::GET;
    assert_eq!(fetch(get.clone(), &[]).await, all);
    assert_eq!(fetch(get.clone(), &[("range", "bytes=5-9")]).await, part(5..10));
    assert_eq!(fetch(get.clone(), &[("range", "bytes=-5")]).await, part(299_995..300_000));
    assert_eq!(fetch(get.clone(), &[("range", "bytes=299999-999999")]).await, part(299_999..300_000));
    for ignored in ["bytes=0-1,5-6", "bytes=9-5", "lines=1-2", "bytes=+1-2"] {
        assert_eq!(fetch(get.clone(), &[("range", ignored)]).await, all, "{ignored}");
    }
    for beyond in ["bytes=300000-", "bytes=99999999999999999999-", "bytes=-0"] {
        let (status, range, _) = fetch(get.clone(), &[("range", beyond)]).await;
        assert_eq!((status, range.as_deref()), (416, Some("bytes */300000")), "{beyond}");
    }
    // Of what the asker has the rest of, and of nothing else.
    assert_eq!(fetch(get.clone(), &[("range", "bytes=5-9"), ("if-range", &tag)]).await, part(5..10));
    for other in ["\"other\"", &format!("W/{tag}"), "Sun, 15 Nov 2026 00:00:00 GMT"] {
        assert_eq!(fetch(get.clone(), &[("range", "bytes=5-9"), ("if-range", other)]).await, all, "{other}");
    }
    assert_eq!(fetch(get.clone(), &[("if-none-match", &tag)]).await, (304, None, String::new()));
    assert_eq!(fetch(Method::HEAD, &[("range", "bytes=5-9")]).await, (200, None, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_told_large_parts_whole() {
    let (_home, tier, server) = node();
    let receiver = Receiver::kind().await;
    let text = "once upon a time ".repeat(20_000);
    let configuration = json!({ "taskPushNotificationConfig": { "url": receiver.url("/hook") } });
    let sent = json!({ "message": message(&text), "configuration": configuration });
    let task = call(&server, "SendMessage", sent, "").await["task"].clone();
    assert_eq!(std::fs::read_dir(tier.path().join("offload")).unwrap().count(), 1);
    let told: Vec<Value> = receiver.got().iter().map(crate::push::receiver::Got::json).collect();
    let chunk = told.iter().find_map(|one| one["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
    assert_eq!(chunk, Some(&*text), "{:.500}", json!(told).to_string());
    assert_eq!(told[0]["task"]["id"], task["id"]);
    assert_eq!(told[0]["task"]["history"][0]["parts"][0]["text"], json!(text));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_of_all_that_was_given_up_holds_large_parts_whole() {
    let (home, _tier, server) = node();
    // The first waits until the task has ended, so that there is more than what was sent when it is given up.
    let receiver =
        Receiver::new(|got| if got.seq() == 1 && got.attempt() == 1 { Act::Answer(503) } else { Act::Answer(410) }).await;
    let text = "once upon a time ".repeat(20_000);
    let configuration = json!({ "taskPushNotificationConfig": { "url": receiver.url("/hook") } });
    call(&server, "SendMessage", json!({ "message": message(&text), "configuration": configuration }), "").await;
    let letters = async || {
        let letters = admin(&server, &home.data(), "/dead", None).await["letters"].take();
        (letters != json!([])).then_some(letters)
    };
    let letters = soon("it is given up", letters).await;
    assert!(letters[0]["from"].as_u64() < letters[0]["to"].as_u64(), "{letters}");
    let letter = admin(&server, &home.data(), &format!("/dead/{}", letters[0]["id"]), None).await;
    let body: Value = serde_json::from_str(letter["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["task"]["artifacts"][0]["parts"][0]["text"], json!(text), "{:.500}", body.to_string());
}
