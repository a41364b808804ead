//! Clients of the original protocol name their tasks: the same name in two owners' hands is two tasks, and whether somebody
//! else uses a name cannot be seen.

use chancery_protocol::{Binding, CancelTask, GetTask, Request, Version};
use serde_json::Value;

use super::{CALLERS, Town, message};
use crate::support::patience::BOUND;
use crate::support::wire_client::{Combination, RawAnswer, RawCall};

const ORIGINAL: Combination = Combination { version: Version::Original, binding: Binding::JsonRpc };
const NAME: &str = "the-report";

fn send(name: &str, text: &str) -> Request {
    Request::SendMessage(chancery_protocol::SendMessage { client_task_id: Some(name.into()), ..message(text) })
}

fn get(name: &str) -> Request {
    Request::GetTask(GetTask { tenant: None, id: name.into(), history_length: None })
}

/// An answer without what is new in every task: times, and ids made for it.
fn shape(answer: &RawAnswer, name: &str) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, value) in members.iter_mut() {
                    match key.as_str() {
                        "timestamp" | "sessionId" | "contextId" | "messageId" | "taskId" => *value = Value::from("NEW"),
                        _ => strip(value),
                    }
                }
            }
            Value::Array(all) => all.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut json = answer.json();
    strip(&mut json);
    format!("{} {json}", answer.status).replace(name, "NAME")
}

#[tokio::test]
async fn one_name_in_four_hands_is_four_tasks() {
    let town = Town::new("");
    for (_, caller) in CALLERS {
        let made = town.request(caller, ORIGINAL, &send(NAME, &format!("ask {caller} what?"))).await;
        let json = made.json();
        assert_eq!(json["result"]["id"], NAME, "{json}");
        // Everybody starts a task of their own; nobody's message ends up in another's.
        assert_eq!(json["result"]["status"]["state"], "input-required", "{json}");
    }
    for (_, caller) in CALLERS {
        let seen = town.request(caller, ORIGINAL, &get(NAME)).await.text();
        assert!(seen.contains(&format!("{caller} what?")), "{seen}");
        for (_, other) in CALLERS.into_iter().filter(|(_, other)| *other != caller) {
            assert!(!seen.contains(other), "{seen}");
        }
    }
    let cancel = Request::CancelTask(CancelTask { tenant: None, id: NAME.into(), metadata: None });
    let first = CALLERS[0].1;
    assert!(!town.request(first, ORIGINAL, &cancel).await.is_refusal());
    for (_, caller) in CALLERS {
        let state = town.request(caller, ORIGINAL, &get(NAME)).await.json()["result"]["status"]["state"].take();
        assert_eq!(state, if caller == first { "canceled" } else { "input-required" }, "{caller}");
    }
}

#[tokio::test]
async fn a_name_that_somebody_else_uses_is_as_free_as_any() {
    let town = Town::new("");
    town.request("red-two", ORIGINAL, &send("used-by-red-two", "ask first?")).await;
    town.request("blue-one", ORIGINAL, &send("used-by-blue---", "ask first?")).await;
    let fresh = shape(&town.request("red-one", ORIGINAL, &send("used-by-nobody-", "ask mine?")).await, "used-by-nobody-");
    for name in ["used-by-red-two", "used-by-blue---"] {
        assert_eq!(shape(&town.request("red-one", ORIGINAL, &send(name, "ask mine?")).await, name), fresh, "{name}");
    }
    for (owner, name) in [("red-two", "used-by-red-two"), ("blue-one", "used-by-blue---")] {
        let theirs = town.request(owner, ORIGINAL, &get(name)).await.text();
        assert!(theirs.contains("first?") && !theirs.contains("mine?"), "{theirs}");
    }
}

#[tokio::test]
async fn who_listens_for_a_name_hears_only_of_a_task_of_its_own() {
    let town = Town::new("listen_ms = 300");
    town.request("red-two", ORIGINAL, &send("used-by-red-two", "ask first?")).await;
    town.request("blue-one", ORIGINAL, &send("used-by-blue---", "ask first?")).await;
    for path in ["sendSubscribe", "resubscribe"] {
        let listen = async |caller: &str, name: &str| {
            let url = format!("{}/tasks/{path}?id={name}", town.server.url());
            let request = reqwest::Client::new().get(url).header("x-api-key", super::key(caller));
            let heard = tokio::time::timeout(BOUND, async { request.send().await.expect("an answer").text().await });
            heard.await.expect("listening ends").expect("text").replace(name, "NAME")
        };
        let nothing = listen("red-one", "used-by-nobody-").await;
        assert!(nothing.contains("error"), "{nothing}");
        for name in ["used-by-red-two", "used-by-blue---"] {
            assert_eq!(listen("red-one", name).await, nothing, "{path} {name}");
        }
        let own = listen("red-two", "used-by-red-two").await;
        assert!(own.contains("first?"), "{own}");
    }
}

#[tokio::test]
async fn a_name_is_found_by_its_owner_alone_in_the_versions_that_know_names() {
    let town = Town::new("");
    town.request("red-one", ORIGINAL, &send(NAME, "ask what?")).await;
    for combination in Combination::ALL {
        let call = RawCall::of(combination, &get(NAME)).expect("getting");
        let own = town.ask("red-one", call.clone()).await;
        assert_eq!(own.is_refusal(), combination.version == Version::V1_0, "{combination:?} {own:?}");
        for other in ["red-two", "blue-one", "blue-two"] {
            let never = town.request(other, combination, &get("no-such-on")).await.replacing("no-such-on", NAME);
            assert_eq!(town.ask(other, call.clone()).await, never, "{combination:?}");
        }
    }
}
