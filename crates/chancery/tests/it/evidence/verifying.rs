//! What `chancery evidence verify` says of a bundle, and what it does not take for signed.

use chancery_evidence::bundle::{BundleEvent, Stamp, seal};
use serde_json::json;

use super::record::{evidence, exported, serve};
use crate::support::server::Home;

/// A bundle in which there is no record.
fn theirs() -> Vec<u8> {
    let text = |text: &str| text.to_owned();
    let (kind, time) = (text("assay.adapter.a2a.task.requested"), text("2026-11-01T00:00:00Z"));
    let event = BundleEvent { kind, time, subject: Some(text("t")), data: json!({ "task": "t" }) };
    let (producer, producer_version, git) = (text("theirs"), text("1"), text("unknown"));
    seal(&Stamp { source: text("urn:theirs"), run: text("run"), producer, producer_version, git }, &[event]).unwrap()
}

#[test]
fn a_bundle_in_which_nothing_is_signed_is_refused_to_whoever_names_a_key() {
    let home = Home::new();
    let file = home.path().join("theirs.tar.gz");
    std::fs::write(&file, theirs()).unwrap();
    let file = file.to_string_lossy().into_owned();
    let ran = evidence(&home, &["verify", &file]);
    assert!(ran.code == Some(0) && ran.stdout.contains("only its format was checked"), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(evidence(&home, &["verify", &file, "--json"]).json()["format_only"], json!(true));
    for more in [&["--key", "some"][..], &["--key", "some", "--json"]] {
        let ran = evidence(&home, &[&["verify", &file], more].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains("ChainUnsigned") && ran.stderr.contains("some"), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_and_which_tasks_have_no_end_is_said() {
    let home = Home::new();
    let (_server, line) = serve(&home, "");
    let waiting = line.send("ask what now?").await["task"]["id"].as_str().unwrap().to_owned();
    let says = |arguments: &[&str]| {
        let (file, ..) = exported(&home, arguments);
        let file = file.to_string_lossy().into_owned();
        (evidence(&Home::new(), &["verify", &file]).stdout, evidence(&Home::new(), &["verify", &file, "--json"]).json())
    };
    let no_end = format!("The end of task {waiting} is not there");
    let (said, json) = says(&["--task", &waiting]);
    assert!(said.contains(&format!("task {waiting}")) && said.contains(&no_end), "{said}");
    assert_eq!((&json["record"]["task"], &json["record"]["open"]), (&json!(waiting), &json!([waiting])), "{json}");
    assert_eq!((&json["format_only"], &json["record"]["kept_from"]), (&json!(false), &json!(0)));
    let (said, json) = says(&["--since", "2026-01-01T00:00:00Z", "--until", "2126-01-01T00:00:00Z"]);
    let times = "since 2026-01-01T00:00:00.000000Z until 2126-01-01T00:00:00.000000Z";
    assert!(said.contains(times) && !said.contains(&no_end), "{said}");
    assert!(json["record"]["since"].is_i64() && json["record"]["open"] == json!([]), "{json}");
    assert!(says(&[]).0.contains("everything"));

    line.follow_up(&json!(waiting), "complete that").await;
    let (said, _) = says(&["--task", &waiting]);
    assert!(!said.contains(&no_end), "{said}");
}
