//! Agents that fail in every way: each has its outcome, and every caller is told in its own shape.

mod answers;
mod streams;

use std::sync::Arc;

use chancery_protocol::{Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, Version};
use serde_json::{Value, json};

use super::scripted::{Asked, Scripted};
use super::{in_front_of, streaming_from};
use crate::support::wire_client::{Combination, Conditions, WireClient};
use crate::tasks::scenarios::lines;

/// How long an agent may be silent that is not about to be.
const PATIENT_MS: u64 = 30_000;
/// The same for one that is: a moment.
const HASTY_MS: u64 = 400;

/// An agent is looked for three times, and is asked however often it fails.
fn fast(read_ms: u64) -> String {
    format!(
        "[peers]\nread_ms = {read_ms}\nanswer_ms = {read_ms}\nreconnects = 2\nreconnect_ms = 10\nmax_reconnect_ms = 20\npoll_ms = 10\n\
         max_poll_ms = 20\nanswer_bytes = 65536\nevent_bytes = 65536\n\
         [health]\nfailures = 1000\nfailure_percent_of = 1000\n"
    )
}

const SEND: &str = "SendStreamingMessage";

/// The name of a new task, or of the one that is asked about.
fn name(asked: &Asked) -> String {
    asked.task().unwrap_or_else(|| format!("task-{}", asked.before))
}

fn task(asked: &Asked, state: &str, artifacts: &[&str]) -> Value {
    let artifacts: Vec<Value> = (!artifacts.is_empty())
        .then(|| json!({ "artifactId": "a", "parts": artifacts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>() }))
        .into_iter()
        .collect();
    json!({ "id": name(asked), "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") }, "artifacts": artifacts })
}

fn picture(asked: &Asked, state: &str, artifacts: &[&str]) -> Value {
    json!({ "task": task(asked, state, artifacts) })
}

fn status(asked: &Asked, state: &str, words: Option<&str>) -> Value {
    let mut status = json!({ "state": format!("TASK_STATE_{state}") });
    if let Some(words) = words {
        status["message"] = json!({ "messageId": words, "role": "ROLE_AGENT", "parts": [{ "text": words }] });
    }
    json!({ "statusUpdate": { "taskId": name(asked), "contextId": "c", "status": status } })
}

fn piece(asked: &Asked, text: &str, append: bool, last: bool) -> Value {
    let artifact = json!({ "artifactId": "a", "parts": [{ "text": text }] });
    json!({ "artifactUpdate":
        { "taskId": name(asked), "contextId": "c", "artifact": artifact, "append": append, "lastChunk": last } })
}

fn message(combination: Combination, own: &str) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "do it")),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: (combination.version == Version::Original).then(|| own.into()),
        unknown: Default::default(),
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    state: String,
    said: Option<String>,
    artifacts: Vec<String>,
}

impl Outcome {
    fn of(task: &Task) -> Self {
        Self {
            state: lines::state(task.status.state),
            said: task.status.message.as_ref().map(|message| lines::parts(&message.parts)),
            artifacts: lines::artifacts(task),
        }
    }

    fn failed(said: &str, artifacts: &[&str]) -> Self {
        Self {
            state: "failed".into(),
            said: Some(format!("agent front: {said}")),
            artifacts: artifacts.iter().map(|&text| text.into()).collect(),
        }
    }

    fn completed(artifacts: &[&str]) -> Self {
        Self { state: "completed".into(), said: None, artifacts: artifacts.iter().map(|&text| text.into()).collect() }
    }
}

/// Sends and watches over every front at once. Everybody gets this outcome, and the agent was asked once for each.
async fn everybody_gets(agent: &Scripted, expected: &Outcome) {
    everybody_gets_after(PATIENT_MS, agent, expected).await;
}

/// The same where it depends on how long the agent may be silent.
async fn everybody_gets_after(read_ms: u64, agent: &Scripted, expected: &Outcome) {
    let gateway = streaming_from(&agent.url(), &fast(read_ms));
    let callers = Combination::ALL.map(|combination| {
        let client = WireClient::new(gateway.url(), combination);
        async move {
            let none = Conditions::default();
            let sent = client.call(&Request::SendMessage(message(combination, "sent")), &none).await;
            let Ok(Reply::Sent(Sent::Task(shown))) = sent else { panic!("{}: {sent:?}", combination.name()) };
            let request = Request::StreamMessage(message(combination, "streamed"));
            let mut events = client.stream(&request, &none).await.expect("a stream");
            let mut last = String::new();
            while let Some(seen) = events.next().await.expect("an event") {
                last = lines::event(&seen.event);
            }
            (combination, Outcome::of(&shown.task), last)
        }
    });
    let told = expected.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
    for (combination, outcome, last) in futures::future::join_all(callers).await {
        assert_eq!(outcome, *expected, "{}\n{}", combination.name(), gateway.log());
        assert_eq!(last, format!("status {}{told}", expected.state), "{}", combination.name());
    }
    let messages = agent.calls().iter().filter(|asked| asked.kind().starts_with("Send")).count();
    assert_eq!(messages, 2 * Combination::ALL.len(), "each message is put to the agent once");
}

/// What somebody who watches is shown.
async fn shown(agent: &Scripted) -> (Vec<String>, Outcome) {
    let gateway = in_front_of(&agent.url(), &fast(PATIENT_MS));
    let client = WireClient::new(gateway.url(), Combination::ALL[0]);
    let request = Request::StreamMessage(message(Combination::ALL[0], ""));
    let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
    let (mut lines, mut id) = (Vec::new(), None);
    while let Some(seen) = events.next().await.expect("an event") {
        lines.push(lines::event(&seen.event));
        id = seen.face.map(|face| face.task_id).or(id);
    }
    let get = chancery_protocol::GetTask { tenant: None, id: id.expect("a task"), history_length: None };
    match client.call(&Request::GetTask(get), &Conditions::default()).await {
        Ok(Reply::Task(shown)) => (lines, Outcome::of(&shown.task)),
        other => panic!("{other:?}"),
    }
}
