//! The example that mounts an agent in an app of its own, built and run as a reader would.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../examples/mount.rs");

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where cargo put the example. `cargo test --test it` alone does not build it.
pub(crate) fn build(example: &str) -> std::path::PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--package", "chancery", "--example", example, "--message-format", "json"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let built = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).expect("text");
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(Into::into)).next_back().expect("an executable")
}

#[tokio::test]
async fn an_agent_is_mounted_in_at_most_25_lines_beside_the_apps_own_pages() {
    assert!(EXAMPLE.lines().count() <= 25);
    let mut running = Running(Command::new(build("mount")).stdout(Stdio::piped()).spawn().expect("the example starts"));
    let mut url = String::new();
    BufReader::new(running.0.stdout.take().expect("piped")).read_line(&mut url).expect("a line");
    let url = url.trim_end();

    let own = reqwest::get(format!("{url}/mine")).await.unwrap().text().await.unwrap();
    assert_eq!(own, "my page");
    let card: Value = reqwest::get(format!("{url}/.well-known/agent-card.json")).await.unwrap().json().await.unwrap();
    assert_eq!((card["name"].as_str(), card["supportedInterfaces"][0]["url"].as_str()), (Some("Greeter"), Some(url)));

    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Ada" }] });
    for (method, word) in [("SendMessage", "TASK_STATE_COMPLETED"), ("SendStreamingMessage", "data: ")] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
        let request = reqwest::Client::new().post(url).header("A2A-Version", "1.0").json(&body);
        let answer = request.send().await.unwrap().text().await.unwrap();
        assert!(answer.contains("Hello, Ada!") && answer.contains(word), "{answer}");
    }
}
