//! Three nodes in a row with another binding between each two: what a caller does at the first holds at the last.

use std::net::{SocketAddr, TcpListener};

use chancery_protocol::{Binding, Version};
use serde_json::{Value, json};

use super::one_way::{cards_of, path};
use super::scripted::{Script, Scripted};
use super::{ANYWHERE_HERE, conformance};
use crate::support::line::{Beside, Event, Line};
use crate::support::patience::{eventually, soon};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Server, Setup};
use crate::support::wire_client::Combination;

const GRPC: Combination = Combination { version: Version::V1_0, binding: Binding::Grpc };
const REST: Combination = Combination { version: Version::V0_3, binding: Binding::Rest };
/// A node in the middle may take its time to come back.
const PATIENT: &str = "[peers]\nreconnects = 1000\nreconnect_ms = 10\nmax_reconnect_ms = 40\n";

/// Callers speak JSON-RPC to the first, the first gRPC to the second, and the second REST of 0.3 to the last.
struct Chain {
    first: Server,
    second: Server,
    second_home: Home,
    second_at: SocketAddr,
    last: Server,
    _cards: [Scripted; 2],
    card_of_last: String,
}

fn second(home: &Home, listen: SocketAddr, url: &str) -> Server {
    Setup::at(home, listen).config(&format!("{PATIENT}{ANYWHERE_HERE}[agents.middle]\nurl = '{url}'\n")).start()
}

impl Chain {
    async fn start() -> Self {
        let last = conformance();
        let last_cards = cards_of(last.url()).await;
        let card_of_last = format!("{}{}", last_cards.url(), path(REST));
        let (second_home, second_at) = (Home::new(), lasting_address());
        let second = second(&second_home, second_at, &card_of_last);
        let second_cards = cards_of(second.url()).await;
        let first = super::in_front_of(&format!("{}{}", second_cards.url(), path(GRPC)), &format!("{PATIENT}{ANYWHERE_HERE}"));
        Self { first, second, second_home, second_at, last, _cards: [last_cards, second_cards], card_of_last }
    }

    fn line(&self) -> Line {
        Line::to(self.first.url(), "")
    }

    /// Every task at the last node.
    async fn tasks(&self) -> Vec<Value> {
        let listed = self.last.call("ListTasks", json!({ "includeArtifacts": true, "historyLength": 10 })).await;
        listed["result"]["tasks"].as_array().expect("a list").clone()
    }

    async fn one_task(&self) -> Value {
        let tasks = self.tasks().await;
        assert_eq!(tasks.len(), 1, "the message arrived once: {tasks:?}");
        tasks.into_iter().next().expect("there is one")
    }

    /// Kills the second node and starts it again where it was.
    fn restart_second(&mut self) {
        self.second.signal("KILL");
        eventually("the port is free again", || TcpListener::bind(self.second_at).ok());
        self.second = second(&self.second_home, self.second_at, &self.card_of_last);
    }
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().expect("a state")
}

