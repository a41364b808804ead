//! What became of notifications is in the record: what was taken, what was given up, and what an operator had sent again.

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_evidence::record::{hex, sha256};
use serde_json::{Value, json};

use super::record::{evidence, exported};
use crate::push::receiver::{Act, Got, Receiver};
use crate::push::{admin, lasting, send};
use crate::support::counts::full_counts;
use crate::support::patience::soon;
use crate::support::server::{Home, Server};
use crate::tasks::crash::chance::Chance;

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

/// The id, the body's digest and the last entry of each notification that was taken.
type Taken = BTreeSet<(String, String, u64)>;

fn taken(id: &Value, sha256: &Value, seq: &Value) -> (String, String, u64) {
    (id.as_str().unwrap().to_owned(), sha256.as_str().unwrap().to_owned(), seq.as_u64().unwrap())
}

async fn by_receipts(server: &Server, home: &Home) -> Taken {
    let (mut all, mut after) = (Taken::new(), json!(0));
    while !after.is_null() {
        let page = admin(server, &home.data(), &format!("/receipts?after={after}"), None).await;
        let receipts = page["receipts"].as_array().unwrap().iter();
        all.extend(receipts.map(|receipt| taken(&receipt["webhook_id"], &receipt["body_sha256"], &receipt["seq"])));
        after = page["next"].clone();
    }
    all
}

fn by_record(home: &Home) -> Taken {
    if evidence(home, &["status", "--json"]).json()["record"]["end"] == 0 {
        return Taken::new();
    }
    let (_, events, _) = exported(home, &[]);
    let told = events.iter().filter(|event| event["type"] == "chancery.decision.delivered").map(|event| &event["data"]);
    let all: Vec<_> = told.map(|data| taken(&data["webhook"], &data["sha256"], &data["seq"])).collect();
    let once: Taken = all.iter().cloned().collect();
    assert_eq!(all.len(), once.len(), "each is recorded once");
    once
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_each_kill_the_record_has_what_the_outbox_has() {
    let mut chance = Chance::new("the record and the outbox");
    let home = Home::new();
    let receiver = Receiver::kind().await;
    let kills = full_counts(6, 60);
    for _ in 0..kills {
        let server = lasting(&home, "");
        // Deliveries go on meanwhile.
        let before = by_receipts(&server, &home).await;
        let recorded = by_record(&home);
        let after = by_receipts(&server, &home).await;
        assert!(before.is_subset(&recorded), "not in the record: {:?}", before.difference(&recorded).next());
        assert!(recorded.is_subset(&after), "in the record alone: {:?}", recorded.difference(&after).next());
        let got = receiver.got().len();
        for _ in 0..4 {
            send(&server, "stream 6", json!({ "url": receiver.url("/") }), true).await;
        }
        receiver.has_got(got + usize::try_from(chance.within(1..=20)).unwrap()).await;
        tokio::time::sleep(Duration::from_micros(chance.within(0..=3_000))).await;
        server.kill();
    }
    let server = lasting(&home, "");
    let (before, recorded) = (by_receipts(&server, &home).await, by_record(&home));
    assert!(before.is_subset(&recorded) && recorded.len() > kills, "{}", recorded.len());
}
