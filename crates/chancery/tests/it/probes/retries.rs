//! The same call many times over.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Kept, serve};
use crate::line::Beside;
use crate::server::Home;

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
        assert_eq!(line.admin("/tasks?limit=1").await.unwrap()["total"], 20, "{kept:?}");
    }
}
