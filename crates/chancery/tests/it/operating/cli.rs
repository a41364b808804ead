//! The client commands against a running node: what goes to stdout, what to stderr, and what the exit codes say.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::patience::{eventually, exit_of};
use crate::support::server::{Home, Server, Setup};

/// What a command printed and how it ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.output().expect("the command runs");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The JSON it printed, if it ended well.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        json(&self.stdout)
    }
}

pub(crate) fn run<A: AsRef<OsStr>>(home: &Home, arguments: impl IntoIterator<Item = A>) -> Ran {
    Ran::of(home.command().env_remove("CHANCERY_KEY").args(arguments))
}

fn with_server() -> (Home, Server) {
    let home = Home::new();
    let server = Setup::in_home(&home).args(["--agent", "conformance", "--agent", "echo"]).start();
    (home, server)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The id in `task ID completed`.
fn task_id(remark: &str) -> String {
    remark.split_whitespace().nth(1).expect("an id").to_owned()
}

#[test]
fn send_prints_the_answer_alone_and_finds_the_node_by_itself() {
    let (home, server) = with_server();
    let ran = run(&home, ["send", "complete good morning"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "good morning\n"), "{}", ran.stderr);
    let remarks: Vec<&str> = ran.stderr.lines().collect();
    assert!(remarks[0].starts_with("task ") && remarks[0].ends_with(" completed"), "{}", ran.stderr);
    assert!(remarks.len() == 2 && remarks[1].starts_with("cost 0.00 USD"), "{}", ran.stderr);

    let elsewhere = Home::new();
    let ran = run(&elsewhere, ["send", "--url", server.url(), "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    let ran = run(&home, ["send", "--agent", "echo", "complete me"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "complete me\n"), "{}", ran.stderr);
    let ran = run(&home, ["send", "message hello there"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello there\n"));
    assert!(ran.stderr.lines().count() == 1 && ran.stderr.starts_with("cost "), "{}", ran.stderr);
}

#[test]
fn a_task_that_does_not_succeed_is_exit_code_1_with_its_reason() {
    let (home, _server) = with_server();
    for (text, words) in [
        ("fail no luck", ["failed", "no luck"]),
        ("reject not today", ["rejected", "not today"]),
        ("panic ouch", ["failed", "ouch"]),
        ("error gave up", ["failed", "gave up"]),
    ] {
        for extra in [&["send"][..], &["send", "--stream"]] {
            let ran = run(&home, extra.iter().chain([&text]));
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{text}");
            assert!(words.iter().all(|word| ran.stderr.contains(word)), "{text}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_question_is_answered_on_the_same_task() {
    let (home, _server) = with_server();
    let asked = run(&home, ["send", "ask which colour?"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "which colour?\n"), "{}", asked.stderr);
    let id = task_id(&asked.stderr);
    assert!(asked.stderr.contains(&format!("chancery send --task {id} ")), "{}", asked.stderr);
    let done = run(&home, ["send", "--task", &id, "complete blue"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "blue\n"), "{}", done.stderr);
    let refused = run(&home, ["send", "--task", &id, "once more"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
}

#[test]
fn a_stream_is_printed_piece_by_piece() {
    let (home, _server) = with_server();
    let ran = run(&home, ["send", "--stream", "stream 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "chunk-1 chunk-2 chunk-3 \n"), "{}", ran.stderr);
    let ran = run(&home, ["send", "--stream", "steps 2"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("step 2 of 2"), "{}", ran.stderr);

    let ran = run(&home, ["send", "--stream", "--json", "stream 2"]);
    let events: Vec<Value> = ran.stdout.lines().map(json).collect();
    let kinds: Vec<_> = events.iter().flat_map(|event| event.as_object().unwrap().keys()).collect();
    assert_eq!(kinds, ["task", "artifactUpdate", "artifactUpdate", "statusUpdate"]);
}

#[test]
fn json_is_what_the_server_sent() {
    let (home, _server) = with_server();
    let ran = run(&home, ["--json", "send", "artifact many"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let task = json(&ran.stdout)["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"].as_array().unwrap().len(), 5);
}

#[test]
fn what_an_agent_says_cannot_steer_the_terminal() {
    let (home, _server) = with_server();
    for arguments in [&["send"][..], &["send", "--stream"], &["send", "--json"]] {
        let ran = run(&home, arguments.iter().chain([&"complete a\u{1b}[31mb\u{9b}2J\u{202e}c"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let steering = |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
        assert!(!ran.stdout.contains(steering) && !ran.stderr.contains(steering), "{:?}", ran.stdout);
        assert!(ran.stdout.contains("[31mb"), "{}", ran.stdout);
    }
    let ran = run(&home, ["send", "fail \u{1b}]0;title\u{7}"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

#[test]
fn the_same_idempotency_key_attaches_to_the_same_task() {
    let (home, _server) = with_server();
    let send =
        |key: &str| json(&run(&home, ["send", "--json", "--idempotency-key", key, "complete once"]).stdout)["task"]["id"].take();
    let first = send("k1");
    assert_eq!(first, send("k1"));
    assert_ne!(first, send("k2"));
    let other = run(&home, ["send", "--idempotency-key", "k1", "complete something else"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(1), ""), "{}", other.stderr);
}

#[test]
fn text_can_come_from_stdin() {
    let (home, _server) = with_server();
    let mut child =
        home.command().args(["send", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"complete from a pipe").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "from a pipe\n");
}

#[test]
fn tasks_are_listed_shown_and_cancelled() {
    let (home, _server) = with_server();
    let done = task_id(&run(&home, ["send", "complete first"]).stderr);
    let started = run(&home, ["send", "--no-wait", "sleep 600000"]);
    let id = started.stdout.trim_end().to_owned();
    assert_eq!(started.code, Some(0), "{}", started.stderr);

    let all = run(&home, ["tasks", "list"]);
    let lines: Vec<_> = all.stdout.lines().collect();
    assert_eq!((all.code, lines.len()), (Some(0), 3), "a head and two tasks:\n{}{}", all.stdout, all.stderr);
    let working = eventually("one task is being worked on", || {
        let listed = json(&run(&home, ["--json", "tasks", "list", "--state", "working", "--limit", "1"]).stdout);
        (listed["total"] == 1).then_some(listed)
    });
    assert_eq!(working["tasks"][0]["id"], id.as_str(), "{working}");
    let first_page = run(&home, ["tasks", "list", "--limit", "1"]);
    let place = first_page.stderr.split("--after ").nth(1).expect("a place to go on from").trim();
    let second_page = json(&run(&home, ["tasks", "list", "--json", "--after", place]).stdout);
    assert_eq!(second_page["tasks"].as_array().unwrap().len(), 1);

    let shown = run(&home, ["tasks", "get", &id]);
    assert!(
        shown.stdout.contains(&id) && shown.stdout.contains("working") && shown.stdout.contains("sleep 600000"),
        "{}",
        shown.stdout
    );
    let cancelled = run(&home, ["tasks", "cancel", &id]);
    assert_eq!((cancelled.code, cancelled.stdout), (Some(0), format!("{id} canceled\n")), "{}", cancelled.stderr);
    let too_late = run(&home, ["tasks", "cancel", &done]);
    assert_eq!((too_late.code, too_late.stdout.as_str()), (Some(1), ""), "{}", too_late.stderr);
    let unknown = run(&home, ["tasks", "get", "no-such-task"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""), "{}", unknown.stderr);
}

#[test]
fn a_watched_task_is_followed_to_its_end() {
    let (home, _server) = with_server();
    let id = run(&home, ["send", "--no-wait", "sleep 600000"]).stdout.trim_end().to_owned();
    let mut watch = home.command().args(["tasks", "watch", &id]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.ends_with("working")) {
        seen.push(lines.next().expect("the log so far"));
    }
    run(&home, ["tasks", "cancel", &id]);
    seen.extend(lines);
    assert_eq!(exit_of(&mut watch).code(), Some(1), "a task that was cancelled did not succeed");
    assert!(seen.first().is_some_and(|line| line.contains("submitted: sleep 600000")), "{seen:#?}");
    assert!(seen.last().is_some_and(|line| line.ends_with("canceled")), "{seen:#?}");

    let done = run(&home, ["send", "stream 2"]);
    let watched = run(&home, ["tasks", "watch", "--json", "--after", "1", &task_id(&done.stderr)]);
    let numbers: Vec<_> = watched.stdout.lines().map(|line| json(line)["seq"].as_u64().unwrap()).collect();
    assert_eq!((watched.code, numbers), (Some(0), vec![2, 3, 4]), "{}", watched.stderr);
}

#[test]
fn a_card_is_shown_and_linted() {
    let (home, server) = with_server();
    let ran = run(&home, ["card"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for word in ["Conformance", "JSONRPC", "GRPC", "nothing to complain about"] {
        assert!(ran.stdout.contains(word), "{word} is not in:\n{}", ran.stdout);
    }
    let parrot = format!("{}/agents/echo", server.url());
    let ran = run(&home, ["card", "--json", &parrot]);
    let card = json(&ran.stdout);
    assert_eq!((card["card"]["name"].as_str(), card["findings"].as_array().map(Vec::len)), (Some("Echo"), Some(0)), "{card}");
    let older = run(&home, ["discover", "--a2a-version", "0.3"]);
    assert!(older.stdout.contains("0.3.0") && older.stdout.contains("advice"), "{}", older.stdout);
    let nothing = run(&home, ["card", &format!("{}/nowhere", server.url())]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(1), ""), "{}", nothing.stderr);
}

#[test]
fn a_server_that_cannot_be_reached_is_exit_code_3() {
    let home = Home::new();
    for arguments in [&["send", "hello"][..], &["tasks", "list"], &["card"], &["send", "--url", "http://127.0.0.1:1", "hello"]] {
        let ran = run(&home, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{arguments:?}: {}", ran.stderr);
    }
    // A node that was killed left its address behind.
    Setup::in_home(&home).start().kill();
    let ran = run(&home, ["send", "hello"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let home = Home::new();
    for arguments in [
        &["send"][..],
        &["send", "--url", "nonsense", "hello"],
        &["tasks", "list", "--state", "happy"],
        &["serve", "--agent", "nobody"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--config", "missing.toml"],
        &["card", "missing.json"],
        &["card", "--verify-key", "missing.pem", "http://127.0.0.1:1"],
        &["card", "--agent-id", "somebody", "http://127.0.0.1:1"],
        &["send", "--url", "http://127.0.0.1:1", "--key-env", "NO_SUCH_VARIABLE", "hello"],
        &["send", "--url", "http://127.0.0.1:1", "--sign-with", "missing.pem", "hello"],
        &["send", "--url", "https://127.0.0.1:1", "--client-cert", "missing.pem", "hello"],
        &["frobnicate"],
    ] {
        let ran = run(&home, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn help_teaches_with_examples_that_parse_and_says_what_exit_codes_mean() {
    let home = Home::new();
    let help = run(&home, ["--help"]).stdout;
    for code in ["0  done", "1  the task failed", "2  wrong arguments", "3  the server cannot be reached"] {
        assert!(help.contains(code), "{code} is not in:\n{help}");
    }
    for command in ["serve", "send", "discover", "tasks", "tree", "explain", "freeze", "budgets", "callers", "keys", "swp"] {
        assert!(help.contains(&format!("\n  chancery {command}")), "no example of {command}");
        assert!(run(&home, [command, "--help"]).stdout.contains("Examples:"), "{command}");
    }
}

#[test]
fn the_version_names_the_protocol_versions_too() {
    let printed = run(&Home::new(), ["--version"]).stdout;
    assert_eq!(printed, format!("chancery {} (A2A {})\n", env!("CARGO_PKG_VERSION"), chancery::A2A_VERSIONS.join(", ")));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&Home::new(), ["completions", shell]).stdout;
        assert!(script.contains("chancery") && script.contains("tasks"), "{shell}");
    }
}
