//! Each kind of thing that happens at a node becomes an entry of its record, with the facts of the wire.

use std::collections::BTreeSet;

use chancery_evidence::record::{hex, sha256, types};
use serde_json::{Value, json};

use super::record::{exported, kinds};
use crate::operating::cli::run;
use crate::push::LOCAL;
use crate::push::receiver::Receiver;
use crate::support::server::{Home, Server, Setup};

const FRONT: &str = "[outbound]\nallow_nets = ['127.0.0.0/8']\nallow_http = true\n";

/// A node that keeps a record, in front of the agent at that URL.
fn in_front_of(home: &Home, url: &str) -> Server {
    Setup::in_home(home).config(&format!("{LOCAL}{FRONT}[agents.front]\nurl = '{url}'\n")).start()
}

/// A call of 0.3.
async fn older(server: &Server, text: &str) -> Value {
    let message = json!({ "kind": "message", "messageId": "m-0.3", "role": "user", "parts": [{ "kind": "text", "text": text }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } });
    let answer = reqwest::Client::new().post(server.url()).json(&body).send().await.unwrap();
    answer.json::<Value>().await.unwrap()["result"].take()
}

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

fn one<'a>(events: &'a [Value], kind: &str, task: &str) -> &'a Value {
    let fits = |event: &&Value| event["type"] == kind && event["data"]["task"] == task;
    &events.iter().find(fits).unwrap_or_else(|| panic!("no {kind} of {task}"))["data"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_thing_that_happens_becomes_an_entry() {
    let (home, far_home) = (Home::new(), Home::new());
    let far = Setup::in_home(&far_home).args(["--agent", "conformance"]).start();
    let near = in_front_of(&home, far.url());
    let receiver = Receiver::kind().await;

    let told = json!({ "url": receiver.url("/") });
    let streamed = id(&crate::push::send(&near, "stream 2", told, false).await);
    receiver.has_taken(4).await;
    let reply = near.send("message hello").await;
    assert!(reply["message"].is_object(), "{reply}");
    let asked = id(&near.send("ask which?").await["task"]);
    let more = json!({ "messageId": "m-2", "taskId": asked, "role": "ROLE_USER", "parts": [{ "text": "ask again?" }] });
    near.call("SendMessage", json!({ "message": more })).await;
    near.call("CancelTask", json!({ "id": asked })).await;
    assert_eq!(run(&home, ["freeze", "everything", "--why", "a test"]).code, Some(0));
    assert!(near.send("complete").await.is_null());
    assert_eq!(run(&home, ["thaw", "everything"]).code, Some(0));
    // The agent itself takes nothing any more.
    assert_eq!(run(&far_home, ["freeze", "everything"]).code, Some(0));
    let withdrawn = near.send("complete").await;
    assert!(withdrawn["task"].is_null(), "{withdrawn}");

    let (_, events, report) = exported(&home, &[]);
    let seen: BTreeSet<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let missing: Vec<_> = types::ENTRIES.iter().filter(|kind| !seen.contains(*kind)).collect();
    assert_eq!(missing, [&types::LOOKED, &types::CLOCK], "looks at memory have a story of their own: {seen:?}");
    assert_eq!(report.packets, 0, "all of it is of 1.0");

    let requested = one(&events, types::REQUESTED, &streamed);
    let text = "stream 2";
    let mut said = vec![b't'];
    said.extend((text.len() as u64).to_be_bytes());
    said.extend(text.as_bytes());
    assert_eq!(requested["message"]["sha256"], hex(&sha256(&said)));
    assert_eq!((&requested["attribution"], &requested["agent"]), (&json!("root"), &json!("front")));
    let rules = one(&events, types::ADMITTED, &streamed)["rules"].as_array().unwrap();
    assert!(!rules.is_empty() && rules.iter().all(|rule| rule["passed"] == true), "{rules:?}");
    let routed = one(&events, types::ROUTED, &streamed);
    assert!(routed["remote_task"].is_string() && routed["peer"].is_string(), "{routed}");
    let pieces = kinds(&events, &streamed).into_iter().filter(|kind| *kind == types::ARTIFACT).count();
    assert_eq!(pieces, 2);
    assert_eq!(one(&events, types::CANCELLED, &asked)["by"], json!("default/anonymous"));
    let refused = events.iter().find(|event| event["type"] == types::REFUSED).unwrap();
    let rule = refused["data"]["rules"].as_array().unwrap().iter().find(|rule| rule["passed"] == false).unwrap();
    assert!(rule["rule"].is_string() && !rule["facts"].as_array().unwrap().is_empty(), "{refused}");
    let card = &events.iter().find(|event| event["type"] == types::CARD).unwrap()["data"];
    let shown = reqwest::Client::new().get(format!("{}/.well-known/agent-card.json", far.url())).header("A2A-Version", "1.0");
    let shown = shown.send().await.unwrap().bytes().await.unwrap();
    assert_eq!((&card["sha256"], &card["bytes"]), (&json!(hex(&sha256(&shown))), &json!(shown.len())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_of_0_3_is_also_emitted_as_packets_that_promote_nothing() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let done = older(&server, "complete good morning").await;
    let newer = id(&server.send("complete good morning").await["task"]);
    let (_, _, none) = exported(&home, &["--task", &newer]);
    assert_eq!(none.packets, 0, "1.0 is not dressed up as something older");
    let (_, events, report) = exported(&home, &["--task", &id(&done)]);
    let packets: Vec<_> = events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("assay.")).collect();
    assert_eq!(packets.len(), report.packets);
    let names: Vec<_> = packets.iter().map(|packet| packet["data"]["upstream_event_type"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"task.requested"), Some(&"task.updated")));
    assert!(names.contains(&"artifact.shared"), "{names:?}");
    for packet in packets {
        let data = &packet["data"];
        assert_eq!(data["protocol_version"], "0.3");
        for flag in ["visible", "task_ref_visible", "message_ref_visible"] {
            assert_eq!(data["handoff"][flag], false, "{data}");
        }
        assert_eq!(data["discovery"]["agent_card_visible"], false, "no card was fetched");
    }
}
