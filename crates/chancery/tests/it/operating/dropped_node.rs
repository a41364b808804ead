//! A node that ends in the middle of its work leaves no task, thread, descriptor or lock in its process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use chancery::agents::BuiltIn;
use chancery::config::ConfigFile;
use chancery::{Config, Finished, Node, RunError, TaskRunner, TaskUpdateSink, Turn, async_trait, new_card};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::support::counts::full_counts;
use crate::support::patience::{BOUND, soon};

/// Set in the child process only.
const CHILD: &str = "CHANCERY_TEST_DROPPED_NODE";

/// How often a node is built, served and ended.
const ROUNDS: usize = 100;

/// Works until a test releases it, or its turn is dropped.
struct Waiting {
    released: CancellationToken,
}

#[async_trait]
impl TaskRunner for Waiting {
    async fn run(&self, _turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        updates.working(None).await?;
        self.released.cancelled().await;
        Ok(updates.complete(None))
    }
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    ShutDown,
    Drop,
}

/// What a process holds of the system, each by its name.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    tasks: usize,
    threads: BTreeMap<String, usize>,
    descriptors: BTreeMap<String, usize>,
    locks: usize,
}

impl Holdings {
    fn now() -> Self {
        let mut threads = BTreeMap::new();
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            // A thread can end between the two reads.
            if let Ok(name) = std::fs::read_to_string(thread.unwrap().path().join("comm")) {
                *threads.entry(name.trim().to_owned()).or_default() += 1;
            }
        }
        let mut descriptors = BTreeMap::new();
        for descriptor in std::fs::read_dir("/proc/self/fd").unwrap() {
            if let Ok(target) = std::fs::read_link(descriptor.unwrap().path()) {
                // Sockets have a number of their own, which says nothing.
                let target = target.display().to_string();
                let target = target.split_once(":[").map_or(target.as_str(), |(kind, _)| kind).to_owned();
                *descriptors.entry(target).or_default() += 1;
            }
        }
        let (locks, own) = (std::fs::read_to_string("/proc/locks").unwrap(), std::process::id().to_string());
        let locks = locks.lines().filter(|line| line.split_whitespace().any(|word| word == own)).count();
        Self { tasks: Handle::current().metrics().num_alive_tasks(), threads, descriptors, locks }
    }
}

/// The counts belong to the whole process, so the test runs itself again in a process of its own.
fn in_a_process_of_its_own(test: &str, ending: Ending) {
    if std::env::var_os(CHILD).is_some() {
        let mut runtime = Builder::new_multi_thread();
        // Idle threads of the blocking pool end soon, so that they do not count as left behind.
        runtime.worker_threads(2).thread_keep_alive(Duration::from_millis(1)).enable_all();
        runtime.build().unwrap().block_on(build_serve_and_end(ending));
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("operating::dropped_node::{test}"), "--nocapture"]).env(CHILD, "1");
    let output = child.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nodes_that_are_shut_down_leave_nothing_behind() {
    in_a_process_of_its_own("nodes_that_are_shut_down_leave_nothing_behind", Ending::ShutDown);
}

#[test]
fn nodes_that_are_dropped_leave_nothing_behind() {
    in_a_process_of_its_own("nodes_that_are_dropped_leave_nothing_behind", Ending::Drop);
}

