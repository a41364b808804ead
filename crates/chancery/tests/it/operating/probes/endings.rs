//! How tasks end, and that they stay ended.

use serde_json::{Value, json};

use super::{Kept, serve};
use crate::support::line::{Beside, Event, Line};
use crate::support::server::Home;

fn reason(status: &Value) -> String {
    format!(
        "{} {}",
        status["state"].as_str().unwrap_or_default(),
        status["message"]["parts"][0]["text"].as_str().unwrap_or_default()
    )
}

fn last_status(events: &[Event]) -> String {
    events.last().map(|event| reason(&event.payload["statusUpdate"]["status"])).unwrap_or_default()
}

#[tokio::test]
async fn a_runner_that_panics_fails_its_task_with_a_reason_and_hangs_nobody() {
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let home = Home::new();
        let (_server, line) = serve(&home, kept, "");
        let expected = "TASK_STATE_FAILED the agent panicked: out of luck";
        let waited = line.send("panic out of luck").await;
        assert_eq!(reason(&waited["task"]["status"]), expected, "the caller that waits");
        let watched = line.streaming_send("panic out of luck").await.all().await.unwrap();
        assert_eq!(last_status(&watched), expected, "the caller that watches");

        let parked = line.send("ask what now?").await["task"]["id"].take();
        let subscribers = [line.subscribe(&parked).await, line.subscribe(&parked).await];
        let waited = line.follow_up(&parked, "panic out of luck").await;
        assert_eq!(reason(&waited["result"]["task"]["status"]), expected, "{waited}");
        for subscriber in subscribers {
            assert_eq!(last_status(&subscriber.all().await.unwrap()), expected, "a subscriber");
        }
        assert_eq!(line.send("complete all is well").await["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    }
}

#[tokio::test]
async fn a_parked_task_can_be_subscribed_to_and_is_heard_when_it_goes_on() {
    for (park, state) in [("ask which one?", "TASK_STATE_INPUT_REQUIRED"), ("auth please", "TASK_STATE_AUTH_REQUIRED")] {
        let home = Home::new();
        let (server, line) = serve(&home, Kept::OnDisk, "");
        let parked = line.send(park).await["task"]["id"].take();
        // Also when nobody has had it in hand since the start.
        server.kill();
        let (_server, line) = serve(&home, Kept::OnDisk, "");
        let mut events = line.subscribe(&parked).await;
        let first = events.next().await.unwrap().expect("a first event");
        assert_eq!(first.payload["task"]["status"]["state"], state, "{first:?}");
        line.follow_up(&parked, "complete the first").await;
        let rest = events.all().await.unwrap();
        assert_eq!(rest[0].payload["artifactUpdate"]["artifact"]["parts"][0]["text"], "the first", "{rest:?}");
        assert_eq!(last_status(&rest), "TASK_STATE_COMPLETED ");
    }
}

async fn log(line: &Line, id: &Value) -> Value {
    line.admin(&format!("/tasks/{}/events", id.as_str().unwrap())).await.unwrap()
}

#[tokio::test]
async fn a_task_that_has_ended_is_never_opened_again() {
    let home = Home::new();
    let (server, line) = serve(&home, Kept::OnDisk, "");
    let mut ended = Vec::new();
    for text in ["complete done", "fail no", "reject no", "error no", "panic no"] {
        ended.push(line.send(text).await["task"].take());
    }
    let parked = line.send("ask").await["task"]["id"].take();
    ended.push(line.call("CancelTask", &json!({ "id": parked }), Beside::default()).await.unwrap()["result"].take());

    let try_everything = async |line: &Line| {
        for task in &ended {
            let id = &task["id"];
            let before = log(line, id).await;
            let code = |answer: &Value| answer["error"]["code"].as_i64();
            assert_eq!(code(&line.follow_up(id, "complete again").await), Some(-32004), "{task}");
            let call = async |method: &str| line.call(method, &json!({ "id": id }), Beside::default()).await.unwrap();
            assert_eq!(code(&call("CancelTask").await), Some(-32002), "{task}");
            assert_eq!(code(&call("SubscribeToTask").await), Some(-32004), "{task}");
            assert_eq!(call("GetTask").await["result"], *task);
            assert_eq!(log(line, id).await, before);
        }
    };
    try_everything(&line).await;
    server.terminate();
    let (_server, line) = serve(&home, Kept::OnDisk, "");
    try_everything(&line).await;
}
