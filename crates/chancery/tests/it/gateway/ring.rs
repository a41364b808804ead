//! A ring of agents that pass on their hop tokens, some of them or none, with many roots at once and a node that is killed in the
//! middle of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::relay::{Relay, Route};
use super::{ANYWHERE_HERE, CROWD, QUICK};
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};

const KEYS: [(&str, &str); 3] = [("a", "key-of-agent-a-0001"), ("b", "key-of-agent-b-0001"), ("c", "key-of-agent-c-0001")];
const OF_USER: &str = "key-of-the-user-0001";

/// Whether an agent passes on the token of its nth call.
type Echoes = fn(usize) -> bool;

/// The tasks of a caller that an agent works on.
async fn working(node: &Server, key: &str, agent: &str) -> usize {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": { "status": "TASK_STATE_WORKING", "pageSize": 100 } });
    let url = format!("{}/agents/{agent}", node.url());
    let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").header("x-api-key", key).json(&body);
    let listed: Value = request.send().await.expect("the node answers").json().await.expect("with JSON");
    listed["result"]["tasks"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_is_gone_round_once_for_each_root_although_the_node_is_killed_in_the_middle() {
    let ways: [(&str, Echoes); 3] = [("dropped", |_| false), ("echoed", |_| true), ("mixed", |call| call.is_multiple_of(2))];
    for (tokens, echoes) in ways {
        for roots in [1, 8, 16] {
            go_round(roots, tokens, echoes).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_is_gone_round_once_for_each_of_64_roots_although_the_node_is_killed_in_the_middle() {
    go_round(64, "mixed", |call| call.is_multiple_of(2)).await;
}

async fn go_round(roots: usize, tokens: &str, echoes: Echoes) {
    let listen = lasting_address();
    let gates: [Arc<Semaphore>; 3] =
        [Semaphore::MAX_PERMITS, 0, Semaphore::MAX_PERMITS].map(|permits| Arc::new(Semaphore::new(permits)));
    let mut agents = Vec::new();
    for (place, gate) in gates.iter().enumerate() {
        let route = OnceLock::from(Route {
            gate: Arc::clone(gate),
            most: 100,
            ..Route::to(format!("http://{listen}/agents/{}", KEYS[(place + 1) % 3].0))
                .passing_on(move |asked| {
                    static CALLS: AtomicUsize = AtomicUsize::new(0);
                    let token = asked.headers.get("chancery-hop-token").filter(|_| echoes(CALLS.fetch_add(1, Ordering::Relaxed)));
                    let passed = token.map(|token| ("chancery-hop-token".to_owned(), token.clone()));
                    (passed.into_iter().collect(), Value::Null)
                })
                .with_key(KEYS[place].1)
        });
        agents.push(Relay::start(move || route.get().expect("it is set").clone()).await);
    }
    let mut config = format!(
        "{QUICK}{ANYWHERE_HERE}{CROWD}calls_per_second_per_caller = 0\n[policy.default]\nmax_concurrency = 100\n[callers.user]\nkey_env = 'KEY_USER'\n"
    );
    for ((name, _), agent) in KEYS.iter().zip(&agents) {
        config += &format!("[agents.{name}]\nurl = '{}'\nstream = 'always'\n", agent.agent.url());
        config += &format!("[callers.k{name}]\nkey_env = 'KEY_{}'\nagent = '{name}'\n", name.to_uppercase());
    }
    let home = Home::new();
    let start = || {
        let setup = Setup::at(&home, listen).config(&config).env("KEY_USER", OF_USER);
        KEYS.iter().fold(setup, |setup, (name, key)| setup.env(&format!("KEY_{}", name.to_uppercase()), key)).start()
    };
    let node = start();
    for _ in 0..roots {
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
        let request = reqwest::Client::new().post(format!("{}/agents/a", node.url())).header("A2A-Version", "1.0");
        let sent: Value = request.header("x-api-key", OF_USER).json(&body).send().await.unwrap().json().await.unwrap();
        assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    }
    // Every agent A waits for an agent B, and which one for which the node cannot know.
    soon("B has all of its tasks", async || (agents[1].runs() == roots).then_some(())).await;
    soon("the node knows them", async || (working(&node, KEYS[0].1, "b").await == roots).then_some(())).await;
    node.kill();
    let node = start();
    // One after the other, so that tasks end which stand in the records as parents of others.
    for finished in 1..=roots {
        gates[1].add_permits(1);
        let left = roots - finished;
        soon("a root ends", async || (working(&node, OF_USER, "a").await <= left).then_some(())).await;
    }
    let runs: Vec<usize> = agents.iter().map(Relay::runs).collect();
    let refusals = agents[2].refusals();
    assert_eq!(runs, [roots; 3], "{roots} roots, tokens {tokens}: {refusals:?}");
    assert!(refusals.iter().all(|refusal| refusal.starts_with("RECURSION_REVISIT")), "{refusals:?}");
    assert_eq!(refusals.len(), roots, "{refusals:?}");
}
