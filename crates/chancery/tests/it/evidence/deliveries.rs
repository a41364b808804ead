//! What became of notifications is in the record: what was taken, what was given up, and what an operator had sent again.

use chancery_evidence::record::{hex, sha256};
use serde_json::{Value, json};

use super::record::{evidence, exported};
use crate::patience::soon;
use crate::push::receiver::{Act, Got, Receiver};
use crate::push::{admin, lasting, send};
use crate::server::Home;

/// What the record says of the deliveries of a task, when there are so many.
async fn delivered(home: &Home, task: &str, count: usize) -> (Vec<Value>, Vec<Value>) {
    let look = async || {
        let (_, events, _) = exported(home, &["--task", task]);
        let told: Vec<_> = events.iter().filter(|event| event["type"] == "chancery.decision.delivered").cloned().collect();
        (told.len() >= count).then_some((events, told))
    };
    soon("deliveries are recorded", look).await
}

/// Whether an entry is about this request.
fn is_of(entry: &Value, got: &Got) -> bool {
    let data = &entry["data"];
    data["webhook"] == got.header("webhook-id")
        && data["sha256"] == hex(&sha256(&got.body))
        && data["bytes"] == got.body.len()
        && data["seq"] == got.seq()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_webhook_took_is_recorded_with_what_it_was_sent_and_no_secret() {
    let home = Home::new();
    let receiver = Receiver::kind().await;
    let server = lasting(&home, "");
    let config = json!({
        "id": "mine", "url": receiver.url("/hook?key=s3cret-key"), "token": "s3cret-token",
        "authentication": { "scheme": "Bearer", "credentials": "s3cret-credentials" },
    });
    let task = send(&server, "stream 3", config, false).await;
    let task = task["id"].as_str().unwrap();
    let got = receiver.has_taken(5).await;
    let (events, told) = delivered(&home, task, got.len()).await;
    assert_eq!(told.len(), got.len());
    for (entry, got) in told.iter().zip(&got) {
        assert!(is_of(entry, got), "{entry}");
        let data = &entry["data"];
        assert_eq!((&data["status"], &data["config"], &data["attempts"]), (&json!(200), &json!("mine"), &json!(1)));
        assert!(data["lane"].as_u64().unwrap() > 0 && data["given_up"].is_null(), "{entry}");
    }
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("s3cret") && !text.contains("/hook"), "{text}");
    // A task that nobody is told of has no such entries.
    let quiet = server.send("complete").await["task"]["id"].as_str().unwrap().to_owned();
    let (_, events, _) = exported(&home, &["--task", &quiet]);
    assert!(events.iter().all(|event| event["type"] != "chancery.decision.delivered"), "{events:?}");
    let file = home.path().join("bundle.tar.gz");
    let ran = evidence(&Home::new(), &["verify", &file.to_string_lossy()]);
    assert!(ran.code == Some(0), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_is_recorded_with_the_answer_and_so_is_its_replay() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(422)).await;
    let server = lasting(&home, "");
    let task = send(&server, "complete", json!({ "url": receiver.url("/") }), false).await;
    let task = task["id"].as_str().unwrap();
    let (_, told) = delivered(&home, task, 2).await;
    let got = receiver.got();
    for (entry, got) in told.iter().zip(&got) {
        assert!(is_of(entry, got), "{entry}");
        assert_eq!((&entry["data"]["status"], &entry["data"]["given_up"]), (&json!(422), &json!("rejected")));
    }
    receiver.now_does(|_| Act::Answer(204));
    admin(&server, &home.data(), "/dead/replay", Some(json!({}))).await;
    let (_, told) = delivered(&home, task, 4).await;
    assert_eq!(told.len(), 4, "{told:?}");
    for (entry, got) in told[2..].iter().zip(&got) {
        assert!(is_of(entry, got), "the same again: {entry}");
        let data = &entry["data"];
        assert_eq!((&data["status"], &data["replay"], &data["given_up"]), (&json!(204), &json!(true), &Value::Null));
    }
}
