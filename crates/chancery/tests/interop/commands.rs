//! `chancery send` and `chancery card` against agents built with others' servers: chosen by the card, and by flags.

use std::process::Command;

use crate::backs::{BACKS, Back};
use crate::fronts::ready;
use crate::machine::MACHINE;
use crate::say;
use crate::server::Server;
use crate::toolbox::Toolbox;

/// What one run of the binary printed, and how it ended.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn chancery(arguments: &[&str]) -> Ran {
    let binary = std::env::var_os("CHANCERY_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_chancery").into());
    let output = Command::new(binary).env_remove("CHANCERY_KEY").args(arguments).output().expect("the binary runs");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn the_commands_speak_with_agents_of_every_sdk_in_both_versions_and_the_original() {
    let _alone = MACHINE.blocking_write();
    let tools = Toolbox::new();
    let mut faults = Vec::new();
    for (which, back) in BACKS.iter().enumerate().filter(|(_, back)| back.sdk != "rust") {
        let mut agent = ready(&tools, back.agent);
        let agent = Server::start(agent.args(back.arguments()), &tools.log(&format!("called-{which}")));
        let before = faults.len();
        faults.extend(call(back, &agent.base));
        say(&format!("{:<50} {}\n", back.name(), if faults.len() == before { "ok" } else { "FAILED" }));
    }
    assert!(faults.is_empty(), "{} calls went wrong:\n{}", faults.len(), faults.join("\n"));
}

/// Every call of one agent, and what is wrong with those that are not as they should be.
fn call(back: &Back, url: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expect = |arguments: &[&str], code: i32, stdout: Option<&str>, stderr: &str| {
        let ran = chancery(arguments);
        let is_right =
            ran.code == Some(code) && stdout.is_none_or(|text| ran.stdout.trim_end() == text) && ran.stderr.contains(stderr);
        if !is_right {
            faults.push(format!("{} {arguments:?}: {:?} {:?} {:?}", back.name(), ran.code, ran.stdout, ran.stderr));
        }
    };
    expect(&["send", url, "complete good morning"], 0, Some("good morning"), "completed");
    expect(&["send", "--stream", url, "complete streamed"], 0, Some("streamed"), "completed");
    expect(&["send", url, "fail no luck"], 1, Some(""), "no luck");
    let found = chancery(&["discover", "--json", url]);
    let shown: serde_json::Value = serde_json::from_str(&found.stdout).unwrap_or_default();
    if !shown["card"]["name"].is_string() {
        faults.push(format!("{} discover: {:?} {:?}", back.name(), found.code, found.stderr));
    }
    faults.extend(forced(back, url));
    faults
}

/// The same agent in the version and over the binding that the flags name, whichever its card prefers.
fn forced(back: &Back, url: &str) -> Vec<String> {
    let listed: &[&str] = match (back.sdk, back.protocol) {
        ("rvagent", _) => &["JSONRPC"],
        // Its compatibility layer has no gRPC here.
        ("python", "0.3") if back.sdk_version.starts_with('1') => &["JSONRPC", "HTTP+JSON"],
        ("js", "0.3") if back.sdk_version.starts_with('1') => &["HTTP+JSON"],
        _ => &["JSONRPC", "HTTP+JSON", "GRPC"],
    };
    let mut faults = Vec::new();
    for binding in listed {
        let flags = ["send", "--binding", binding, "--a2a-version", back.protocol, url, "complete forced"];
        let ran = chancery(&flags);
        if (ran.code, ran.stdout.trim_end()) != (Some(0), "forced") {
            faults.push(format!("{} over {binding}: {:?} {:?} {:?}", back.name(), ran.code, ran.stdout, ran.stderr));
        }
    }
    faults
}
