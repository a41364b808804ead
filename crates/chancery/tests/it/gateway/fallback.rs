//! `routing.fallback = "local"`: an agent elsewhere that nobody can reach is done here, and what is begun here stays here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chancery::config::{AgentConfig, Config};
use chancery::{Finished, Node, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::QUICK;
use super::scripted::{Script, Scripted};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

const LOCAL: &str = "[routing]\nfallback = 'local'\n";

fn nowhere() -> String {
    format!("http://{}", lasting_address())
}

fn config(url: &str) -> String {
    format!("{QUICK}retries = 0\n{LOCAL}[agents.research]\nstream = 'always'\nurl = '{url}'\nrun = 'conformance'\n")
}

async fn say(server: &Server, task: Option<&Value>, text: &str) -> Value {
    let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    if let Some(task) = task {
        message["taskId"] = task["id"].clone();
    }
    let answer = server.call("SendMessage", json!({ "message": message })).await;
    assert!(answer["result"]["task"].is_object(), "{answer}\n{}", server.log());
    answer["result"]["task"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_nobody_elsewhere_can_take_is_done_here_and_stays_here_also_after_a_restart() {
    let home = Home::new();
    let url = nowhere();
    let server = Setup::in_home(&home).config(&config(&url)).start();
    assert_eq!(say(&server, None, "fail no luck").await["status"]["state"], "TASK_STATE_FAILED", "as the agent here does");
    let asked = say(&server, None, "ask which colour?").await;
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    server.kill();
    let server = Setup::in_home(&home).config(&config(&url)).start();
    let done = say(&server, Some(&asked), "complete blue").await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}\n{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_can_be_reached_is_asked_and_what_it_may_have_seen_is_not_done_again_here() {
    let agent = Scripted::agent(|_| Script::page(503, "text/plain", "later")).await;
    let home = Home::new();
    let server = Setup::in_home(&home).config(&config(&agent.url())).start();
    let task = say(&server, None, "complete hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "nobody knows how far it got: {task}");
    assert_eq!(agent.count("SendStreamingMessage"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_beside_a_url_without_the_word_stops_the_start() {
    let home = Home::new();
    let file = home.path().join("chancery.toml");
    std::fs::write(&file, "[agents.research]\nstream = 'always'\nurl = 'http://127.0.0.1:9'\nrun = 'echo'\n")
        .expect("the home takes files");
    let run = home.command().args(["serve", "--memory", "--listen", "127.0.0.1:0", "--config"]).arg(&file).output();
    let run = run.expect("the command runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && said.contains("routing.fallback = \"local\""), "{said}");
}

struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl TaskRunner for Counting {
    async fn run(&self, _turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(updates.complete(None))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gives_its_own_runner() {
    let count = Arc::new(AtomicUsize::new(0));
    let config = Config::parse(&format!("{QUICK}retries = 0\n{LOCAL}")).expect("a config");
    let node = Node::builder()
        .remote_agent("research", AgentConfig::at(nowhere()))
        .with_local("research", Counting(Arc::clone(&count)))
        .config(config)
        .build()
        .await
        .expect("a node");
    let app = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", app.local_addr().expect("it has one"));
    let router = node.router();
    tokio::spawn(async move { axum::serve(app, router).await });
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } });
    let sent = reqwest::Client::new().post(format!("{url}/message:send")).header("A2A-Version", "1.0").json(&message);
    let answer: Value = sent.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
