//! The record of a built server: what it holds, and that a stranger can check it.

use std::path::PathBuf;

use chancery_evidence::bundle::{BundleReport, verify};
use serde_json::{Value, json};

use crate::operating::cli::{Ran, run};
use crate::support::line::{Beside, Line};
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};

pub(super) const SMALL: &str = "[evidence]\nsegment_entries = 16\ncheckpoint_entries = 4\n";

pub(super) fn serve(home: &Home, config: &str) -> (Server, Line) {
    let server = Setup::in_home(home).args(["--agent", "conformance", "--agent", "echo"]).config(config).start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let line = Line::to(server.url(), &token);
    (server, line)
}

pub(super) fn evidence(home: &Home, arguments: &[&str]) -> Ran {
    run(home, [&["evidence"], arguments].concat())
}

pub(super) fn exported(home: &Home, arguments: &[&str]) -> (PathBuf, Vec<Value>, BundleReport) {
    let file = home.path().join("bundle.tar.gz");
    let ran = evidence(home, &[&["export", "-o", &file.to_string_lossy()], arguments].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (checked, report) = verify(&std::fs::read(&file).unwrap(), &[]).unwrap();
    (file, checked.events, report)
}

pub(super) fn kinds<'a>(events: &'a [Value], task: &str) -> Vec<&'a str> {
    let of_task = events.iter().filter(|event| event["data"]["task"] == task);
    of_task.filter_map(|event| event["type"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_decided_and_done_is_recorded_and_a_stranger_can_check_it() {
    let home = Home::new();
    let (server, line) = serve(&home, "");
    let done = line.send("complete good morning").await["task"]["id"].as_str().unwrap().to_owned();
    let waiting = line.send("ask what now?").await["task"]["id"].as_str().unwrap().to_owned();
    line.follow_up(&json!(waiting), "complete that").await;
    let parked = line.send("ask more?").await["task"]["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&home, ["tasks", "cancel", &parked]).code, Some(0));
    assert_eq!(run(&home, ["freeze", "everything", "--why", "a test"]).code, Some(0));
    let refused = line
        .call(
            "SendMessage",
            &json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } }),
            Beside::default(),
        )
        .await
        .unwrap();
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(run(&home, ["thaw", "everything"]).code, Some(0));

    let (file, events, report) = exported(&home, &[]);
    let request = events.iter().find(|event| event["data"]["task"] == done).unwrap();
    assert_eq!((&request["type"], &request["data"]["protocol_version"]), (&json!("chancery.task.requested"), &json!("1.0")));
    assert_eq!(kinds(&events, &done)[..2], ["chancery.task.requested", "chancery.decision.admitted"]);
    assert_eq!(kinds(&events, &done).last(), Some(&"chancery.task.updated"));
    let later = kinds(&events, &waiting);
    assert_eq!(later.iter().filter(|kind| **kind == "chancery.decision.admitted").count(), 2, "{later:?}");
    assert!(later.contains(&"chancery.message"), "{later:?}");
    assert!(kinds(&events, &parked).contains(&"chancery.decision.cancelled"));
    for kind in ["chancery.decision.frozen", "chancery.decision.refused", "chancery.decision.thawed"] {
        assert_eq!(events.iter().filter(|event| event["type"] == kind).count(), 1, "{kind}");
    }
    let text = serde_json::to_string(&events).unwrap();
    assert!(!text.contains("good morning"), "content is in the record");
    assert_eq!(report.packets, 0, "1.0 is not dressed up as something older");

    // The node is gone; the bundle and the key's name are enough.
    let kid = report.keys.first().unwrap().clone();
    let (_, keys) = (server.terminate(), run(&home, ["keys", "show", "--json"]).json());
    assert!(keys.to_string().contains(&kid), "{keys}");
    let file = file.to_string_lossy().into_owned();
    let ran = evidence(&Home::new(), &["verify", &file, "--key", &kid]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("No fault was found."), "{} {}", ran.stdout, ran.stderr);
    let ran = evidence(&Home::new(), &["verify", &file, "--key", "another"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("CheckpointKey"), "{}", ran.stderr);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let ran = evidence(&Home::new(), &["verify", &file]);
    assert!(ran.code == Some(1) && ran.stderr.contains("Integrity"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_tasks_and_traces_come_with_proofs_and_the_record_goes_on_after_a_restart() {
    let home = Home::new();
    let mut task = String::new();
    for _ in 0..3 {
        let (server, line) = serve(&home, SMALL);
        for number in 0..5 {
            let answer = line.send(&format!("complete {number}")).await;
            task = answer["task"]["id"].as_str().unwrap().to_owned();
        }
        let (status, log) = server.terminate();
        assert!(status.success() && !log.contains("ERROR"), "{log}");
    }
    let (_server, _line) = serve(&home, SMALL);
    let (_, events, report) = exported(&home, &["--task", &task]);
    assert!(report.entries >= 3 && report.checkpoints >= 1, "{report:?}");
    assert!(events.iter().any(|event| event["type"] == "chancery.evidence.proof"));
    let trace = events[0]["data"]["trace"].as_str().unwrap();
    let (_, _, of_trace) = exported(&home, &["--trace", trace]);
    assert_eq!(of_trace.entries, report.entries);
    let stand = evidence(&home, &["status", "--json"]).json();
    assert!(stand["record"]["sealed_segments"].as_u64().unwrap() >= 2, "{stand}");
    assert_eq!(stand["record"]["end"], stand["record"]["signed"], "a stop and an export sign what there is");
    let nothing = evidence(&home, &["export", "--task", "no-such-task"]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("no entry that matches"), "{}", nothing.stderr);
    for wrong in [&["--trace", "xyz"], &["--since", "yesterday"]] {
        assert_eq!(evidence(&home, &[&["export"][..], wrong].concat()).code, Some(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_record_says_so_and_writes_none() {
    for (arguments, config) in [(&["--memory"][..], ""), (&[], "[evidence]\nrecord = false\n")] {
        let home = Home::new();
        let data = home.data();
        let data = ["--data".to_owned(), data.to_string_lossy().into_owned()];
        let setup = Setup::in_home(&home).args(["--agent", "echo"]).args(arguments).args(data).config(config);
        let server = setup.start();
        let line = Line::to(server.url(), &std::fs::read_to_string(home.data().join("admin.token")).unwrap());
        line.send("hello").await;
        let ran = evidence(&home, &["status"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("keeps no record"), "{}", ran.stderr);
        server.terminate();
        let (_server, _line) = serve(&home, "");
        let stand = evidence(&home, &["status", "--json"]).json();
        assert_eq!(stand["record"]["end"], 0, "{stand}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_is_signed_after_a_while_and_when_the_node_stops() {
    let home = Home::new();
    let stand = || evidence(&home, &["status", "--json"]).json()["record"].clone();
    let (server, line) = serve(&home, "");
    line.send("complete").await;
    assert_eq!(stand()["signed"], 0, "{}", stand());
    assert!(server.terminate().0.success());
    let (server, line) = serve(&home, "[evidence]\ncheckpoint_seconds = 1\n");
    let stopped = stand();
    assert!(stopped["end"].as_u64() > Some(0) && stopped["signed"] == stopped["end"], "{stopped}");
    line.send("complete").await;
    let end = stand()["end"].clone();
    soon("it is signed after a second", async || (stand()["signed"] == end).then_some(())).await;
    assert!(server.terminate().0.success());
}
