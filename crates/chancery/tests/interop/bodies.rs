//! One task, webhooks of every version: each body is read with the types of that version's official SDKs; prints a table.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use serde_json::{Value, json};

use crate::fronts::Prepare;
use crate::implementation::{Implementation, Table};
use crate::machine::MACHINE;
use crate::server::Server;
use crate::toolbox::Toolbox;

type Bodies = Arc<Mutex<Vec<String>>>;

/// Takes everything and keeps it.
async fn inbox() -> (String, Bodies) {
    let bodies = Bodies::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let keep = |State(bodies): State<Bodies>, body: String| async move { bodies.lock().unwrap().push(body) };
    let router = Router::new().fallback(keep).with_state(Arc::clone(&bodies));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (origin, bodies)
}

/// Until the end of the task was told.
async fn told(bodies: &Bodies) -> Vec<String> {
    let began = Instant::now();
    loop {
        let all = bodies.lock().unwrap().clone();
        if all.last().is_some_and(|last| last.to_lowercase().contains("completed")) {
            return all;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{all:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn call(server: &Server, version: Option<&str>, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = reqwest::Client::new().post(&server.base).json(&body);
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    answer
}

fn message(text: &str, task: Option<&Value>) -> Value {
    json!({ "messageId": text, "role": "ROLE_USER", "parts": [{ "text": text }], "taskId": task })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_version_is_told_in_words_that_its_official_sdk_reads() {
    let _shared = MACHINE.read().await;
    let tools = Toolbox::new();
    let readers: [(&str, Prepare, &str); 5] = [
        ("python 1.3.0", |tools| tools.python("python_1_3", "bodies.py"), "1.0"),
        ("js 1.3.0", |tools| tools.node("js_1_3", "bodies.mjs"), "1.0"),
        ("js 1.3.0", |tools| tools.node("js_1_3", "bodies.mjs"), "0.3"),
        ("python 0.3.26", |tools| tools.python("python_0_3", "bodies.py"), "0.3"),
        ("python 0.3.26", |tools| tools.python("python_0_3", "bodies.py"), "envelope"),
    ];
    let ready = readers.map(|(name, prepare, form)| (name, Implementation::ready(&tools, prepare), form));

    let ((new, new_bodies), (old, old_bodies), (post, post_bodies)) = (inbox().await, inbox().await, inbox().await);
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("chancery.toml");
    let lines =
        format!("[push]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n[push.origins.'{post}']\nprofile = 'neuralpost'\n");
    std::fs::write(&config, lines).unwrap();
    let arguments = ["--agent", "conformance", "--config", config.to_str().unwrap()];
    let server = Server::serving(&arguments, &tools.log("bodies"));

    let configuration = json!({ "taskPushNotificationConfig": { "url": format!("{new}/") } });
    let params = json!({ "message": message("ask which?", None), "configuration": configuration });
    let task = call(&server, Some("1.0"), "SendMessage", params).await["result"]["task"]["id"].clone();
    for (name, url) in [("old", &old), ("post", &post)] {
        let config = json!({ "id": name, "url": format!("{url}/"), "token": "t" });
        let params = json!({ "taskId": task, "pushNotificationConfig": config });
        call(&server, None, "tasks/pushNotificationConfig/set", params).await;
    }
    call(&server, Some("1.0"), "SendMessage", json!({ "message": message("stream 3", Some(&task)) })).await;

    let mut table = Table::default();
    for (name, reader, form) in &ready {
        let bodies = match *form {
            "1.0" => told(&new_bodies).await,
            "0.3" => told(&old_bodies).await,
            _ => told(&post_bodies).await,
        };
        let answer = tokio::task::block_in_place(|| reader.run(&[], &json!({ "form": form, "bodies": bodies })));
        let said: Vec<Vec<Value>> = serde_json::from_value(answer["said"].clone()).unwrap();
        let column = |what: &str| format!("{name:<14} {form:<9} {what}");
        let about_it = said.len() == bodies.len() && said.iter().all(|one| one[1] == task);
        table.row(column("every body is read, and is about the task"), about_it, &answer);
        let last = said.last().and_then(|last| last[2].as_str()).unwrap_or_default().to_lowercase();
        table.row(column("the last one tells of its end"), last.ends_with("completed"), &answer);
        let pieces =
            said.iter().filter(|one| one[0].as_str().is_some_and(|kind| kind.to_lowercase().contains("artifact"))).count();
        table.row(column("pieces are told one by one, or in whole tasks"), pieces == if *form == "1.0" { 3 } else { 0 }, &answer);
    }
    table.settle(3 * 5);
}
