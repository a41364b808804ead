//! Starting and stopping a node: no arguments, a folder of one's own, signals, and what a crash leaves behind.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::patience::eventually;
use crate::support::server::{Home, Setup};

/// Runs a printed line the way a reader would: in a shell.
fn in_a_shell(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).stdin(Stdio::null()).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn without_arguments_it_serves_on_the_loopback_and_prints_a_curl_line_that_works() {
    // The default port may be taken on this machine, so the port alone is chosen by the test.
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let answer: Value = serde_json::from_str(&in_a_shell(server.curl())).expect("JSON");
    let task = &answer["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": "hello" }]));
    assert_eq!(std::fs::metadata(home.data()).unwrap().permissions().mode() & 0o777, 0o700);
    for secret in ["admin.token", "seal.key", "chancery.db"] {
        let mode = std::fs::metadata(home.data().join(secret)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{secret}");
    }
    let (status, rest) = server.terminate();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "two lines on stdout and a clean end");
}

#[test]
fn the_default_address_is_the_documented_one() {
    let home = Home::new();
    let help = home.command().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains(&chancery::Config::default().node.listen.to_string()), "{help}");
}

#[test]
fn a_second_node_on_the_same_folder_is_refused_and_told_who_has_it() {
    let home = Home::new();
    let first = Setup::in_home(&home).start();
    let second = home.command().args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&second.stdout), "");
    let complaint = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(complaint.contains("in use") && complaint.contains(&first.pid().to_string()), "{complaint}");
    in_a_shell(first.curl());
}

#[test]
fn a_node_file_left_by_a_crash_never_blocks_a_start() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("node.json"), r#"{"url":"http://127.0.0.1:1","pid":1}"#).unwrap();
    let server = Setup::in_home(&home).start();
    let written: Value = serde_json::from_slice(&std::fs::read(home.data().join("node.json")).unwrap()).unwrap();
    assert_eq!((written["url"].as_str(), written["pid"].as_u64()), (Some(server.url()), Some(u64::from(server.pid()))));
    server.terminate();
    assert!(!home.data().join("node.json").exists(), "a clean end clears up");
}

#[tokio::test]
async fn after_a_kill_the_next_start_has_every_task_that_was_acknowledged() {
    let home = Home::new();
    let server = Setup::in_home(&home).start();
    let sent = server.send("keep me").await;
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    server.kill();
    assert!(home.data().join("node.json").exists(), "a killed node clears nothing up");

    let again = Setup::in_home(&home).start();
    let found = again.call("GetTask", json!({ "id": sent["task"]["id"] })).await;
    assert_eq!(found["result"]["artifacts"], sent["task"]["artifacts"]);
    assert_eq!(std::fs::read_to_string(home.data().join("admin.token")).unwrap(), token, "the token stays");
}

#[tokio::test]
async fn a_stop_closes_streams_fails_nothing_and_ends_with_zero() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "sleep 600000" }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": { "message": message } });
    let request = reqwest::Client::new().post(server.url()).header("A2A-Version", "1.0").json(&body);
    let mut stream = request.send().await.unwrap();
    let mut seen = String::new();
    while !seen.contains("TASK_STATE_WORKING") {
        seen.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().expect("the stream is open")).unwrap());
    }
    server.signal("TERM");
    while let Some(chunk) = stream.chunk().await.expect("the stream ends in order") {
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(!seen.contains("TASK_STATE_FAILED"), "{seen}");
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));

    // The turn was cut short; the next start says so.
    let again = Setup::in_home(&home).args(["--agent", "conformance"]).start();
    let listed = again.call("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["status"]["state"], "TASK_STATE_FAILED", "{listed}");
}

#[test]
fn an_interrupt_is_a_stop_too() {
    let server = Setup::conformance().start();
    server.signal("INT");
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn beyond_the_loopback_it_must_be_told_that_this_is_insecure() {
    let home = Home::new();
    let refused = home.command().args(["serve", "--listen", "0.0.0.0:0", "--memory"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(complaint.contains("--insecure") && complaint.contains("no callers"), "{complaint}");

    let server = Setup::at(&home, "0.0.0.0:0").args(["--memory", "--insecure"]).start();
    in_a_shell(server.curl());
}

#[test]
fn in_memory_nothing_is_written() {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--memory"]).start();
    in_a_shell(server.curl());
    assert!(!home.data().exists());
}

#[test]
fn logs_are_json_when_nobody_watches() {
    let server = Setup::conformance().env("RUST_LOG", "debug").start();
    let line =
        eventually("it logs that it serves", || server.log().lines().find(|line| line.contains("serving")).map(str::to_owned));
    let entry: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(entry["level"], "INFO");
    assert_eq!(entry["public_url"], server.url());
}

#[test]
fn an_agent_that_cannot_be_reached_is_a_warning_with_its_name_its_url_and_the_reason() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (home, url) = (Home::new(), format!("http://{closed}/"));
    let server = Setup::in_home(&home).args(["--memory"]).config(&format!("[agents.research]\nurl = '{url}'\n")).start();
    let line = eventually("it is logged", || {
        server.log().lines().find(|line| line.contains("cannot read the agent's card")).map(str::to_owned)
    });
    let entry: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!((&entry["level"], &entry["agent"], &entry["url"]), (&"WARN".into(), &"research".into(), &url.as_str().into()));
    assert!(entry["error"].as_str().is_some_and(|error| !error.is_empty()), "{entry}");
}

#[tokio::test]
async fn agents_are_served_under_the_names_they_are_given() {
    let server = Setup::conformance().args(["--agent", "echo", "--agent-name", "tester"]).start();
    for (path, name) in [("", "tester"), ("/agents/tester", "tester"), ("/agents/echo", "Echo")] {
        let url = format!("{}{path}/.well-known/agent-card.json", server.url());
        let card: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        assert_eq!(card["name"], name, "{path}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let first = Setup::conformance().start();
    let address = first.url().trim_start_matches("http://");
    let second = Home::new().command().args(["serve", "--memory", "--listen", address]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&second.stderr);
    assert!(complaint.contains(&format!("cannot listen at {address}")), "{complaint}");
}