async fn build_serve_and_end(ending: Ending) {
    let home = tempfile::tempdir().unwrap();
    let far = far_agent().await;
    let before = Holdings::now();
    for number in 0..full_counts(ROUNDS, ROUNDS * 10) {
        round(home.path(), &far, ending).await;
        let start = std::time::Instant::now();
        while Holdings::now() != before {
            assert!(start.elapsed() < BOUND, "round {number} left something: {:#?}\nbefore: {before:#?}", Holdings::now());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// An agent for the nodes to stand in front of.
async fn far_agent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let agent = BuiltIn::Conformance;
    let node = Node::builder().shared_agent("far", agent.card(), agent.runner()).public_url(&url).memory();
    let config = "[limits]\ncalls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";
    let node = node.config(Config::parse(config).unwrap()).build().await.unwrap();
    tokio::spawn(async move { node.serve(listener, CancellationToken::new()).await });
    url
}

/// A node with every loop that a config can ask for: it watches its file, stands in front of an agent, keeps a record, clears
/// large parts, delivers webhooks and speaks SWP.
fn write_config(home: &Path, far: &str) -> ConfigFile {
    let (file, tier) = (home.join("chancery.toml"), home.join("tier"));
    let text = format!(
        "[agents.far]\nurl = '{far}'\n[memory]\ntier = '{}'\n[artifacts]\noffload = true\n\
         [push]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n[swp]\nlisten = '127.0.0.1:0'\n",
        tier.display(),
    );
    std::fs::create_dir_all(tier).unwrap();
    std::fs::write(&file, text).unwrap();
    ConfigFile::read(&file).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Builds a node, calls it through every listener, and ends it while a turn, a stream, a delivery and idle connections are open.
async fn round(home: &Path, far: &str, ending: Ending) {
    let (http, slim) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (url, slim_address) = (format!("http://{}", http.local_addr().unwrap()), slim.local_addr().unwrap());
    let released = CancellationToken::new();
    let runner: Arc<dyn TaskRunner> = Arc::new(Waiting { released: released.clone() });
    let builder = Node::builder().shared_agent("waiting", new_card("Waiting", "Waits."), Arc::clone(&runner));
    let builder = builder.config_file(write_config(home, far), |config| config).sqlite(home.join("data"));
    let node = Arc::new(builder.public_url(&url).build().await.unwrap());
    node.watch_config().unwrap();
    let loops = node.chancery().loops().clone();
    let expected = ["agent cards", "agent health", "config file", "keys and cards", "large parts", "record", "retention"];
    let names: Vec<_> = loops.running().into_keys().collect();
    assert_eq!(names, [&expected[..], &["webhook deliveries", "webhook retention"]].concat());
    let (serving, serving_slim) = (Arc::clone(&node), Arc::clone(&node));
    let serving = tokio::spawn(async move { serving.serve(http, CancellationToken::new()).await });
    let serving_slim = tokio::spawn(async move { serving_slim.serve_swp(slim, CancellationToken::new()).await });

    let client = reqwest::Client::new();
    let call = async |path: &str, method: &str, configuration: Value| {
        let message =
            json!({ "messageId": uuid::Uuid::now_v7().to_string(), "role": "ROLE_USER", "parts": [{ "text": "echo" }] });
        let params = json!({ "message": message, "configuration": configuration });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        client.post(format!("{url}{path}")).header("A2A-Version", "1.0").json(&body).send().await.unwrap()
    };
    let answer = call("/agents/far", "SendMessage", json!({})).await.text().await.unwrap();
    assert!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
    let hook = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let push = json!({ "taskPushNotificationConfig": { "url": format!("http://{}/", hook.local_addr().unwrap()) } });
    let mut stream = call("/agents/waiting", "SendStreamingMessage", push).await;
    assert!(stream.chunk().await.unwrap().is_some());
    let delivery = hook.accept().await.unwrap();
    let slim_connection = tokio::net::TcpStream::connect(slim_address).await.unwrap();

    let delivery = match ending {
        // A stop waits for the turn and the delivery, so both have to end.
        Ending::ShutDown => {
            released.cancel();
            drop((hook, delivery));
            node.shut_down(BOUND).await.unwrap();
            assert!(loops.running().is_empty(), "a stop waits for every loop");
            None
        }
        Ending::Drop => Some(delivery),
    };
    serving.abort();
    serving_slim.abort();
    drop(node);
    // Nothing but the node can end its side: the client, the webhook and the SWP peer keep their connections open.
    soon("the node is gone", async || (Arc::strong_count(&runner) == 1).then_some(())).await;
    soon("the loops ended", async || loops.running().is_empty().then_some(())).await;
    assert_eq!(loops.panics(), BTreeMap::new());
    drop((client, stream, delivery, slim_connection));
}
