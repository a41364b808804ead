//! `chancery agents doctor`: what it says of agents that work, deviate or are not there, and what it writes.

use serde_json::{Value, json};

use super::scripted::{Asked, Script, Scripted, card};
use crate::operating::cli::{Ran, run};
use crate::support::ports::lasting_address;
use crate::support::server::{Home, Setup};

fn doctor(home: &Home, arguments: &[&str]) -> Ran {
    run(home, ["agents", "doctor"].iter().chain(arguments))
}

fn step<'a>(trial: &'a Value, name: &str) -> &'a Value {
    trial["steps"].as_array().unwrap().iter().find(|step| step["step"] == name).unwrap_or(&Value::Null)
}

#[test]
fn without_call_only_the_card_is_fetched() {
    let home = Home::new();
    let agent = Setup::conformance().start();
    let ran = doctor(&home, &[agent.url()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["follows its version", "none were made; --call makes them", "[agents.conformance]", "url = "] {
        assert!(ran.stdout.contains(part), "{part} is not in: {}", ran.stdout);
    }
    let tasks = run(agent.home(), ["tasks", "list", "--json"]).json();
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(0), "{tasks}");
}

#[test]
fn every_version_and_binding_of_the_conformance_agent_works_and_needs_no_setting() {
    let home = Home::new();
    let agent = Setup::conformance().start();
    let ran = doctor(&home, &[agent.url(), "--call", "--json"]).json();
    let trials = ran["trials"].as_array().unwrap();
    assert!(trials.len() >= 4, "{ran}");
    for trial in trials {
        for name in ["unary", "stream", "get", "follow-up", "cancel"] {
            assert_eq!(step(trial, name)["works"], true, "{name} of {trial}");
        }
    }
    assert_eq!(ran["settings"], json!({}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_another_version_whose_stream_fails_gets_the_settings_it_needs() {
    let agent = Scripted::start(|own| {
        let mut shown = card(own, json!({ "streaming": true }));
        shown.as_object_mut().unwrap().remove("description");
        shown["description"] = json!("");
        let task = json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
            "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "alpha" }] }] });
        move |asked: &Asked| match asked.kind().as_str() {
            kind if kind.contains(".well-known") => Script::json(&shown),
            "message/send" | "tasks/get" | "tasks/cancel" => Script::result(asked, &task),
            _ => Script::error(asked, -32601, "Method not found"),
        }
    })
    .await;
    let home = Home::new();
    std::fs::write(home.path().join("chancery.toml"), "[agents.echo]\nrun = 'echo'\n").unwrap();
    let arguments = [&*agent.url(), "--call", "--write", "--name", "older", "--json"];
    let ran = doctor(&home, &arguments).json();
    assert_eq!(ran["settings"], json!({ "version": "0.3", "stream": "never" }), "{ran}");
    let trials = ran["trials"].as_array().unwrap();
    let answered = trials.iter().find(|trial| step(trial, "unary")["works"] == true).unwrap();
    assert!(answered["deviations"]["spelling-of-other-version"].as_u64().is_some_and(|times| times >= 2), "{answered}");
    let written = std::fs::read_to_string(home.path().join("chancery.toml")).unwrap();
    assert!(written.starts_with("[agents.echo]\nrun = 'echo'\n"), "{written}");
    assert!(written.contains("[agents.older]\n") && written.contains("stream = \"never\"\n"), "{written}");
    let twice = doctor(&home, &arguments);
    assert_eq!(twice.code, Some(1), "{}", twice.stderr);
    assert!(twice.stderr.contains("has [agents.older] already"), "{}", twice.stderr);
    let sound = run(&home, ["validate"]);
    assert_eq!(sound.code, Some(0), "{}{}", sound.stdout, sound.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_code_tells_a_rejected_card_from_silence() {
    let home = Home::new();
    let nobody = doctor(&home, &[&format!("http://{}", lasting_address())]);
    assert_eq!(nobody.code, Some(3), "{}", nobody.stderr);
    let agent = Scripted::start(|_| |_: &Asked| Script::json(&json!({ "name": "No address" }))).await;
    let rejected = doctor(&home, &[&agent.url()]);
    assert_eq!(rejected.code, Some(1), "{}", rejected.stderr);
    assert!(rejected.stderr.contains("card rejected: "), "{}", rejected.stderr);
    assert_eq!(doctor(&home, &["nonsense"]).code, Some(2));
    let unwritten = doctor(&home, &[&agent.url(), "--config", "none.toml", "--write"]);
    assert_eq!(unwritten.code, Some(1), "a card that is rejected is not written: {}", unwritten.stderr);
}
