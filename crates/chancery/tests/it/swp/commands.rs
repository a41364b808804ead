//! `chancery swp decode`, `send` and `listen`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::node;
use crate::operating::cli::{Ran, run};
use crate::support::server::{Home, Setup};
use crate::support::wire_client::swp::address;

fn decoded(arguments: &[&str]) -> Vec<Value> {
    let ran = run(&Home::new(), ["--json", "swp", "decode"].iter().chain(arguments));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 1);
    let Value::Array(frames) = ran.json() else { panic!("{}", ran.stdout) };
    frames
}

fn verdicts(frames: &[Value]) -> Vec<(&str, &str)> {
    frames.iter().map(|frame| (frame["outcome"].as_str().expect("one"), frame["code"].as_str().expect("one"))).collect()
}

const HANDSHAKE: &str =
    "0000003501020100fc96b1b3c733107377706132612d6d73672d303030303100180a160a0a6167656e742e64656d6f120864656d6f2e72756e";
const TASK: &str = "0000003a01020200fc96b1b3c733107377706132612d6d73672d3030303032001d121b0a067461736b2d31120864656d6f2e72756e1a077b2278223a317d";
const RESULT: &str = "0000002f01020400fc96b1b3c733107377706132612d6d73672d3030303034001222100a067461736b2d3110011a04646f6e65";
const LATE_EVENT: &str = "0000002d01020300fc96b1b3c733107377706132612d6d73672d303030303300101a0e0a067461736b2d3112046c617465";

#[test]
fn frames_are_read_as_one_connection_and_each_is_told_with_its_codes() {
    let frames = decoded(&[HANDSHAKE, TASK, RESULT, LATE_EVENT]);
    let ok = ("accept", "OK");
    assert_eq!(verdicts(&frames), [ok, ok, ok, ("reject", "INVALID_PROFILE_PAYLOAD")]);
    assert_eq!(frames[3]["reason"], "event_after_result");
    assert_eq!(frames[0]["payload"], json!({ "handshake": { "agent_id": "agent.demo", "capabilities": ["demo.run"] } }));
    assert_eq!(frames[1]["payload"]["task"], json!({ "task_id": "7461736b2d31", "kind": "demo.run", "input": "7b2278223a317d" }));
    let envelope = &frames[1]["envelope"];
    assert_eq!(
        (&envelope["profile"], &envelope["msg_type"], &envelope["ts_unix_ms"]),
        (&json!("A2A"), &json!(2), &json!(1_771_513_334_652_u64))
    );
    assert_eq!(envelope["msg_id"], "7377706132612d6d73672d3030303032");
    assert_eq!(frames[3]["payload"]["event"]["message"], "late", "also what is refused is shown");
    // However the stream is cut, it is the same stream.
    assert_eq!(decoded(&[&TASK[..9], &TASK[9..40], &TASK[40..]]), decoded(&[TASK]));
}

#[test]
fn every_scenario_of_the_profile_is_decoded_as_its_vector_says() {
    let vectors: toml::Table = include_str!("../../../fixtures/swp/a2a.toml").parse().expect("TOML");
    let mut told = 0;
    for vector in vectors["vector"].as_array().expect("vectors") {
        let frames = vector["frames"].as_array().expect("frames");
        let plain = ["limits", "speakers", "now_ms"].iter().all(|key| vector.get(*key).is_none());
        if !plain || frames.iter().any(|frame| frame.get("from").is_some() || frame.get("at_ms").is_some()) {
            continue;
        }
        let hex: Vec<&str> = frames.iter().map(|frame| frame["hex"].as_str().expect("hex")).collect();
        let codes: Vec<&str> = frames.iter().map(|frame| frame["code"].as_str().expect("a code")).collect();
        let decoded = decoded(&hex);
        assert_eq!(decoded.iter().map(|frame| frame["code"].as_str().expect("one")).collect::<Vec<_>>(), codes, "{vector}");
        told += 1;
    }
    assert!(told >= 25, "only {told}");
}

