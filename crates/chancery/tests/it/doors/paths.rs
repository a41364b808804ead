//! The same calls by every address they can be made at.

use serde_json::{Value, json};

use super::{JSON, NEWEST, get, post};
use crate::support::server::{Home, Server, Setup};

fn two_agents() -> Server {
    Setup::in_home(&Home::new()).args(["--memory", "--agent", "conformance", "--agent", "echo"]).start()
}

fn message(text: &str) -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

fn call(text: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(text) }).to_string()
}

fn made(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]["text"]
}

#[tokio::test]
async fn an_agent_is_called_by_its_name_and_the_first_one_without() {
    let server = two_agents();
    for (path, words) in [
        ("", "x"),
        ("/", "x"),
        ("/agents/conformance", "x"),
        ("/agents/conformance/", "x"),
        ("/agents/echo", "complete x"),
        ("/agents/echo/", "complete x"),
    ] {
        let (_, answer) = post(&server, path, &[NEWEST, JSON], call("complete x")).await;
        assert_eq!(*made(&answer["result"]["task"]), words, "{path}: {answer}");
    }
    for (path, words) in [
        ("/message:send", "x"),
        ("/agents/conformance/message:send", "x"),
        ("/agents/echo/message:send", "complete x"),
        // A segment in front of the paths of the protocol is the tenant.
        ("/acme/message:send", "x"),
        ("/agents/echo/acme/message:send", "complete x"),
    ] {
        let (status, answer) = post(&server, path, &[NEWEST, JSON], message("complete x").to_string()).await;
        assert_eq!((status, made(&answer["task"])), (200, &json!(words)), "{path}: {answer}");
    }
    let (status, nobody) = post(&server, "/agents/nobody", &[NEWEST, JSON], call("hello")).await;
    assert_eq!((status, &nobody["error"]["status"]), (404, &json!("NOT_FOUND")), "{nobody}");
}

#[tokio::test]
async fn the_tasks_of_one_agent_are_not_found_at_another() {
    let server = two_agents();
    let (_, answer) = post(&server, "/agents/echo", &[NEWEST, JSON], call("hello")).await;
    let id = answer["result"]["task"]["id"].as_str().expect("an id").to_owned();
    let (status, _) = get(&server, &format!("/agents/echo/tasks/{id}"), &[NEWEST]).await;
    assert_eq!(status, 200);
    for path in [format!("/tasks/{id}"), format!("/agents/conformance/tasks/{id}")] {
        let (status, answer) = get(&server, &path, &[NEWEST]).await;
        assert_eq!((status, &answer["error"]["details"][0]["reason"]), (404, &json!("TASK_NOT_FOUND")), "{path}");
    }
    let (_, listed) = get(&server, "/tasks", &[NEWEST]).await;
    assert_eq!(listed["totalSize"], 0);
}

#[tokio::test]
async fn a_task_can_be_watched_with_get_and_with_post() {
    let server = two_agents();
    let (_, answer) = post(&server, "/message:send", &[NEWEST, JSON], message("ask what?").to_string()).await;
    let url = format!("{}/tasks/{}:subscribe", server.url(), answer["task"]["id"].as_str().expect("an id"));
    let client = reqwest::Client::new();
    for request in [client.get(&url), client.post(&url)] {
        let mut response = request.header(NEWEST.0, NEWEST.1).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let first = response.chunk().await.unwrap().expect("an event");
        assert!(std::str::from_utf8(&first).unwrap().contains("TASK_STATE_INPUT_REQUIRED"), "{first:?}");
    }
}

#[tokio::test]
async fn other_verbs_and_unknown_paths_are_told_apart() {
    let server = two_agents();
    for (path, expected) in [("/tasks/x/y/z", 404), ("/nothing", 404), ("/message:send", 405), ("/", 405), ("/agents/echo", 405)]
    {
        let (status, answer) = get(&server, path, &[NEWEST]).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }
}
