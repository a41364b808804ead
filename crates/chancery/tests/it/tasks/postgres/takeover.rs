//! A second node that opens the same database takes it over. The first one says so, and answers no more calls.

use serde_json::json;

use super::{line_to, state};
use crate::support::patience::soon;
use crate::support::postgres::{database, on_database};
use crate::support::server::Home;
use crate::tasks::disk::readiness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lost_its_database_to_another_says_so_and_answers_unavailable() {
    let (home, other_home, url) = (Home::new(), Home::new(), database());
    let first = on_database(&home, &url, "");
    let line = line_to(&home, &first);
    let done = line.send("complete before").await["task"].take();
    let mut quiet = line.streaming_send("sleep 600000").await;
    let open = quiet.next().await.unwrap().expect("the stream is open").payload["task"]["id"].clone();

    let second = on_database(&other_home, &url, "");
    // Nobody calls the first node meanwhile.
    let body = soon("the first node is not ready", async || {
        let (status, body) = readiness(&first).await;
        (status == 503).then_some(body)
    });
    let body = body.await;
    assert!(body["reason"].as_str().is_some_and(|reason| reason.contains("another node opened this database later")), "{body}");
    while let Some(event) = quiet.next().await.expect("its streams are closed in order") {
        assert!(!event.ends_the_task(), "{event:?}");
    }
    let log = soon("its log says what to do", async || {
        let log = first.log();
        log.contains("this node has lost its database permanently").then_some(log)
    });
    let log = log.await;
    let line_of_log = log.lines().find(|line| line.contains("lost its database")).expect("a line");
    assert!(line_of_log.contains("ERROR") && line_of_log.contains("stop this node"), "{line_of_log}");

    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete late" }] });
    let calls = [
        ("SendMessage", json!({ "message": message })),
        ("GetTask", json!({ "id": done["id"] })),
        ("GetTask", json!({ "id": open })),
        ("ListTasks", json!({})),
        ("CancelTask", json!({ "id": open })),
    ];
    for (method, params) in calls {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = reqwest::Client::new().post(first.url()).header("A2A-Version", "1.0").json(&body);
        let answer = request.send().await.unwrap();
        let retry_after = answer.headers().get("retry-after").is_some();
        assert_eq!((answer.status().as_u16(), retry_after), (503, true), "{method}");
        assert!(answer.text().await.unwrap().contains("another node has the tasks of this node now"), "{method}");
    }
    let alive = reqwest::get(format!("{}/livez", first.url())).await.unwrap();
    assert_eq!(alive.status().as_u16(), 200);

    let found = second.call("GetTask", json!({ "id": done["id"] })).await;
    assert_eq!(found["result"], done, "the other node has the tasks");
    let cut = second.call("GetTask", json!({ "id": open })).await;
    assert_eq!(state(&cut["result"]), "TASK_STATE_FAILED", "{cut}");
    let (status, _) = first.terminate();
    assert_eq!(status.code(), Some(0), "it stops in order");

    // A restart takes the database back.
    let first = on_database(&home, &url, "");
    assert_eq!(readiness(&first).await.0, 200);
    assert_eq!(first.call("GetTask", json!({ "id": done["id"] })).await["result"], done);
    soon("now the other one is not ready", async || (readiness(&second).await.0 == 503).then_some(())).await;
}
