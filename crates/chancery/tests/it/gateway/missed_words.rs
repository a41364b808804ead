//! What an agent says while its gateway is down is in its history afterwards, and reaches the caller whole and in order.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ANYWHERE_HERE, QUICK, conformance};
use crate::support::line::Line;
use crate::support::patience::{eventually, soon};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

const STEPS: usize = 60;
/// The agent goes on for much longer than a restart takes, so that it says something before, during and after it.
const PAUSE_MS: usize = 150;
/// How the gateway follows the agent: by streams that open with the task, by streams that open with what comes next, and by polls.
const WAYS: [(&str, &str); 4] = [
    ("newest", "version = '1.0'\nstream = 'always'"),
    ("grpc", "version = '1.0'\nbinding = 'GRPC'\nstream = 'always'"),
    ("older", "version = '0.3'\nstream = 'always'"),
    ("polled", "stream = 'never'"),
];

/// What the agent has said, oldest first.
fn texts(task: &Value) -> Vec<String> {
    let said = task["history"].as_array().into_iter().flatten().chain(Some(&task["status"]["message"]));
    let said = said.filter(|message| message["role"] == "ROLE_AGENT");
    said.filter_map(|message| message["parts"][0]["text"].as_str().map(str::to_owned)).collect()
}

async fn task_of(gateway: &Server, agent: &str, id: &Value) -> Value {
    let line = Line::to(&format!("{}/agents/{agent}", gateway.url()), "");
    let found = line.call("GetTask", &json!({ "id": id, "historyLength": 1000 }), Default::default()).await;
    found.expect("the gateway answers")["result"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_an_agent_says_while_its_gateway_is_down_reaches_the_task_in_order_and_once() {
    let agent = conformance();
    let (home, listen) = (Home::new(), lasting_address());
    let agents: String = WAYS.iter().map(|(name, how)| format!("[agents.{name}]\nurl = '{}'\n{how}\n", agent.url())).collect();
    let config = format!("{QUICK}reconnects = 1000\n{ANYWHERE_HERE}{agents}");
    let start = || Setup::at(&home, listen).config(&config).start();
    let gateway = start();
    let mut tasks = Vec::new();
    for (name, _) in WAYS {
        let message =
            json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": format!("steps {STEPS} {PAUSE_MS}") }] });
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let line = Line::to(&format!("{}/agents/{name}", gateway.url()), "");
        let mut sent = line.call("SendMessage", &params, Default::default()).await.expect("the gateway answers");
        tasks.push((name, sent["result"]["task"]["id"].take()));
    }
    for (name, id) in &tasks {
        soon("the agent has said something", async || (texts(&task_of(&gateway, name, id).await).len() > 3).then_some(())).await;
    }
    gateway.kill();
    // As long as an operator's restart: the agent goes on meanwhile.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    eventually("the port is free again", || TcpListener::bind(listen).ok());
    let gateway = start();
    let expected: Vec<String> = (1..=STEPS).map(|step| format!("step {step} of {STEPS}")).collect();
    for (name, id) in &tasks {
        let ended = soon("the task is over", async || {
            Some(task_of(&gateway, name, id).await).filter(|task| task["status"]["state"] == "TASK_STATE_COMPLETED")
        })
        .await;
        assert_eq!(texts(&ended), expected, "{name}: {}", gateway.log());
    }
}
