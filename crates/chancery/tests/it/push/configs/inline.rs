//! Webhooks that come with a message.

use std::sync::Arc;

use chancery_protocol::{ErrorKind, Request, SendMessage, TaskId, Version};

use super::{Client, config, server, with_lists};
use crate::support::wire_client::Combination;

fn told(mut send: SendMessage, id: Option<&str>, url: &str) -> SendMessage {
    send.configuration.task_push_notification_config = Some(Box::new(config(None, id, url)));
    send
}

/// One more message for a task.
fn follow_up(client: &Client, task: &TaskId, text: &str) -> SendMessage {
    let mut send = client.message(text, task.as_str());
    if client.version() != Version::Original {
        Arc::make_mut(&mut send.message).task_id = Some(task.clone());
    }
    send
}

#[tokio::test]
async fn a_message_brings_its_webhook_along_over_every_binding_in_every_version() {
    let server = server("");
    for combination in Combination::ALL {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let send = told(client.message("complete", "brings-one"), None, "https://hooks.example/inline");
        let task = client.send(send).await.expect(&name);
        let id = (combination.version != Version::Original).then_some(task.as_str());
        let found = client.get(&task, id).await.unwrap_or_else(|refusal| panic!("{name}: {}", refusal.message()));
        assert_eq!(found.url, "https://hooks.example/inline", "{name}");
    }
}

#[tokio::test]
async fn so_does_one_that_is_watched() {
    let server = server("");
    for combination in Combination::ALL {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let send = told(client.message("complete", "watched-one"), None, "https://hooks.example/watched");
        let mut stream = client.wire.stream(&Request::StreamMessage(send), &client.conditions).await.expect(&name);
        let mut task = None;
        while let Some(seen) = stream.next().await.expect(&name) {
            if let Some(face) = seen.face {
                task = task.or(Some(face.task_id));
            }
        }
        let task = match combination.version {
            Version::Original => TaskId::from("watched-one"),
            _ => task.expect("the stream names its task"),
        };
        let id = (combination.version != Version::Original).then_some(task.as_str());
        let found = client.get(&task, id).await.unwrap_or_else(|refusal| panic!("{name}: {}", refusal.message()));
        assert_eq!(found.url, "https://hooks.example/watched", "{name}");
    }
}

#[tokio::test]
async fn a_later_message_brings_another_and_the_same_one_again_is_the_same() {
    let server = server("");
    for combination in with_lists() {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.send(client.message("ask who?", "")).await.expect(&name);
        assert!(client.urls(&task).await.is_empty(), "{name}");
        for url in ["https://hooks.example/1", "https://hooks.example/2"] {
            client.send(told(follow_up(&client, &task, "ask again"), None, url)).await.expect(&name);
            assert_eq!(client.urls(&task).await, [url], "{name}: whoever sends it with each message means the same one");
        }
        client.send(told(follow_up(&client, &task, "ask again"), Some("b"), "https://hooks.example/b")).await.expect(&name);
        assert_eq!(client.urls(&task).await, ["https://hooks.example/2", "https://hooks.example/b"], "{name}");
    }
}

#[tokio::test]
async fn a_message_with_a_webhook_that_may_not_be_makes_no_task() {
    let server = server("configs_per_task = 1");
    for combination in Combination::ALL {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let bad = told(client.message("complete", "makes-none"), None, "https://10.0.0.1/");
        let refusal = client.send(bad).await.unwrap_err();
        refusal.check(ErrorKind::InvalidParams, combination).expect(&name);
        if combination.version == Version::Original {
            let which = chancery_protocol::GetTask { tenant: None, id: "makes-none".into(), history_length: None };
            client.call(Request::GetTask(which)).await.expect_err("it was not made");
        }
    }
    for combination in with_lists() {
        let (name, client) = (combination.name(), Client::new(&server, combination));
        let task = client.send(told(client.message("ask who?", ""), Some("a"), "https://hooks.example/a")).await.expect(&name);
        let second = told(follow_up(&client, &task, "complete"), Some("b"), "https://hooks.example/b");
        client.send(second).await.unwrap_err().check(ErrorKind::LimitReached, combination).expect(&name);
        assert_eq!(client.urls(&task).await, ["https://hooks.example/a"], "{name}");
        let get = chancery_protocol::GetTask { tenant: None, id: task, history_length: None };
        let chancery_protocol::Reply::Task(shown) = client.call(Request::GetTask(get)).await.expect(&name) else { panic!() };
        assert_eq!(shown.task.history.len(), 1, "{name}: the message was refused with its webhook");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_task_has_no_webhook() {
    let server = server("");
    let client = Client::new(&server, Combination::ALL[0]);
    let send = told(client.message("message hello", ""), Some("a"), "https://hooks.example/a");
    let reply = client.call(Request::SendMessage(send)).await.unwrap();
    assert!(matches!(reply, chancery_protocol::Reply::Sent(chancery_protocol::Sent::Message(_))), "{reply:?}");
}