/// The texts of all artifact events, in the order they came.
fn texts(events: &[Event]) -> Vec<String> {
    let artifacts = events.iter().filter_map(|event| event.payload["artifactUpdate"]["artifact"]["parts"].as_array());
    artifacts.flatten().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

fn chunks(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("chunk-{number} ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_through_three_nodes_is_whole_and_can_be_replayed() {
    let chain = Chain::start().await;
    let line = chain.line();
    let events = line.streaming_send("stream 5 20").await.all().await.expect("to its end");
    assert_eq!(texts(&events), chunks(5));
    assert!(events.last().expect("an end").ends_the_task());
    assert_eq!(state(&chain.one_task().await), "TASK_STATE_COMPLETED");

    // From every place a reader can have been cut at, the rest is the same as it was.
    let task = events[0].payload["task"]["id"].clone();
    assert_ne!(task, chain.one_task().await["id"], "its name at the first node is the first node's own");
    for (place, seen) in events.iter().enumerate().take(events.len() - 1) {
        let beside = Beside { last_event_id: Some(seen.id), ..Beside::default() };
        let resumed = line.stream("SubscribeToTask", &json!({ "id": task }), beside).await.expect("an answer").expect("a stream");
        let resumed = resumed.all().await.expect("to its end");
        // A stream of 1.0 opens with the task as it was.
        let rest: Vec<Event> = resumed.into_iter().skip_while(|event| event.payload["task"].is_object()).collect();
        assert_eq!(rest, events[place + 1..], "after event {}", seen.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_the_first_node_reaches_the_last() {
    let chain = Chain::start().await;
    let line = chain.line();
    let mut events = line.streaming_send("sleep 600000").await;
    let task = events.next().await.expect("an event").expect("the task").payload["task"]["id"].clone();
    soon("the last node works on it", async || {
        chain.tasks().await.first().is_some_and(|task| state(task) == "TASK_STATE_WORKING").then_some(())
    })
    .await;
    let canceled = line.call("CancelTask", &json!({ "id": task }), Beside::default()).await.expect("an answer");
    assert_eq!(state(&canceled["result"]), "TASK_STATE_CANCELED", "{canceled}");
    assert!(events.all().await.expect("to its end").last().expect("an end").ends_the_task());
    soon("the last node has stopped", async || (state(&chain.one_task().await) == "TASK_STATE_CANCELED").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_goes_back_to_the_same_task_of_the_last_node() {
    let chain = Chain::start().await;
    let line = chain.line();
    let asked = line.send("ask which colour?").await;
    let task = asked["task"]["id"].clone();
    assert_eq!(state(&asked["task"]), "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let answered = line.follow_up(&task, "complete blue").await;
    assert_eq!(answered["result"]["task"]["id"], task);
    assert_eq!(state(&answered["result"]["task"]), "TASK_STATE_COMPLETED", "{answered}");
    let there = chain.one_task().await;
    let said: Vec<&str> =
        there["history"].as_array().expect("a history").iter().filter_map(|said| said["parts"][0]["text"].as_str()).collect();
    assert_eq!(said, ["ask which colour?", "which colour?", "complete blue"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_outlives_the_node_in_the_middle() {
    let mut chain = Chain::start().await;
    let line = chain.line();
    let mut events = line.streaming_send("stream 30 100").await;
    let mut seen = Vec::new();
    while texts(&seen).len() < 3 {
        seen.push(events.next().await.expect("an event").expect("more"));
    }
    chain.restart_second();
    seen.extend(events.all().await.expect("to its end"));
    assert_eq!(texts(&seen), chunks(30), "{}\n{}", chain.first.log(), chain.second.log());
    let last = &seen.last().expect("an end").payload["statusUpdate"];
    assert_eq!(state(last), "TASK_STATE_COMPLETED", "{last}");
    assert_eq!(state(&chain.one_task().await), "TASK_STATE_COMPLETED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_finds_its_way_after_the_node_in_the_middle_was_restarted() {
    let mut chain = Chain::start().await;
    let line = chain.line();
    let mut events = line.streaming_send("sleep 600000").await;
    let task = events.next().await.expect("an event").expect("the task").payload["task"]["id"].clone();
    let working = events.next().await.expect("an event").expect("work");
    assert_eq!(state(&working.payload["statusUpdate"]), "TASK_STATE_WORKING");
    chain.restart_second();
    let canceled = line.call("CancelTask", &json!({ "id": task }), Beside::default()).await.expect("an answer");
    assert_eq!(state(&canceled["result"]), "TASK_STATE_CANCELED", "{canceled}");
    soon("the last node has stopped", async || (state(&chain.one_task().await) == "TASK_STATE_CANCELED").then_some(())).await;
}

fn message() -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "once" }] } })
}

/// Where the second node had not heard that the last one took the message, nobody knows whether it did. It is not sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_an_answer_is_not_sent_again_after_a_restart() {
    let agent = Scripted::agent(|_| Script::default().hang()).await;
    let home = Home::new();
    let start = || Setup::in_home(&home).config(&format!("[agents.front]\nurl = '{}'\n", agent.url())).start();
    let node = start();
    let line = Line::to(node.url(), "");
    let call = tokio::spawn(async move { line.stream("SendStreamingMessage", &message(), Beside::default()).await.is_err() });
    soon("the agent is asked", async || (agent.calls().len() == 1).then_some(())).await;
    node.kill();
    call.abort();

    let node = start();
    let failed = soon("the task is over", async || {
        let mut listed = node.call("ListTasks", json!({ "historyLength": 10 })).await;
        let task = listed["result"]["tasks"][0].take();
        (state(&task) == "TASK_STATE_FAILED").then_some(task)
    })
    .await;
    let reason = failed["status"]["message"]["parts"][0]["text"].as_str().expect("a reason");
    assert!(reason.contains("restarted before the agent had answered"), "{reason}");
    assert_eq!(agent.count("SendStreamingMessage"), 1, "once is all");
}

/// Both go down together, as they do with their machine, and the one in front is up first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_looked_for_until_its_agent_has_come_up_again() {
    let (back_home, back_at, home) = (Home::new(), lasting_address(), Home::new());
    let back = || Setup::at(&back_home, back_at).args(["--agent", "conformance"]).start();
    let start = || Setup::in_home(&home).config(&format!("{PATIENT}[agents.front]\nurl = 'http://{back_at}'\n")).start();
    let agent = back();
    let node = start();
    let mut events = Line::to(node.url(), "").streaming_send("sleep 600000").await;
    let task = events.next().await.expect("an event").expect("the task").payload["task"]["id"].clone();
    events.next().await.expect("an event").expect("work");
    node.kill();
    agent.kill();

    let node = start();
    let line = Line::to(node.url(), "");
    let look = async || {
        let found = line.call("GetTask", &json!({ "id": task }), Beside::default()).await;
        found.expect("the server answers")["result"].take()
    };
    assert_eq!(state(&look().await), "TASK_STATE_WORKING", "nobody knows yet what became of it");
    let _agent = back();
    let failed = soon("the task is over", async || Some(look().await).filter(|task| state(task) != "TASK_STATE_WORKING")).await;
    // The conformance agent gives up what it was at when its node went down, and that is what there is to tell.
    let reason = failed["status"]["message"]["parts"][0]["text"].as_str().expect("a reason");
    assert_eq!(state(&failed), "TASK_STATE_FAILED");
    assert!(reason.starts_with("the node restarted while this task was being worked on"), "{reason}");
}
