//! What the next start finds in the database is what callers were told, after a stop and after a kill.

use std::path::Path;

use serde_json::json;

use super::{line_to, state};
use crate::operating::cli::run;
use crate::push::LOCAL;
use crate::push::receiver::Receiver;
use crate::support::delegating_node::{AGENTS, DelegatingNode};
use crate::support::line::Event;
use crate::support::patience::soon;
use crate::support::postgres::{database, on_database};
use crate::support::server::Home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_tasks_webhooks_and_the_record() {
    let (home, url) = (Home::new(), database());
    let receiver = Receiver::kind().await;
    let server = on_database(&home, &url, LOCAL);
    let line = line_to(&home, &server);
    let done = line.send("complete good morning").await["task"].take();
    let parked = line.send("ask what now?").await["task"].take();
    let config = json!({ "taskId": parked["id"], "url": receiver.url("/") });
    let made = server.call("CreateTaskPushNotificationConfig", config).await;
    assert!(made["result"].is_object(), "{made}");
    let (status, _) = server.terminate();
    assert_eq!(status.code(), Some(0));

    let server = on_database(&home, &url, LOCAL);
    let line = line_to(&home, &server);
    let again = server.call("GetTask", json!({ "id": done["id"] })).await;
    assert_eq!(again["result"], done);
    let answered = line.follow_up(&parked["id"], "complete that").await;
    assert_eq!(state(&answered["result"]["task"]), "TASK_STATE_COMPLETED", "{answered}");
    receiver.has_got(1).await;
    let listed = server.call("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 2, "{listed}");

    let bundle = home.path().join("bundle.tar.gz");
    let exported = run(&home, [Path::new("evidence"), Path::new("export"), Path::new("--output"), &bundle]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let verified = run(&home, [Path::new("evidence"), Path::new("verify"), &bundle]);
    assert_eq!(verified.code, Some(0), "{}{}", verified.stdout, verified.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_fails_the_turns_of_the_node_with_the_reason_and_keeps_all_else() {
    let (home, url) = (Home::new(), database());
    let server = on_database(&home, &url, "");
    let line = line_to(&home, &server);
    let done = line.send("complete before").await["task"].take();
    let parked = line.send("ask what now?").await["task"].take();
    let mut stream = line.streaming_send("stream 1000000 5").await;
    let mut seen: Vec<Event> = Vec::new();
    while seen.len() < 20 {
        seen.push(stream.next().await.unwrap().expect("the stream is open"));
    }
    let running = seen[0].payload["task"]["id"].clone();
    server.kill();

    let server = on_database(&home, &url, "");
    let line = line_to(&home, &server);
    assert_eq!(server.call("GetTask", json!({ "id": done["id"] })).await["result"], done);
    assert_eq!(server.call("GetTask", json!({ "id": parked["id"] })).await["result"], parked);
    let failed = soon("the cut turn has ended", async || {
        let task = server.call("GetTask", json!({ "id": running })).await["result"].take();
        (state(&task) == "TASK_STATE_FAILED").then_some(task)
    });
    let failed = failed.await;
    assert!(failed["status"]["message"].to_string().contains("restarted"), "{failed}");
    let log = line.admin(&format!("/tasks/{}/events?limit=1000", running.as_str().unwrap())).await.unwrap();
    let kept = log["events"].as_array().map_or(0, Vec::len);
    assert!(kept > seen.len() - 1, "every event that was shown is kept: {kept} of {}", seen.len());
    let answered = line.follow_up(&parked["id"], "complete that").await;
    assert_eq!(state(&answered["result"]["task"]), "TASK_STATE_COMPLETED", "{answered}");
}

#[test]
fn budgets_and_freezes_hold_over_a_restart() {
    let config = format!("{AGENTS}\n[store]\nurl = '{}'\n", database());
    let node = DelegatingNode::new(&config);
    let sent = node.send_as("user", &["--agent", "writer", "hello"]);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    node.text(&["freeze", "agent", "writer", "--why", "leaks"]);
    let frozen = node.json(&["freeze", "ls"]);
    let spent = |node: &DelegatingNode| node.json(&["bill", "--since", "1d", "--by", "caller"]);
    let before = spent(&node);
    let node = node.restarted(&config);
    assert_eq!(node.json(&["freeze", "ls"]), frozen);
    assert!(before["lines"].as_array().is_some_and(|lines| !lines.is_empty()), "{before}");
    assert_eq!(spent(&node)["lines"], before["lines"]);
    assert!(node.text(&["budgets"]).contains("0.03"), "{}", node.text(&["budgets"]));
    let refused = node.send_as("user", &["--agent", "writer", "hello"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("leaks"), "{}", refused.stderr);
    node.text(&["thaw", "agent", "writer"]);
    assert_eq!(node.send_as("user", &["--agent", "writer", "hello"]).code, Some(0));
}
