//! F10: the disk under a running server takes nothing any more, and later does again. Whoever sends is told so; nothing is taken for
//! delivered that could not be kept as such, and afterwards nothing is missing.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::journal::{Journal, all_lanes, path};
use crate::push::LOCAL;
use crate::push::receiver::{Act, Got, Receiver};
use crate::support::counts::full_counts;
use crate::support::line::is_terminal;
use crate::support::patience::soon;
use crate::support::server::{Home, Server, Setup};

/// Short exchanges make short leases: what could not be kept is sent again soon.
pub(super) const LINES: &str = "barrier_ms = 0\nhost_requests_per_second = 0\nexchange_ms = 1000\nlease_ms = 3000\n[limits]\n\
                     calls_per_second_per_caller = 0\ncalls_per_second_per_address = 0\n";

/// No file of the server can be written to beyond so many bytes, its log among them.
fn let_files_have(server: &Server, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let set = Command::new("prlimit").args(["--pid", &server.pid().to_string(), &limit]).status().expect("prlimit can be run");
    assert!(set.success());
}

pub(super) async fn send(server: &Server, receiver: &Receiver, config: &str, text: &str) -> Value {
    let message = json!({ "messageId": config, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let webhook = json!({ "id": config, "url": receiver.url(&path(config)) });
    let configuration = json!({ "taskPushNotificationConfig": webhook, "returnImmediately": true });
    server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await
}

/// Tasks that are being told of when this comes back.
pub(super) async fn begin_ten(server: &Server, receiver: &Receiver, round: usize) -> Vec<Value> {
    let mut tasks = Vec::new();
    for number in 0..10 {
        let begun = send(server, receiver, &format!("{round}-{number}"), "stream 12 40").await;
        tasks.push(begun["result"]["task"]["id"].clone());
    }
    receiver.has_got(receiver.got().len() + 3).await;
    tasks
}

/// Answered, or so old that nobody waits for its answer any more.
fn is_over(got: &Got) -> bool {
    got.answered.is_some() || got.at.elapsed() > Duration::from_secs(5)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_to_callers_and_nothing_that_was_told_to_webhooks_is_missing_afterwards() {
    let receiver = Receiver::new(|_| Act::Slow(200, Duration::from_millis(50))).await;
    let home = Home::new();
    let setup = Setup::in_home(&home).args(["--agent", "conformance"]).config(&format!("{LOCAL}{LINES}"));
    // Without the signal, a write that goes too far is an error like any other.
    let server = setup.after("trap '' XFSZ").start();
    let mut tasks = Vec::new();
    for round in 0..full_counts(3, 30) {
        tasks.extend(begin_ten(&server, &receiver, round).await);
        let_files_have(&server, "0");
        for number in 0..5 {
            let refused = send(&server, &receiver, &format!("refused-{round}-{number}"), "complete").await;
            assert!(refused["error"].is_object(), "nothing can be kept, and yet: {refused}");
        }
        // What was under way meanwhile was answered, but that could not be kept.
        let quiet = async || {
            let before = receiver.got().len();
            tokio::time::sleep(Duration::from_millis(500)).await;
            (receiver.got().len() == before && receiver.got().iter().all(is_over)).then_some(())
        };
        soon("nothing more is sent while nothing can be claimed", quiet).await;
        let_files_have(&server, "unlimited");
        let well =
            async || send(&server, &receiver, &format!("after-{round}"), "complete").await["result"]["task"].as_object().cloned();
        soon("work goes on", well).await;
    }
    // Whose word could not be kept ends as failed, and its webhook is told that, too.
    let mut states = BTreeMap::<String, usize>::new();
    for id in &tasks {
        let ended = async || {
            let state = server.call("GetTask", json!({ "id": id })).await["result"]["status"]["state"].take();
            state.as_str().filter(|state| is_terminal(state)).map(str::to_owned)
        };
        *states.entry(soon("a task that nobody works on ends", ended).await).or_default() += 1;
    }
    let come_to_rest = async || {
        let lanes = all_lanes(&server).await;
        lanes.iter().all(|lane| lane["pending"] == 0).then_some(lanes.len())
    };
    soon("everything is delivered", come_to_rest).await;
    let got = receiver.got();
    let mut journal = Journal::read(&got, &[], |_| true);
    let lanes = journal.hold(&server).await;
    println!("{lanes} registrations, {} requests; tasks: {states:?}", got.len());
    assert!(journal.complaints.is_empty(), "{:#?}", journal.complaints);
    assert!(!got.iter().any(|got| got.path.contains("refused")), "what was refused never was");
    assert!(states.contains_key("TASK_STATE_FAILED"), "somebody was at work when the disk was full: {states:?}");
}
