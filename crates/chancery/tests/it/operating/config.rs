//! A config file as the built server takes it: what it changes, what outranks it, and how it is refused.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::server::{Home, Setup};

#[tokio::test]
async fn settings_of_the_file_reach_the_node_and_flags_outrank_them() {
    let toml = "listen = '127.0.0.1:1'\npublic_url = 'https://agents.example.org/x/'\n[limits]\nmessage_parts = 1\n\
                [card]\nheaderless = '1.0'\n[agents.second]\nrun = 'echo'\ntitle = 'Number Two'\n[agents.first]\nrun = 'echo'\n";
    let server = Setup::in_home(&Home::new()).args(["--memory"]).config(toml).start();

    let card = format!("{}/.well-known/agent-card.json", server.url());
    let card = reqwest::Client::new().get(card).header("Host", "agents.example.org").send().await;
    let card: Value = card.unwrap().json().await.unwrap();
    assert_eq!(card["name"], "Number Two", "the first of the file is at the root");
    assert_eq!(card["supportedInterfaces"][0]["url"], "https://agents.example.org/x");
    assert_eq!(card["supportedInterfaces"][2]["url"], "https://agents.example.org");
    assert_eq!(card.get("preferredTransport"), None, "exactly 1.0");

    let parts = json!([{ "text": "one" }, { "text": "too many" }]);
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": parts });
    let answer = server.call("SendMessage", json!({ "message": message })).await;
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("parts")), "{answer}");
}

#[tokio::test]
async fn a_data_folder_named_in_the_file_is_used() {
    let home = Home::new();
    let server = Setup::in_home(&home).config("data = 'kept/here'\n[store]\nsynchronous = 'normal'\n").start();
    server.send("hello").await;
    assert!(home.path().join("kept/here/chancery.db").exists());
    assert!(!home.data().exists());
    let (status, _) = server.terminate();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_faulty_file_stops_the_start_with_all_its_faults_and_their_places() {
    let home = Home::new();
    let file = home.path().join("bad.toml");
    std::fs::write(&file, "lissten = 1\n[limits]\nbody_bytes = 'big'\n[agents.a]\nuri = 'http://h'\n").unwrap();
    let refused = home.command().args([Path::new("serve"), Path::new("--config"), &file]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&refused.stdout), "");
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    for place in ["bad.toml:1:1: ", "bad.toml:3:14: ", "bad.toml:4:9: ", "bad.toml:5:1: "] {
        assert!(complaint.contains(place), "{place} is not in:\n{complaint}");
    }
    assert!(complaint.contains("did you mean `listen`?"), "{complaint}");
    assert!(!home.data().exists(), "nothing was made before the file was understood");
}

#[test]
fn every_config_among_the_examples_serves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut served = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let server = Setup::in_home(&Home::new()).args([Path::new("--config"), &file]).start();
        let answered = Command::new("sh").args(["-c", server.curl()]).output().unwrap();
        let answer: Value = serde_json::from_slice(&answered.stdout).expect("JSON");
        assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", file.display());
        served += 1;
    }
    assert!(served >= 2);
}
