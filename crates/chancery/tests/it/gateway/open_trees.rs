//! A node without callers over the wire: late calls after a restart, webhooks, two nodes in a row, agents' own names and addresses.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::relay::{Relay, Route};
use super::scripted::{Asked, Script, Scripted};
use super::{ANYWHERE_HERE, QUICK};
use crate::operating::cli::run;
use crate::push::receiver::Receiver;
use crate::push::{LOCAL, admin};
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Setup};

type Headers = Vec<(String, String)>;

/// An agent that has names of its own for its tasks, and is done with them when the gate has permits.
async fn worker(name: &'static str, gate: &Arc<Semaphore>) -> Scripted {
    let gate = Arc::clone(gate);
    Scripted::agent(move |asked: &Asked| {
        if asked.kind() != "SendStreamingMessage" {
            return Script::error(asked, -32001, "Task not found");
        }
        let (id, context) = (format!("task-{}-of-agent-{name}", asked.before), format!("context-of-agent-{name}"));
        let task = json!({ "id": id, "contextId": context, "status": { "state": "TASK_STATE_WORKING" } });
        let done = json!({ "taskId": id, "contextId": context, "status": { "state": "TASK_STATE_COMPLETED" } });
        let working = Script::stream().event(asked, &json!({ "task": task }));
        working.wait(&gate).event(asked, &json!({ "statusUpdate": done })).end()
    })
    .await
}

fn settings(agents: &[(&str, &Scripted)], more: &str) -> String {
    let mut config = format!("{QUICK}{ANYWHERE_HERE}{more}");
    for (name, agent) in agents {
        config += &format!("[agents.{name}]\nurl = '{}'\nstream = 'always'\nprice = {{ per_call_usd = '0.02' }}\n", agent.url());
    }
    config
}

