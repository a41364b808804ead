//! Agents of the official SDKs with OpenTelemetry, and no line of code for this node: the node stops their loop by its own marks.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::fronts::ready;
use crate::machine::MACHINE;
use crate::server::Server;
use crate::toolbox::Toolbox;

/// The agent `a` calls `b`, and `b` calls `a`. The one is Python, the other JS, so that each passes on what it got from the other.
struct Pair {
    tools: Toolbox,
    python: Server,
    js: Server,
}

impl Pair {
    /// `name` tells the logs apart of tests that run at once.
    fn start(name: &str) -> Self {
        let tools = Toolbox::new();
        let mut python = ready(&tools, |tools| tools.python("otel_python", "agent.py"));
        let mut js = ready(&tools, |tools| tools.node("otel_js", "agent.mjs"));
        let python = Server::start(python.arg("b"), &tools.log(&format!("otel-python-{name}")));
        let js = Server::start(js.arg("a"), &tools.log(&format!("otel-js-{name}")));
        Self { tools, python, js }
    }

    /// An open node in front of both, where each call costs 0.02.
    fn node(&self, name: &str, rules: &str) -> Server {
        let mut config = rules.to_owned();
        for (agent, server) in [("a", &self.python), ("b", &self.js)] {
            config += &format!("[agents.{agent}]\nurl = '{}'\nprice = {{ per_call_usd = '0.02' }}\n", server.base);
        }
        let log = self.tools.log(&format!("otel-node-{name}"));
        let settings = log.with_extension("toml");
        std::fs::write(&settings, config).expect("the settings can be written");
        let data = log.with_extension("data");
        Server::serving(&["--config", text(&settings), "--data", text(&data)], &log)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path of the target folder is text")
}

/// What the agent answers that is asked first: `python(js(…))`, around what the last call was answered.
fn begin(node: &Server, agent: &str) -> String {
    let message = json!({ "messageId": format!("to-{agent}"), "role": "ROLE_USER", "parts": [{ "text": node.base }] });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let answer: Value = runtime.block_on(async {
        let request = reqwest::Client::new().post(format!("{}/agents/{agent}", node.base)).header("A2A-Version", "1.0");
        request.json(&body).send().await.expect("the node answers").json().await.expect("with JSON")
    });
    let said = answer["result"]["task"]["artifacts"][0]["parts"][0]["text"].as_str();
    said.unwrap_or_else(|| panic!("no artifact with text: {answer}")).to_owned()
}

/// How often each was run, by what they answered.
fn runs(said: &str) -> (usize, usize) {
    (said.matches("python(").count(), said.matches("js(").count())
}

#[test]
fn instrumented_agents_in_a_loop_are_refused_at_the_second_visit() {
    let _shared = MACHINE.blocking_read();
    let pair = Pair::start("visit");
    let node = pair.node("visit", "");
    for (first, path) in [("a", "a → b → a"), ("b", "b → a → b")] {
        let said = begin(&node, first);
        assert_eq!(runs(&said), (1, 1), "{said}");
        assert!(said.contains("RECURSION_REVISIT") && said.contains(path), "{said}");
        assert!(said.contains("attribution=traced"), "{said}");
    }
}

#[test]
fn instrumented_agents_in_a_loop_spend_no_more_than_their_tree_may() {
    let _shared = MACHINE.blocking_read();
    let pair = Pair::start("cap");
    let rules = "[recursion]\ndeny_revisit = false\nmax_call_depth = 64\n[budget.tree]\nmax_usd = '0.10'\n";
    let node = pair.node("cap", rules);
    for (first, paid) in [("a", (3, 2)), ("b", (2, 3))] {
        let said = begin(&node, first);
        assert_eq!(runs(&said), paid, "five calls of 0.02 are paid, and no sixth: {said}");
        assert!(said.contains("BUDGET_EXHAUSTED"), "{said}");
    }
}

/// The address of an agent at a node with this data folder, as `chancery agents url` prints it.
pub(crate) fn address(data: &Path, agent: &str) -> String {
    let binary = std::env::var_os("CHANCERY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_chancery").into());
    let output = Command::new(binary).args(["agents", "url", agent, "--data", text(data)]).output().expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text").trim().to_owned()
}
