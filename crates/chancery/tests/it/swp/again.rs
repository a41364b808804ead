//! The same task once more: what is told again, what is done again, which is nothing, and who still hears of it.

use chancery_wire::swp::Convention;
use chancery_wire::swp::codec::a2a;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{Peer, node};
use crate::support::server::Server;

fn of<'a>(heard: &'a [a2a::A2aMessage], task_id: &str) -> Vec<&'a a2a::A2aMessage> {
    heard.iter().filter(|message| message.task_id().is_some_and(|id| id == task_id)).collect()
}

/// The only task of a node, with all that was said to it.
async fn the_task(node: &Server) -> Value {
    let listed = node.call("ListTasks", json!({ "historyLength": 100 })).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
    listed["result"]["tasks"][0].clone()
}

fn said_by_the_caller(task: &Value) -> usize {
    let history = task["history"].as_array().expect("a history");
    history.iter().filter(|message| message["role"] == "ROLE_USER").count()
}

/// What comes of a task that is sent again, until another one that was sent after it has ended.
async fn again(peer: &mut Peer, task_id: &str, words: &str, goes_on_with: Option<&str>, round: &str) -> Vec<a2a::A2aMessage> {
    peer.tell(task_id, words, goes_on_with).await;
    let mut heard = Vec::new();
    for marker in ["first", "second"] {
        let marker = format!("{marker} after {round}");
        peer.give(&marker, "echo", "x", Some(Convention::Text)).await;
        heard.extend(peer.until(&marker).await);
    }
    heard
}

#[tokio::test]
async fn a_result_is_told_again_word_for_word_or_not_at_all() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    peer.tell("t", "ask which colour?", None).await;
    let (_, asked) = peer.outcome().await;
    assert!(asked.error_message.starts_with("TASK_STATE_INPUT_REQUIRED"), "{}", asked.error_message);
    peer.tell("t", "ask which colour?", None).await;
    let (events, told) = peer.outcome().await;
    assert_eq!((events.len(), &told), (0, &asked));

    // The task goes on, so that its story has another end by now. This one had its result.
    let id = the_task(&node).await["id"].as_str().expect("an id").to_owned();
    peer.tell("u", "complete blue", Some(&id)).await;
    assert!(peer.outcome().await.1.ok);
    let heard = again(&mut peer, "t", "ask which colour?", None, "the end").await;
    let same = a2a::A2aMessage::Result(asked.clone());
    assert!(of(&heard, "t").iter().all(|message| **message == same), "{heard:?}");

    // Nor has it another because the rules would refuse it now.
    let frozen = crate::operating::cli::Ran::of(node.home().command().args(["freeze", "agent", "conformance"]));
    assert_eq!(frozen.code, Some(0), "{}", frozen.stderr);
    let heard = again(&mut peer, "t", "ask which colour?", None, "a freeze").await;
    assert!(of(&heard, "t").iter().all(|message| **message == same), "{heard:?}");
}

#[tokio::test]
async fn a_message_that_goes_on_with_a_task_is_said_once_and_its_result_told_again() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    peer.tell("t", "ask which colour?", None).await;
    peer.outcome().await;
    let id = the_task(&node).await["id"].as_str().expect("an id").to_owned();
    peer.tell("u", "ask and which size?", Some(&id)).await;
    let (_, asked) = peer.outcome().await;
    assert_eq!(said_by_the_caller(&the_task(&node).await), 2);

    peer.tell("u", "ask and which size?", Some(&id)).await;
    assert_eq!(peer.outcome().await, (Vec::new(), asked.clone()));
    let mut other = Peer::of(&node).await;
    other.tell("u", "ask and which size?", Some(&id)).await;
    assert_eq!(other.outcome().await, (Vec::new(), asked));
    assert_eq!(said_by_the_caller(&the_task(&node).await), 2);

    // While it is worked on, another connection waits for the result.
    peer.tell("v", "sleep 500", Some(&id)).await;
    peer.report().await;
    other.tell("v", "sleep 500", Some(&id)).await;
    let (_, slept) = peer.outcome().await;
    assert!(slept.ok, "{slept:?}");
    assert_eq!(other.outcome().await, (Vec::new(), slept));
    assert_eq!(said_by_the_caller(&the_task(&node).await), 3);
}

#[tokio::test]
async fn a_message_that_nobody_reports_on_any_more_is_not_said_again_either() {
    let node = node("");
    let mut peer = Peer::of(&node).await;
    peer.tell("t", "ask which colour?", None).await;
    peer.outcome().await;
    let id = the_task(&node).await["id"].as_str().expect("an id").to_owned();
    let mut other = Peer::of(&node).await;
    peer.tell("u", "sleep 600000", Some(&id)).await;
    peer.report().await;
    other.tell("u", "sleep 600000", Some(&id)).await;
    drop(peer);
    let (_, refused) = other.outcome().await;
    assert!(refused.error_message.starts_with("UNSUPPORTED_OPERATION: "), "{}", refused.error_message);
    other.tell("u", "sleep 600000", Some(&id)).await;
    let (_, refused) = other.outcome().await;
    assert!(refused.error_message.starts_with("UNSUPPORTED_OPERATION: "), "{}", refused.error_message);
    assert_eq!(said_by_the_caller(&the_task(&node).await), 2);
    // What was refused was not said, and may be tried again.
    other.tell("v", "x", Some("no such task")).await;
    assert!(other.outcome().await.1.error_message.starts_with("TASK_NOT_FOUND: "));
    other.tell("v", "x", Some("no such task")).await;
    assert!(other.outcome().await.1.error_message.starts_with("TASK_NOT_FOUND: "));
}

#[tokio::test]
async fn a_connection_that_closes_takes_no_task_from_another() {
    let node = node("");
    let (mut peer, mut other) = (Peer::of(&node).await, Peer::of(&node).await);
    for peer in [&mut peer, &mut other] {
        peer.give("shared", "conformance", "sleep 600000", Some(Convention::Text)).await;
        peer.report().await;
    }
    // A frame of nothing; once that has closed the connection, its tasks are no longer its own.
    other.line.write_all(&[0; 4]).await.expect("the node takes it");
    assert!(other.is_closed().await);
    peer.give("shared", "conformance", "sleep 600000", Some(Convention::Text)).await;
    let mut heard = Vec::new();
    for marker in ["first", "second"] {
        peer.give(marker, "echo", "x", Some(Convention::Text)).await;
        heard.extend(peer.until(marker).await);
    }
    assert!(of(&heard, "shared").is_empty(), "{heard:?}");
    peer.give("shared", "conformance", "complete something else", Some(Convention::Text)).await;
    assert!(peer.is_closed().await, "another task under an id that this connection uses");
    assert!(node.log().contains("task_conflict"), "{}", node.log());
}
