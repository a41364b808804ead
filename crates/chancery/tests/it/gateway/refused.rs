//! A message that an agent elsewhere does not take: its caller is refused in its own shape, as by an agent that is here, and
//! nothing is left of it.

use std::sync::Arc;

use chancery_protocol::{ErrorKind, ListTasks, Message, Reply, Request, Role, SendConfiguration, SendMessage, Version};
use serde_json::json;
use tokio::sync::Semaphore;

use super::scripted::{Script, Scripted};
use super::{QUICK, in_front_of};
use crate::support::wire_client::{Combination, Conditions, WireClient};

/// What the agent says, and what its caller is refused with.
const REFUSALS: [(i64, ErrorKind); 6] = [
    (-32005, ErrorKind::ContentTypeNotSupported),
    (-32004, ErrorKind::UnsupportedOperation),
    (-32602, ErrorKind::InvalidParams),
    (-32003, ErrorKind::PushNotificationNotSupported),
    (-32040, ErrorKind::RateLimited),
    (-32008, ErrorKind::ExtensionSupportRequired),
];

fn message(combination: Combination, name: &str) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "do it")),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| name.into()),
        unknown: chancery::protocol::Unknown::none(),
    }
}

async fn listed(client: &WireClient) -> usize {
    let list = Request::ListTasks(ListTasks::default());
    match client.call(&list, &Conditions::default()).await {
        Ok(Reply::Tasks(page)) => page.tasks.len(),
        other => panic!("{other:?}"),
    }
}

/// Sends, watches, and sends without waiting, over every front; each is refused with this, and may try again.
async fn everybody_is_refused(agent: &Scripted, kind: ErrorKind, words: &str) {
    let gateway = in_front_of(&agent.url(), &format!("{QUICK}[health]\nfailures = 1000\nfailure_percent_of = 1000\n"));
    for combination in Combination::ALL {
        let client = WireClient::new(gateway.url(), combination);
        let what = format!("{kind:?} over {}", combination.name());
        let conditions = Conditions { idempotency_key: Some("once".to_owned()), ..Conditions::default() };
        let check = |refusal: &crate::support::wire_client::Refusal| {
            assert!(refusal.message().contains(words), "{what}: {refusal:?}");
            refusal.check(kind, combination).unwrap_or_else(|fault| panic!("{what}: {fault}\n{}", gateway.log()));
        };
        // The same name and the same key again: what was refused took neither.
        for _ in 0..2 {
            check(&client.call(&Request::SendMessage(message(combination, "own")), &conditions).await.expect_err("a refusal"));
        }
        let mut unwatched = message(combination, "own");
        unwatched.configuration.return_immediately = true;
        check(&client.call(&Request::SendMessage(unwatched), &Conditions::default()).await.expect_err("a refusal"));
        let streamed = client.stream(&Request::StreamMessage(message(combination, "own")), &Conditions::default()).await;
        let refusal = match streamed {
            Err(refusal) => refusal,
            // gRPC has nowhere to say it but at the end.
            Ok(mut events) => events.next().await.expect_err("a refusal"),
        };
        check(&refusal);
    }
    assert_eq!(listed(&WireClient::new(gateway.url(), Combination::ALL[0])).await, 0);
    let messages = agent.calls().iter().filter(|asked| asked.kind().starts_with("Send")).count();
    assert_eq!(messages, 4 * Combination::ALL.len(), "each was put to the agent once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_refusal_of_a_message_is_its_callers_and_leaves_nothing() {
    for (code, kind) in REFUSALS {
        let agent = Scripted::agent(move |asked| Script::error(asked, code, "not with me")).await;
        everybody_is_refused(&agent, kind, "not with me").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_as_the_first_event_of_a_stream_is_one_too_and_so_is_one_of_an_agent_without_streams() {
    let agent = Scripted::agent(|asked| Script::stream().refusal(asked, -32004, "not with me").end()).await;
    everybody_is_refused(&agent, ErrorKind::UnsupportedOperation, "not with me").await;
    let agent = Scripted::with_card(json!({ "streaming": false }), |asked| Script::error(asked, -32005, "not with me")).await;
    everybody_is_refused(&agent, ErrorKind::ContentTypeNotSupported, "not with me").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_long_an_agent_asks_to_wait_is_passed_on() {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32040, "message": "slower" } }).to_string();
    let agent = Scripted::agent(move |_| Script::page_with(429, "application/json", &[("Retry-After", "7")], &body)).await;
    let gateway = in_front_of(&agent.url(), QUICK);
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } });
    let sent = reqwest::Client::new().post(format!("{}/message:send", gateway.url())).header("A2A-Version", "1.0").json(&message);
    let answer = sent.send().await.expect("an answer");
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers().get("retry-after").and_then(|value| value.to_str().ok()), Some("7"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_open_when_the_refusal_comes_ends_with_it() {
    let cue = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&cue);
    let agent = Scripted::agent(move |asked| {
        let answer = Script::error(asked, -32005, "not with me");
        Script::default().wait(&waiting).followed_by(answer)
    })
    .await;
    let gateway = in_front_of(&agent.url(), QUICK);
    for combination in Combination::ALL {
        let client = WireClient::new(gateway.url(), combination);
        let request = Request::StreamMessage(message(combination, "own"));
        let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
        cue.add_permits(1);
        let refusal = events.next().await.expect_err("nothing but the refusal");
        assert!(refusal.message().contains("not with me"), "{refusal:?}");
    }
    assert_eq!(listed(&WireClient::new(gateway.url(), Combination::ALL[0])).await, 0);
}

/// The head of a kept-alive answer is out before the agent refuses, so no status can say it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_after_the_head_of_a_blocking_answer_is_a_task_that_failed() {
    let cue = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&cue);
    let agent =
        Scripted::agent(move |asked| Script::default().wait(&waiting).followed_by(Script::error(asked, -32005, "not with me")))
            .await;
    let gateway = in_front_of(&agent.url(), "[limits]\nunary_keepalive_ms = 20\n");
    let message = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }] } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message });
    for (path, body, task) in [("", &call, "/result/task"), ("/message:send", &message, "/task")] {
        let sent = reqwest::Client::new().post(format!("{}{path}", gateway.url())).header("A2A-Version", "1.0").json(body);
        let answer = sent.send().await.expect("a head while the agent waits");
        assert_eq!(answer.status(), 200);
        cue.add_permits(1);
        let answer: serde_json::Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
        let status = answer.pointer(task).unwrap_or_else(|| panic!("a task: {answer}"))["status"].clone();
        assert_eq!(status["state"], "TASK_STATE_FAILED", "{answer}");
        let words = status["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        assert!(words.contains("front") && words.contains("not with me"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_has_against_the_gateway_is_not_told_as_if_it_were_the_callers_fault() {
    for (code, words) in [(-32046, "who are you"), (-32047, "not you"), (-32601, "no such method"), (-32603, "broken")] {
        let agent = Scripted::agent(move |asked| Script::error(asked, code, words)).await;
        let gateway = in_front_of(&agent.url(), QUICK);
        let task = gateway.send("x").await["task"].take();
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{code}: {task}");
    }
}
