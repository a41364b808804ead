//! Webhooks that are asked whether they want to be told, and those that are first told how things stand.

use serde_json::{Value, json};

use super::receiver::{Act, Got, Receiver};
use super::{send, server};
use crate::support::server::Server;

fn is_challenge(got: &Got) -> bool {
    got.path.contains("validationToken=")
}

async fn willing() -> Receiver {
    Receiver::new(|got| if is_challenge(got) { Act::Echo } else { Act::Answer(204) }).await
}

async fn attempt(server: &Server, url: &str) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    let params = json!({ "message": message, "configuration": { "taskPushNotificationConfig": { "url": url } } });
    server.call("SendMessage", params).await
}

async fn register(server: &Server, task: &Value, url: &str) -> Value {
    server.call("CreateTaskPushNotificationConfig", json!({ "taskId": task["id"], "url": url })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_answers_the_challenge_is_told_and_not_asked_again() {
    let server = server("challenge = 'required'");
    let receiver = willing().await;
    let url = receiver.url("/hook?mine=1");
    let task = send(&server, "ask which?", json!({ "url": url }), false).await;
    assert!(register(&server, &task, &url).await["error"].is_null());
    let message = json!({ "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    let configuration = json!({ "taskPushNotificationConfig": { "url": url } });
    server.call("SendMessage", json!({ "message": message, "configuration": configuration })).await;
    receiver.has_taken(4).await;
    let asked: Vec<Got> = receiver.got().into_iter().filter(is_challenge).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].path.starts_with("/hook?mine=1&validationToken="), "{}", asked[0].path);
    assert!(asked[0].body.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_answer_it_is_refused_and_no_task_is_made() {
    let server = server("challenge = 'required'");
    let deaf = [
        Receiver::new(|_| Act::Answer(404)).await,
        Receiver::new(|_| Act::Answer(200)).await,
        Receiver::new(|_| Act::With(200, Vec::new())).await,
        Receiver::new(|_| Act::With(302, vec![("location", "/elsewhere".to_owned())])).await,
        Receiver::new(|_| Act::Hang).await,
    ];
    let willing = willing().await;
    let existing = send(&server, "ask which?", json!({ "url": willing.url("/") }), false).await;
    let before = server.call("ListTasks", json!({})).await["result"]["totalSize"].clone();
    for receiver in &deaf {
        let answer = attempt(&server, &receiver.url("/")).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer.to_string().contains("taskPushNotificationConfig.url"), "{answer}");
        let answer = register(&server, &existing, &receiver.url("/")).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(receiver.got().iter().all(is_challenge), "nothing is told");
        // Statuses and addresses are for the log alone: with them a caller could map the network behind the node.
        let text = answer["error"].to_string();
        let public = ["the address could not be reached", "the answer was not acceptable"];
        assert!(public.iter().any(|public| text.contains(&format!("did not answer the challenge: {public}"))), "{text}");
    }
    let gone = attempt(&server, "http://127.0.0.1:9/").await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    assert_eq!(server.call("ListTasks", json!({})).await["result"]["totalSize"], before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_optional_challenge_keeps_nobody_out() {
    let server = server("challenge = 'optional'");
    let receiver = Receiver::new(|got| Act::Answer(if is_challenge(got) { 404 } else { 200 })).await;
    send(&server, "complete", json!({ "url": receiver.url("/") }), true).await;
    receiver.has_taken(2).await;
    assert!(is_challenge(&receiver.got()[0]));
    assert!(server.log().contains("did not answer its challenge"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_late_is_first_told_how_the_task_stands() {
    let server = server("snapshot = true");
    let (first, late) = (Receiver::kind().await, Receiver::kind().await);
    let task = send(&server, "ask which?", json!({ "url": first.url("/") }), false).await;
    let task_id = json!({ "id": task["id"] });
    assert!(register(&server, &task, &late.url("/")).await["error"].is_null());
    let stands = server.call("GetTask", task_id.clone()).await["result"].take();
    assert_eq!(late.has_taken(1).await[0].json()["task"], stands);
    let message = json!({ "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "text": "complete" }] });
    server.call("SendMessage", json!({ "message": message })).await;
    let told = late.has_taken(2).await;
    assert!(told[1].seq() > told[0].seq(), "and then what follows");
    assert!(first.got()[0].json()["task"].is_object() && !first.got()[0].header("webhook-id").ends_with("-s"));

    let after_its_end = Receiver::kind().await;
    let stands = crate::support::patience::soon("the task ends", async || {
        let task = server.call("GetTask", task_id.clone()).await["result"].take();
        (task["status"]["state"] == "TASK_STATE_COMPLETED").then_some(task)
    })
    .await;
    register(&server, &task, &after_its_end.url("/")).await;
    assert_eq!(after_its_end.has_taken(1).await[0].json()["task"], stands);
}
