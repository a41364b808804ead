//! From an HTTP client of 1.0 to one node, over SWP to the next, and on to an agent of 0.3: one stream, one lineage, one budget.

use std::net::SocketAddr;

use chancery_protocol::{Binding, Version};
use serde_json::{Value, json};

use crate::gateway::one_way::{cards_of, path};
use crate::operating::cli::Ran;
use crate::support::line::{Beside, Event, Line};
use crate::support::patience::soon;
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::Combination;
use crate::support::wire_client::swp::address;

const AGENT_0_3: Combination = Combination { version: Version::V0_3, binding: Binding::JsonRpc };
pub(super) const ANYWHERE_HERE: &str = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";

pub(super) fn node(home: &Home, listen: SocketAddr, config: &str) -> Server {
    let data = home.data();
    Setup::at(home, listen).args(["--memory", "--data"]).args([data]).config(&format!("{ANYWHERE_HERE}{config}")).start()
}

/// The middle node listens for SWP and calls the agent by its card, which lists 0.3 alone.
async fn middle(agent: &str, more: &str) -> Server {
    let home = Home::new();
    node(&home, lasting_address(), &format!("[swp]\nlisten = '127.0.0.1:0'\n{more}[agents.middle]\nurl = '{agent}'\n"))
}

async fn front(middle: &Server, more: &str) -> Server {
    let (authority, agent) = address(middle.url()).await;
    node(&Home::new(), lasting_address(), &format!("{more}[agents.front]\nurl = 'swp://{authority}/{agent}'\n"))
}

pub(super) fn texts(events: &[Event]) -> Vec<String> {
    let artifacts = events.iter().filter_map(|event| event.payload["artifactUpdate"]["artifact"]["parts"].as_array());
    artifacts.flatten().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

fn tree(node: &Server, which: &str) -> Option<Value> {
    let ran = Ran::of(node.home().command().args(["--json", "tree", which]));
    (ran.code == Some(0)).then(|| ran.json()["trees"][0].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_comes_through_whole_and_all_nodes_know_it_by_one_trace() {
    let last = Setup::conformance().start();
    let cards = cards_of(last.url()).await;
    let second = middle(&format!("{}{}", cards.url(), path(AGENT_0_3)), "").await;
    let first = front(&second, "").await;
    let line = Line::to(first.url(), "");
    let events = line.streaming_send("stream 5 20").await.all().await.expect("to its end");
    let expected: Vec<String> = (1..=5).map(|number| format!("chunk-{number} ")).collect();
    assert_eq!(texts(&events), expected, "{}\n{}", first.log(), second.log());
    assert!(events.last().expect("an end").ends_the_task());

    let task = events[0].payload["task"]["id"].as_str().expect("an id").to_owned();
    let trace = tree(&first, &task).expect("the first knows it")["trace"].as_str().expect("a trace").to_owned();
    let listed = second.call("ListTasks", json!({})).await;
    let at_second = listed["result"]["tasks"][0]["id"].as_str().expect("a task").to_owned();
    assert_eq!(tree(&second, &at_second).expect("so does the second")["trace"], trace.as_str());
    let at_last = last.call("ListTasks", json!({})).await["result"]["tasks"][0]["id"].as_str().expect("a task").to_owned();
    assert_eq!(tree(&last, &at_last).expect("and the last")["trace"], trace.as_str());
    assert_ne!(task, at_second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_a_question_goes_back_to_the_same_task_over_swp() {
    let last = Setup::conformance().start();
    let cards = cards_of(last.url()).await;
    let second = middle(&format!("{}{}", cards.url(), path(AGENT_0_3)), "").await;
    let first = front(&second, "").await;
    let line = Line::to(first.url(), "");
    let asked = line.send("ask which colour?").await;
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}\n{}", first.log());
    let answered = line.follow_up(&asked["task"]["id"], "complete blue").await;
    assert_eq!(answered["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answered}\n{}", first.log());
    let tasks = last.call("ListTasks", json!({})).await;
    assert_eq!(tasks["result"]["tasks"].as_array().map(Vec::len), Some(1));
}

/// What the first may spend is all that the last may, whatever the caller says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_of_the_first_node_binds_the_last() {
    for (price, fits) in [("0.05", true), ("0.06", false)] {
        let agents = format!("[agents.conformance]\nrun = 'conformance'\nprice = {{ per_call_usd = '{price}' }}\n");
        let last = node(&Home::new(), lasting_address(), &agents);
        let cards = cards_of(last.url()).await;
        let second = middle(&format!("{}{}", cards.url(), path(AGENT_0_3)), "").await;
        let first = front(&second, "[budget.tree]\nmax_usd = '0.05'\n").await;
        for said in [json!({}), json!({ "ruvector": { "budget": { "usd": 5 } } })] {
            let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "echo hello" }], "metadata": said });
            let answer = first.call("SendMessage", json!({ "message": message })).await.to_string();
            assert_eq!(answer.contains("TASK_STATE_COMPLETED"), fits, "{price} {said}: {answer}\n{}", second.log());
            assert_eq!(answer.contains("BUDGET_EXHAUSTED"), !fits, "{price} {said}: {answer}");
        }
    }
}

/// The last gives it back to the first, which knows its own token when it comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circle_through_swp_is_found_by_its_lineage_and_ended() {
    let first_at = lasting_address();
    let cards = cards_of(&format!("http://{first_at}")).await;
    let second = middle(&format!("{}{}", cards.url(), path(AGENT_0_3)), "").await;
    let (authority, agent) = address(second.url()).await;
    let first = node(&Home::new(), first_at, &format!("[agents.front]\nurl = 'swp://{authority}/{agent}'\n"));
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "echo hello" }] });
    let answer = first.call("SendMessage", json!({ "message": message })).await.to_string();
    assert!(answer.contains("RECURSION_REVISIT") && !answer.contains("COMPLETED"), "{answer}\n{}", first.log());
}

/// The profile has no word for it: the first node gives the task up, and says so of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_the_task_here_and_cannot_be_said_to_a_peer() {
    let last = Setup::conformance().config("[swp]\nlisten = '127.0.0.1:0'\n").start();
    let (authority, agent) = address(last.url()).await;
    let config = format!("[limits]\ncancel_grace_ms = 50\n[agents.front]\nurl = 'swp://{authority}/{agent}'\n");
    let first = node(&Home::new(), lasting_address(), &config);
    let line = Line::to(first.url(), "");
    let mut events = line.streaming_send("sleep 600000").await;
    let task = events.next().await.expect("an event").expect("the task").payload["task"]["id"].clone();
    soon("the last node works on it", async || {
        let listed = last.call("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
        listed["result"]["tasks"].as_array().is_some_and(|tasks| tasks.len() == 1).then_some(())
    })
    .await;
    let canceled = line.call("CancelTask", &json!({ "id": task }), Beside::default()).await.expect("an answer");
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    let listed = last.call("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
}
