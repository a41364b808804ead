//! A node with three agents whose callers are those agents, so that calls make trees that nobody has to script.

use serde_json::Value;

use crate::operating::cli::{Ran, run};
use crate::support::patience::eventually;
use crate::support::server::{Home, Server, Setup};

/// Three agents at a price, and a budget of each kind that the tests look at.
pub(crate) const AGENTS: &str = r#"
[agents.planner]
run = "conformance"
price = { per_call_usd = "0.01" }

[agents.research]
run = "conformance"
price = { per_call_usd = "0.02" }

[agents.writer]
run = "conformance"
price = { per_call_usd = "0.03" }

[budget.tree]
max_usd = "0.5"

[budget.caller.user]
max_usd = "1"
window = "1h"
"#;

pub(crate) struct DelegatingNode {
    pub(crate) home: Home,
    pub(crate) node: Server,
    keys: Vec<(&'static str, String)>,
}

impl DelegatingNode {
    /// Callers: `user`, who is nobody's agent, and the agents `planner` and `research`.
    pub(crate) fn new(config: &str) -> Self {
        let home = Home::new();
        let callers = [("user", None), ("planner-bot", Some("planner")), ("research-bot", Some("research"))];
        let keys = callers.map(|(name, agent)| {
            let agent = agent.map(|agent| ["--agent", agent]);
            let ran = run(&home, ["callers", "add", name].iter().chain(agent.iter().flatten()));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            (name, ran.stdout.trim_end().to_owned())
        });
        let node = Setup::in_home(&home).config(config).start();
        Self { home, node, keys: keys.to_vec() }
    }

    /// The same node once more.
    pub(crate) fn restarted(self, config: &str) -> Self {
        let Self { home, node, keys } = self;
        node.terminate();
        let node = Setup::in_home(&home).config(config).start();
        Self { home, node, keys }
    }

    pub(crate) fn send_as(&self, caller: &str, arguments: &[&str]) -> Ran {
        let key = &self.keys.iter().find(|(name, _)| *name == caller).expect("a caller of the house").1;
        Ran::of(self.home.command().env("CHANCERY_KEY", key).arg("send").args(arguments))
    }

    /// A task that goes on until somebody stops it, by its id. Its agent is at work on it when this comes back.
    pub(crate) fn begin(&self, caller: &str, agent: &str) -> String {
        let ran = self.send_as(caller, &["--agent", agent, "--no-wait", "sleep 600000"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let id = ran.stdout.trim_end().to_owned();
        eventually("the agent is at work", || (self.state(&id) == "TASK_STATE_WORKING").then_some(()));
        id
    }

    /// planner ← user, research ← planner, writer ← research; the root first.
    pub(crate) fn three_levels(&self) -> [String; 3] {
        [("user", "planner"), ("planner-bot", "research"), ("research-bot", "writer")]
            .map(|(caller, agent)| self.begin(caller, agent))
    }

    pub(crate) fn state(&self, id: &str) -> String {
        let task = self.json(&["tasks", "get", id]);
        task["record"]["state"].as_str().expect("a state").to_owned()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        run(&self.home, arguments)
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[&["--json"], arguments].concat()).json()
    }

    /// What it printed, if it ended well.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }
}

/// The id in `… decision=ID …`.
pub(crate) fn decision_in(text: &str) -> String {
    let id = text.split("decision=").nth(1).unwrap_or_else(|| panic!("no decision is named: {text}"));
    id.chars().take_while(|character| character.is_ascii_alphanumeric() || *character == '-').collect()
}