/// Sends a message that has these members too, and does not wait for the end of its task unless it is told to.
async fn call(url: &str, members: Value, waits: bool, headers: &Headers) -> Value {
    let mut message =
        json!({ "messageId": format!("m-{:x}", rand::random::<u64>()), "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    for (name, value) in members.as_object().into_iter().flatten() {
        message[name] = value.clone();
    }
    let params = json!({ "message": message, "configuration": { "returnImmediately": !waits } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.send().await.expect("the node answers").json().await.expect("with JSON")
}

fn task_of(answer: &Value) -> String {
    answer["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

/// What an instrumented program sends on of the headers it was called with.
fn instrumented(given: impl Fn(&str) -> String) -> Headers {
    let parent = given("traceparent");
    let trace = parent.split('-').nth(1).unwrap_or_else(|| panic!("no traceparent: {parent}"));
    let span = format!("00-{trace}-{:016x}-01", rand::random::<u64>().max(1));
    vec![("traceparent".to_owned(), span), ("tracestate".to_owned(), given("tracestate"))]
}

/// Those of the first task that an agent was given, as soon as it has one.
async fn given_to(agent: &Scripted) -> Headers {
    let asked =
        soon("the agent is asked", async || agent.calls().into_iter().find(|asked| asked.kind().starts_with("Send"))).await;
    instrumented(|name| asked.headers.get(name).cloned().unwrap_or_default())
}

/// The tasks of the tree that a task is in.
fn tree(home: &Home, task: &str) -> Vec<Value> {
    let trees = run(home, ["tree", task, "--json"]).json();
    trees["trees"][0]["tasks"].as_array().unwrap_or_else(|| panic!("no tree: {trees}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_call_after_a_kill_and_a_restart_is_charged_to_the_tree_that_had_ended() {
    for (linger, is_late) in [(600, true), (0, false)] {
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let (a, b) = (worker("a", &gate).await, worker("b", &gate).await);
        let rules = format!("[lineage]\nlinger_s = {linger}\n[budget.tree]\nmax_usd = '0.05'\n");
        let (home, listen) = (Home::new(), lasting_address());
        let config = settings(&[("a", &a), ("b", &b)], &rules);
        let node = Setup::at(&home, listen).config(&config).start();
        let first = call(&format!("{}/agents/a", node.url()), json!({}), true, &Headers::new()).await;
        assert_eq!(first["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{first}");
        let (root, headers) = (task_of(&first), given_to(&a).await);
        let address = run(&home, ["agents", "url", "a"]).stdout.trim().to_owned();
        node.kill();

        let node = Setup::at(&home, listen).config(&config).start();
        let late = call(&format!("{}/agents/b", node.url()), json!({}), true, &headers).await;
        let tasks = tree(&home, &root);
        assert_eq!(tasks.len(), if is_late { 2 } else { 1 }, "{tasks:?}");
        if is_late {
            assert_eq!((tasks[1]["task"].as_str(), tasks[1]["attribution"].as_str()), (Some(&*task_of(&late)), Some("late")));
            assert_eq!((&tasks[1]["parent"], &tasks[1]["depth"]), (&json!(root), &json!(1)));
        }
        // By its address the agent is known after a restart too. Two calls of 0.02 fit into 0.05, and no third.
        let third = call(&format!("{address}/agents/b"), json!({}), true, &Headers::new()).await;
        let refusal = third["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(refusal.contains(&format!("BUDGET_EXHAUSTED tree={root}")), is_late, "{third}");
    }
}

/// An agent that works on over the restart passes on `traceparent` as it came. The client brought the trace, so only the span id says
/// for which task it calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_and_a_restart_the_span_id_still_names_the_task_that_an_agent_works_on() {
    let gate = Arc::new(Semaphore::new(0));
    let (a, b) = (worker("a", &gate).await, worker("b", &gate).await);
    let (home, listen) = (Home::new(), lasting_address());
    let config = settings(&[("a", &a), ("b", &b)], "");
    let node = Setup::at(&home, listen).config(&config).start();
    let of_client = format!("00-{:032x}-{:016x}-01", rand::random::<u128>().max(1), rand::random::<u64>().max(1));
    let first = call(&format!("{}/agents/a", node.url()), json!({}), false, &vec![("traceparent".to_owned(), of_client)]).await;
    let root = task_of(&first);
    let asked = soon("the agent is asked", async || a.calls().into_iter().find(|asked| asked.kind().starts_with("Send"))).await;
    let given = vec![("traceparent".to_owned(), asked.headers.get("traceparent").cloned().unwrap_or_default())];
    soon("the agent has named its task", async || {
        let task = node.call("GetTask", json!({ "id": root })).await;
        (task["result"]["status"]["state"] == "TASK_STATE_WORKING").then_some(())
    })
    .await;
    node.kill();
    let node = Setup::at(&home, listen).config(&config).start();
    let below = call(&format!("{}/agents/b", node.url()), json!({}), false, &given).await;
    let tasks = tree(&home, &root);
    assert_eq!((tasks.len(), tasks[1]["task"].as_str()), (2, Some(&*task_of(&below))), "{tasks:?}");
    let attribution = tasks[1]["attribution"].as_str();
    assert!(attribution == Some("traced") || attribution == Some("late"), "the agent has lost its task at most: {tasks:?}");
    gate.add_permits(1_000);
}

/// D under A calls B while A → B → C is open: honest work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_beside_a_busy_branch_may_call_into_it_by_its_token_and_at_its_address() {
    for way in ["token", "address"] {
        let gate = Arc::new(Semaphore::new(0));
        let names = ["a", "b", "c", "d"];
        let mut agents = Vec::new();
        for name in names {
            agents.push(worker(name, &gate).await);
        }
        let mut config = format!("{QUICK}{ANYWHERE_HERE}");
        for (name, agent) in names.iter().zip(&agents) {
            config += &format!("[agents.{name}]\nurl = '{}'\nstream = 'always'\n", agent.url());
        }
        let home = Home::new();
        let node = Setup::in_home(&home).config(&config).start();
        // The call of one agent to another, for the first task that it was given.
        let calls = async |from: usize, to: usize| {
            let asked = soon("the agent is asked", async || {
                agents[from].calls().into_iter().find(|asked| asked.kind().starts_with("Send"))
            })
            .await;
            let base = match way {
                "address" => run(&home, ["agents", "url", names[from]]).stdout.trim().to_owned(),
                _ => node.url().to_owned(),
            };
            let token = asked.headers.get("chancery-hop-token").cloned().filter(|_| way == "token");
            let headers: Headers = token.into_iter().map(|token| ("chancery-hop-token".to_owned(), token)).collect();
            let answer = call(&format!("{base}/agents/{}", names[to]), json!({}), false, &headers).await;
            assert!(answer["result"]["task"]["id"].is_string(), "{way}: {} calls {}: {answer}", names[from], names[to]);
        };
        let begun = call(&format!("{}/agents/a", node.url()), json!({}), false, &Headers::new()).await;
        for (from, to) in [(0, 1), (1, 2), (0, 3), (3, 1)] {
            calls(from, to).await;
        }
        let tasks = tree(&home, &task_of(&begun));
        assert_eq!(tasks.len(), 5, "{way}: {tasks:?}");
        gate.add_permits(1_000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_notified_receiver_begins_is_a_tree_of_its_own_and_figures_count_it() {
    let gate = Arc::new(Semaphore::new(0));
    let (a, b) = (worker("a", &gate).await, worker("b", &gate).await);
    let receiver = Receiver::kind().await;
    let home = Home::new();
    let node = Setup::in_home(&home).config(&settings(&[("a", &a), ("b", &b)], LOCAL)).start();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let configuration =
        json!({ "returnImmediately": true, "taskPushNotificationConfig": { "url": receiver.url("/"), "id": "hook" } });
    let begun = node.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
    let root = task_of(&begun);
    let told = receiver.has_taken(1).await.remove(0);
    assert!(told.header("tracestate").ends_with("@chancery=-"), "{}", told.header("tracestate"));
    let own =
        call(&format!("{}/agents/b", node.url()), json!({}), false, &instrumented(|name| told.header(name).to_owned())).await;
    let tasks = tree(&home, &task_of(&own));
    assert_eq!((tasks.len(), tasks[0]["attribution"].as_str()), (1, Some("root")), "{tasks:?}");
    // The agent that works on the task is in the tree.
    let headers = given_to(&a).await;
    let below = call(&format!("{}/agents/b", node.url()), json!({}), false, &headers).await;
    let tasks = tree(&home, &root);
    assert_eq!((tasks.len(), tasks[1]["task"].as_str()), (2, Some(&*task_of(&below))), "{tasks:?}");

    let figures = admin(&node, &home.data(), "/metrics", None).await;
    let figures = figures.as_str().expect("text");
    for (attribution, count) in [("root", 2), ("traced", 1), ("late", 0), ("claimed", 0), ("verified", 0)] {
        let line = format!("chancery_lineage_total{{attribution=\"{attribution}\"}} {count}\n");
        assert!(figures.contains(&line), "{line}: {figures}");
    }
    assert!(figures.contains("# TYPE chancery_lineage_total counter"), "{figures}");
    gate.add_permits(1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_uses_its_own_name_for_its_task_is_stopped_at_the_second_visit() {
    let gate = Arc::new(Semaphore::new(0));
    let (a, b) = (worker("a", &gate).await, worker("b", &gate).await);
    let home = Home::new();
    let node = Setup::in_home(&home).config(&settings(&[("a", &a), ("b", &b)], "[push]\nenabled = false\n")).start();
    let [to_a, to_b] = ["a", "b"].map(|name| format!("{}/agents/{name}", node.url()));
    let begun = call(&to_a, json!({}), false, &Headers::new()).await;
    let root = task_of(&begun);
    soon("the agent has named its task", async || {
        let task = node.call("GetTask", json!({ "id": root })).await;
        (task["result"]["status"]["state"] == "TASK_STATE_WORKING").then_some(())
    })
    .await;
    let names = [json!({ "contextId": "context-of-agent-a" }), json!({ "referenceTaskIds": ["task-0-of-agent-a"] })];
    for (number, name) in names.into_iter().enumerate() {
        let below = call(&to_b, name.clone(), false, &Headers::new()).await;
        let tasks = tree(&home, &task_of(&below));
        assert_eq!((tasks.len(), tasks[0]["task"].as_str()), (number + 2, Some(&*root)), "{name}: {tasks:?}");
        assert_eq!(tasks[number + 1]["attribution"], "claimed", "{name}: {tasks:?}");
        let back = call(&to_a, name.clone(), false, &Headers::new()).await;
        let refusal = back["error"]["message"].as_str().unwrap_or_default();
        assert!(refusal.starts_with("RECURSION_REVISIT") && refusal.contains("attribution=claimed"), "{name}: {back}");
    }
    // The caller's own names place nothing.
    let own = call(
        &to_b,
        json!({ "referenceTaskIds": [root], "contextId": begun["result"]["task"]["contextId"] }),
        false,
        &Headers::new(),
    )
    .await;
    assert_eq!(tree(&home, &task_of(&own)).len(), 1);
    // A node without webhooks has the figures of its calls all the same.
    let figures = admin(&node, &home.data(), "/metrics", None).await.to_string();
    assert!(figures.contains("chancery_lineage_total") && !figures.contains("a2a_push"), "{figures}");
    gate.add_permits(1_000);
}

/// The first node gives to the second, whose agent calls the first again. Each finds its own member in the trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_in_a_row_and_back_around_are_refused_by_the_mark_of_the_first() {
    let (first_at, second_at) = (lasting_address(), lasting_address());
    let relay = Relay::start(move || {
        Route::to(format!("http://{first_at}/agents/front"))
            .passing_on(|asked| (instrumented(|name| asked.headers.get(name).cloned().unwrap_or_default()), Value::Null))
    })
    .await;
    let homes = [Home::new(), Home::new()];
    let _second = Setup::at(&homes[1], second_at).config(&settings(&[("worker", &relay.agent)], "")).start();
    let front = format!("[agents.front]\nurl = 'http://{second_at}'\nstream = 'always'\n");
    let first = Setup::at(&homes[0], first_at).config(&format!("{QUICK}{ANYWHERE_HERE}{front}")).start();
    let answer = call(&format!("{}/agents/front", first.url()), json!({}), true, &Headers::new()).await;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    let state = relay.agent.calls().iter().find_map(|asked| asked.headers.get("tracestate").cloned()).unwrap_or_default();
    assert_eq!(state.matches("@chancery=").count(), 2, "both nodes are in it: {state}");
    let refusals = relay.refusals();
    assert_eq!((relay.runs(), refusals.len()), (1, 1), "{refusals:?}");
    assert!(refusals[0].starts_with("RECURSION_REVISIT") && refusals[0].contains("attribution=traced"), "{refusals:?}");
}

/// Every file below a folder that holds a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the home can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secret_of_an_address_is_in_no_log_no_record_and_no_call() {
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let (a, b) = (worker("a", &gate).await, worker("b", &gate).await);
    let home = Home::new();
    let node = Setup::in_home(&home).env("RUST_LOG", "trace").config(&settings(&[("a", &a), ("b", &b)], "")).start();
    let address = run(&home, ["agents", "url", "a"]).stdout.trim().to_owned();
    let secret = address.rsplit('/').next().expect("a path").to_owned();
    let url = format!("{address}/agents/b");
    let done = call(&url, json!({}), true, &Headers::new()).await;
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    // Refused calls, pages that do not exist and cards go through other places that log.
    let refused = call(&url, json!({ "contextId": "\u{7}" }), true, &Headers::new()).await;
    assert!(refused["error"].is_object(), "{refused}");
    for page in ["/agents/b/.well-known/agent-card.json", "/agents", "/no-such-page", "/agents/nobody"] {
        reqwest::get(format!("{address}{page}")).await.expect("the node answers");
    }
    let exported = run(&home, ["evidence", "export", "-o", "bundle.tar.gz"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let given = format!("{:?}", b.all().iter().map(|asked| (&asked.path, &asked.headers, &asked.body)).collect::<Vec<_>>());
    assert!(!given.contains(&secret), "{given}");
    let (status, _) = node.terminate();
    assert!(status.success());
    assert_eq!(holding(home.path(), &secret), Vec::<String>::new());
    assert!(!holding(home.path(), &task_of(&done)).is_empty(), "what is looked for would be found");
}
