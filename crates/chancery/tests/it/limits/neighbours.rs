//! One tenant's load beside another's: whoever calls too much is told to wait, and the neighbour's calls all pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chancery_identity::credentials::KeyHash;
use serde_json::{Value, json};

use crate::support::server::{Server, Setup};

const LOUD: &str = "the-key-of-the-loud-one";
const QUIET: &str = "the-key-of-the-quiet-one";
/// What the quiet tenant asks for while the other floods the node.
const ASKED: usize = 50;

fn node(limits: &str) -> Server {
    let caller = |name: &str, key: &str| format!("[callers.{name}]\ntenant = '{name}'\nkey_hash = '{}'\n", KeyHash::of(key));
    let config = format!("[limits]\n{limits}\n{}{}", caller("loud", LOUD), caller("quiet", QUIET));
    Setup::conformance().config(&config).start()
}

async fn send(client: &reqwest::Client, server: &Server, key: &str, text: &str) -> Value {
    send_to(client, server.url(), key, text).await
}

async fn send_to(client: &reqwest::Client, url: &str, key: &str, text: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let request = client.post(url).header("A2A-Version", "1.0").header("x-api-key", key).json(&body);
    request.send().await.expect("an answer").json().await.expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_floods_the_node_is_told_to_wait_and_its_neighbour_is_not() {
    let server = node("calls_per_second_per_caller = 20\ncalls_burst_per_caller = 60\ncalls_per_second_per_address = 0");
    let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let floods: Vec<_> = (0..16)
        .map(|_| {
            let (stop, told, url) = (Arc::clone(&stop), Arc::clone(&told), server.url().to_owned());
            tokio::spawn(async move {
                let client = reqwest::Client::new();
                while !stop.load(Ordering::Relaxed) {
                    if send_to(&client, &url, LOUD, "complete").await["error"].is_object() {
                        told.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    // The other one is past its limit before anything is asked.
    crate::support::patience::soon("the loud tenant is told to wait", async || (told.load(Ordering::Relaxed) > 0).then_some(()))
        .await;
    let client = reqwest::Client::new();
    for number in 0..ASKED {
        let answer = send(&client, &server, QUIET, "complete").await;
        assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "call {number}: {answer}");
    }
    stop.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.await.expect("it ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_holds_all_streams_it_may_leaves_its_neighbour_its_own() {
    let server = node("streams_per_caller = 2");
    let client = reqwest::Client::new();
    let open = async |key: &str| {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "sleep 3600000" }] });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": { "message": message } });
        let request = client.post(server.url()).header("A2A-Version", "1.0").header("x-api-key", key).json(&body);
        let answer = request.send().await.expect("an answer");
        let streams = answer.headers()["content-type"] == "text/event-stream";
        (streams, answer)
    };
    let (first, second, third) = (open(LOUD).await, open(LOUD).await, open(LOUD).await);
    assert_eq!((first.0, second.0, third.0), (true, true, false));
    let (mine, also_mine) = (open(QUIET).await, open(QUIET).await);
    assert_eq!((mine.0, also_mine.0), (true, true), "the neighbour has streams of its own");
}
