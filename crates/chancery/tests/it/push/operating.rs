//! What operators see and do: delete, pause, enable, dead letters, receipts, keys and figures.

use std::time::Duration;

use serde_json::{Value, json};

use super::receiver::{Act, Receiver};
use super::{admin, lasting, send};
use crate::support::patience::soon;
use crate::support::server::Home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_after_a_delete_was_answered() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Slow(200, Duration::from_millis(150))).await;
    let server = lasting(&home, "");
    let task = send(&server, "stream 40 50", json!({ "url": receiver.url("/"), "id": "c" }), true).await;
    receiver.has_got(2).await;
    let gone = server.call("DeleteTaskPushNotificationConfig", json!({ "taskId": task["id"], "id": "c" })).await;
    let before = receiver.got().len();
    assert!(gone["error"].is_null(), "{gone}");
    let state = async || server.call("GetTask", json!({ "id": task["id"] })).await["result"]["status"]["state"].take();
    soon("all that could be told has happened", async || (state().await == "TASK_STATE_COMPLETED").then_some(())).await;
    // Another webhook is told afterwards: had there been more for the first one, it would have come before.
    let other = Receiver::kind().await;
    for _ in 0..5 {
        send(&server, "complete", json!({ "url": other.url("/") }), false).await;
    }
    other.has_taken(10).await;
    // One can have been on the way, and there is never more than one.
    assert!(receiver.got().len() <= before + 1, "{before}, then {}", receiver.got().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_pause_resume_disable_and_enable() {
    let home = Home::new();
    let receiver = Receiver::kind().await;
    let server = lasting(&home, "");
    let config = json!({ "url": receiver.url("/"), "id": "c" });
    let task = send(&server, "ask which?", config, false).await;
    let before = receiver.has_taken(2).await.len();
    let data = home.data();
    let changed = admin(&server, &data, "/pause", Some(json!({ "task": task["id"] }))).await;
    assert_eq!(changed["changed"].as_array().unwrap().len(), 1, "{changed}");
    let message = json!({ "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    server.call("SendMessage", json!({ "message": message })).await;
    let lanes = admin(&server, &data, "/lanes?state=paused", None).await;
    assert_eq!(lanes["lanes"][0]["state"], "paused", "{lanes}");
    assert!(lanes["lanes"][0]["pending"].as_u64().unwrap() > 0, "{lanes}");
    assert_eq!(receiver.got().len(), before);
    admin(&server, &data, "/resume", Some(json!({ "task": task["id"] }))).await;
    let ended = |got: &super::receiver::Got| got.json()["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED";
    soon("it goes on", async || receiver.taken().iter().any(ended).then_some(())).await;
    admin(&server, &data, "/disable", Some(json!({ "origin": receiver.url("") }))).await;
    let count = receiver.got().len();
    admin(&server, &data, "/enable", Some(json!({ "lane": lanes["lanes"][0]["lane"] }))).await;
    let first = receiver.has_got(count + 1).await[count].clone();
    assert_eq!(first.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED", "the task as it is comes first");
    let tried = admin(&server, &data, "/test", Some(json!({ "lane": lanes["lanes"][0]["lane"] }))).await;
    assert_eq!((&tried["outcome"], &tried["http"]), (&json!("delivered"), &json!(200)), "{tried}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_shown_replayed_and_purged() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::Answer(422)).await;
    let server = lasting(&home, "");
    let data = home.data();
    send(&server, "complete", json!({ "url": receiver.url("/"), "token": "s3cret-token" }), true).await;
    let dead = async |count: usize| {
        let look = async || {
            let letters = admin(&server, &data, "/dead", None).await["letters"].as_array().unwrap().clone();
            (letters.len() == count).then_some(letters)
        };
        soon("letters are there", look).await
    };
    let letters = dead(2).await;
    let shown = admin(&server, &data, &format!("/dead/{}", letters[0]["id"]), None).await;
    assert_eq!((&shown["reason"], &shown["http"]), (&json!("rejected"), &json!(422)));
    assert!(!shown.to_string().contains("s3cret-token"), "{shown}");
    let dry = admin(&server, &data, "/dead/replay", Some(json!({ "dry_run": true }))).await;
    assert_eq!(dry["letters"].as_array().unwrap().len(), 2, "{dry}");
    receiver.now_does(|_| Act::Answer(200));
    admin(&server, &data, "/dead/replay", Some(json!({}))).await;
    let replayed = receiver.has_taken(2).await;
    let first = receiver.got();
    for (one, again) in first.iter().zip(&replayed) {
        assert_eq!((one.header("webhook-id"), &one.body), (again.header("webhook-id"), &again.body));
        assert_eq!(again.header("a2a-event-replay"), "1");
    }
    dead(0).await;
    receiver.now_does(|_| Act::Answer(422));
    send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
    dead(2).await;
    let purged = admin(&server, &data, "/dead/purge", Some(json!({}))).await;
    assert_eq!(purged["purged"], 2, "{purged}");
    dead(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_are_a_signed_chain_and_figures_name_no_receiver() {
    let home = Home::new();
    let receiver = Receiver::new(|_| Act::With(200, vec![("a2a-receipt", "their.own.receipt".to_owned())])).await;
    let server = lasting(&home, "");
    let data = home.data();
    send(&server, "stream 3", json!({ "url": receiver.url("/") }), true).await;
    let receipts = soon("receipts are there", async || {
        let receipts = admin(&server, &data, "/receipts", None).await["receipts"].as_array().unwrap().clone();
        (receipts.len() >= 5).then_some(receipts)
    })
    .await;
    for pair in receipts.windows(2) {
        assert_eq!(pair[1]["prev_hash"], pair[0]["hash"]);
    }
    assert_eq!(receipts[0]["receiver_receipt"], "their.own.receipt");
    let figures = admin(&server, &data, "/metrics", None).await;
    let Value::String(figures) = figures else { panic!("{figures}") };
    assert!(figures.contains("a2a_push_deliveries_total{outcome=\"delivered\",profile=\"v1\"} "), "{figures}");
    for name in
        ["attempt_seconds", "lag_seconds", "first_attempt_seconds", "inflight", "lanes_due", "backlog_events", "dead_total"]
    {
        assert!(figures.contains(&format!("a2a_push_{name}")), "{name}: {figures}");
    }
    assert!(!figures.contains("127.0.0.1"), "{figures}");
}
