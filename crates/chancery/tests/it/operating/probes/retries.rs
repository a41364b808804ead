//! The same call many times over.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Kept, serve};
use crate::support::line::{Beside, Line};
use crate::support::patience::soon;
use crate::support::server::{Home, Setup};

#[tokio::test]
async fn retries_at_the_same_moment_make_one_task_and_all_get_its_answer() {
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let home = Home::new();
        let (_server, line) = serve(&home, kept, "");
        for round in 0..20 {
            let key = format!("round-{round}");
            let message = json!({ "messageId": key, "role": "ROLE_USER", "parts": [{ "text": "stream 3 2" }] });
            let params = json!({ "message": message });
            let calls = (0..16).map(|_| line.call("SendMessage", &params, Beside::key(&key)));
            let answers: Vec<Value> = futures::future::join_all(calls)
                .await
                .into_iter()
                .map(|answer| answer.unwrap()["result"]["task"].take())
                .collect();
            let distinct: BTreeSet<String> = answers.iter().map(Value::to_string).collect();
            assert_eq!(distinct.len(), 1, "{kept:?}: {distinct:#?}");
            assert_eq!(answers[0]["status"]["state"], "TASK_STATE_COMPLETED", "{kept:?}");
        }
        assert_eq!(line.admin("/tasks?limit=1&total=true").await.unwrap()["total"], 20, "{kept:?}");
    }
}

const FORGOTTEN: i64 = -32064;

async fn keyed_send(line: &Line, key: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete once" }] });
    line.call("SendMessage", &json!({ "message": message }), Beside::key(key)).await.unwrap()
}

#[tokio::test]
async fn a_retry_whose_task_is_forgotten_is_told_so_and_nothing_runs() {
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let home = Home::new();
        let few = "[retention]\nmax_tasks = 1\n";
        let (server, line) = serve(&home, kept, few);
        let first = keyed_send(&line, "once").await["result"]["task"]["id"].take();
        assert_eq!(keyed_send(&line, "once").await["result"]["task"]["id"], first, "{kept:?}");
        let forgotten = async || {
            line.send("complete another").await;
            let looked_up = line.call("GetTask", &json!({ "id": first }), Beside::default()).await.unwrap();
            (looked_up["error"]["code"] == -32001).then_some(())
        };
        soon("the first task is forgotten", forgotten).await;
        let refused = async |line: &Line| {
            let newest = async || line.admin("/tasks?limit=1").await.unwrap()["tasks"][0]["id"].take();
            let before = newest().await;
            let refusal = keyed_send(line, "once").await["error"].take();
            assert_eq!(refusal["code"], FORGOTTEN, "{kept:?}: {refusal}");
            assert_eq!(refusal["data"][0]["reason"], "TASK_FORGOTTEN");
            assert_eq!(refusal["data"][0]["metadata"]["taskId"], first);
            assert_eq!(newest().await, before, "{kept:?}: no task was made");
        };
        refused(&line).await;
        if kept == Kept::OnDisk {
            server.kill();
            let (_server, line) = serve(&home, kept, few);
            refused(&line).await;
        }
    }
}

#[tokio::test]
async fn one_message_id_for_two_agents_is_two_tasks_and_one_key_for_two_agents_is_a_conflict() {
    let home = Home::new();
    let agents = ["--agent", "conformance", "--agent", "echo"];
    let server = Setup::in_home(&home).args(agents).config("dedupe = 'message_id'\n").start();
    let to = |agent: &str| Line::to(&format!("{}/agents/{agent}", server.url()), "");
    let message = json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "complete once" }] });
    let params = json!({ "message": message });
    let send = async |agent: &str, beside| to(agent).call("SendMessage", &params, beside).await.unwrap();
    let mut made = Vec::new();
    for agent in ["conformance", "echo"] {
        let first = send(agent, Beside::default()).await["result"]["task"]["id"].take();
        assert!(first.is_string(), "{agent}");
        assert_eq!(send(agent, Beside::default()).await["result"]["task"]["id"], first, "{agent}: the same message again");
        made.push(first);
    }
    assert_ne!(made[0], made[1]);
    assert!(send("conformance", Beside::key("k")).await["result"]["task"].is_object());
    assert_eq!(send("echo", Beside::key("k")).await["error"]["data"][0]["reason"], "IDEMPOTENCY_CONFLICT");
}