#[test]
fn limits_and_the_time_are_what_they_are_said_to_be() {
    let code = |arguments: &[&str]| decoded(arguments)[0]["reason"].clone();
    assert_eq!(code(&["--max-frame-bytes", "53", HANDSHAKE]), Value::Null);
    assert_eq!(code(&["--max-frame-bytes", "52", HANDSHAKE]), "frame_too_large");
    assert_eq!(code(&["--max-payload-bytes", "23", HANDSHAKE]), "payload_too_large");
    assert_eq!(code(&["--min-msg-id-bytes", "17", HANDSHAKE]), "msg_id_too_short");
    assert_eq!(code(&["--max-msg-id-bytes", "15", HANDSHAKE]), "msg_id_too_long");
    assert_eq!(decoded(&["--max-frames-per-window", "1", HANDSHAKE, TASK])[1]["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(decoded(&[HANDSHAKE, HANDSHAKE])[1]["code"], "DUPLICATE_MSG_ID");
    assert_eq!(decoded(&["--duplicate-window-ms", "0", HANDSHAKE, HANDSHAKE])[1]["code"], "OK");
    let now = |now: &str| code(&["--timestamps", "required", "--now", now, HANDSHAKE]);
    assert_eq!(now("1771513634652"), Value::Null);
    assert_eq!(now("1771513634653"), "timestamp_stale");
    assert_eq!(now("1771513034651"), "timestamp_future");
    assert_eq!(code(&["--now", "1", HANDSHAKE]), Value::Null, "nobody asked for timestamps to be looked at");
    assert_eq!(verdicts(&decoded(&["00000000"])), [("reject", "INVALID_FRAME")]);
    assert_eq!(decoded(&["0000"])[0]["reason"], "truncated_prefix");
    assert_eq!(decoded(&[TASK, "0000000a0102"])[1]["reason"], "truncated_body");
    assert_eq!(run(&Home::new(), ["swp", "decode", "xyz"]).code, Some(2));
    assert_eq!(decoded(&["--other-party", TASK, RESULT])[1]["reason"], "wrong_party");
}

#[test]
fn the_same_array_is_laid_out_for_people_without_json() {
    let ran = run(&Home::new(), ["swp", "decode", HANDSHAKE]);
    assert!(ran.stdout.lines().count() > 5, "{}", ran.stdout);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&ran.stdout).expect("JSON"), decoded(&[HANDSHAKE]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_sent_to_a_node_and_its_result_is_printed() {
    let node = node("");
    let (authority, _) = address(node.url()).await;
    let url = format!("swp://{authority}");
    let home = Home::new();
    let ran = run(&home, ["swp", "send", &url, "conformance", "stream 2 1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "chunk-1 chunk-2 \n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("chunk-1"), "events are told as they come: {}", ran.stderr);
    let ran = run(&home, ["swp", "send", &url, "conformance", "fail no paper"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("TASK_STATE_FAILED: execution failed: no paper"), "{}", ran.stderr);
    let ran = run(&home, ["--json", "swp", "send", &url, "echo", "[1]", "--json-input"]);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["result"]["ok"], &last["result"]["output"]), (&json!(true), &json!("[data [1]]")), "{}", ran.stderr);
    for kind in ["conformance", "echo", "echo/echo"] {
        for how in [None, Some("--json-input"), Some("--opaque"), Some("--undeclared")] {
            let ran = run(&home, ["swp", "send", &url, kind].into_iter().chain(how));
            assert_eq!(ran.code, Some(0), "without input, {kind} {how:?}: {}", ran.stderr);
        }
    }
    assert_eq!(run(&home, ["swp", "send", "http://127.0.0.1:1", "k", "x"]).code, Some(2));
}

/// A listener that is ended with its test.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent that knows the profile and nothing else: no card, no A2A. A node stands in front of it all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_knows_only_the_profile_is_an_agent_behind_a_node() {
    let home = Home::new();
    let mut command = home.command();
    let mut child = command.args(["swp", "listen", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let _listening = Listening(child);
    let url = lines.next().expect("a line").expect("text");
    let ran = run(&home, ["swp", "send", &url, "repeat", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.trim_end()), (Some(0), "hello\n", "working"));
    let task: Value = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert_eq!((&task["task"]["kind"], &task["task"]["input"]), (&json!("repeat"), &json!("hello")));
    let refused: Ran = run(&home, ["swp", "send", &url, "unsupported.thing", "hello"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("unsupported capability"), "{}", refused.stderr);

    let node = Setup::in_home(&Home::new()).args(["--memory"]).config(&format!("[agents.slim]\nurl = '{url}'\n")).start();
    let answer = node.send("good morning").await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}\n{}", node.log());
    assert_eq!(answer["task"]["artifacts"][0]["parts"][0]["text"], "good morning", "{answer}");
    let named = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] }, "metadata": { "skill": "unsupported.skill" } });
    let refused = node.call("SendMessage", named).await;
    assert_eq!(refused["error"]["data"][0]["reason"], "UNSUPPORTED_OPERATION", "{refused}");
}
