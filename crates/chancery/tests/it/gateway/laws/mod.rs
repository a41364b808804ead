//! The laws of carrying agents as they are: each test is named by the number of its law.

mod answers;
mod calling;
mod shape_agents;
mod shapes;
mod stopping;

use std::sync::Arc;

use chancery_protocol::{
    Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskEvent, TaskId, TaskState,
};
use serde_json::{Value, json};

use super::scripted::{Asked, Scripted};
use super::{in_front_of, in_front_of_with};
use crate::operating::cli::run;
use crate::support::server::Server;
use crate::support::wire_client::{Combination, Conditions, Refusal, WireClient};
use crate::tasks::scenarios::lines;

const UNARY: &str = "SendMessage";
const STREAM: &str = "SendStreamingMessage";
const GET: &str = "GetTask";
const WORDS: &str = "alpha beta gamma";

/// A node with short pauses, in front of the agent.
fn gateway(agent: &Scripted) -> Server {
    in_front_of(&agent.url(), super::QUICK)
}

/// The same with settings of the agent.
fn gateway_with(agent: &Scripted, settings: &str) -> Server {
    in_front_of_with(&agent.url(), super::QUICK, settings)
}

fn client(gateway: &Server) -> WireClient {
    WireClient::new(gateway.url(), Combination::ALL[0])
}

fn message(configuration: SendConfiguration) -> SendMessage {
    SendMessage {
        tenant: None,
        message: Arc::new(Message::text(Role::User, "m", "do it")),
        configuration,
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

/// What a caller has in the end.
#[derive(Debug, Default, PartialEq)]
struct Carried {
    state: String,
    /// The texts of all artifacts, part by part.
    artifacts: Vec<String>,
    /// What the agent said beside them, in order.
    said: Vec<String>,
}

impl Carried {
    fn of_task(task: &Arc<Task>) -> Self {
        let words = task.history.iter().chain(task.status.message.iter());
        Self {
            state: lines::state(task.status.state),
            artifacts: task
                .artifacts
                .iter()
                .flat_map(|artifact| artifact.parts.iter())
                .map(|part| lines::parts(std::slice::from_ref(part)))
                .collect(),
            said: words.filter(|message| message.role == Role::Agent).map(|message| lines::parts(&message.parts)).collect(),
        }
    }

    fn of_message(message: &Message) -> Self {
        Self { state: "message".to_owned(), artifacts: Vec::new(), said: vec![lines::parts(&message.parts)] }
    }

    fn completed(artifacts: &[&str], said: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self { state: "completed".to_owned(), artifacts: owned(artifacts), said: owned(said) }
    }
}

async fn sent(client: &WireClient, configuration: SendConfiguration) -> Result<Carried, Refusal> {
    match client.call(&Request::SendMessage(message(configuration)), &Conditions::default()).await? {
        Reply::Sent(Sent::Task(shown)) => Ok(Carried::of_task(&shown.task)),
        Reply::Sent(Sent::Message(message)) => Ok(Carried::of_message(&message)),
        other => panic!("{other:?}"),
    }
}

/// One blocking send.
async fn send(client: &WireClient) -> Carried {
    sent(client, SendConfiguration::default()).await.expect("an answer")
}

/// One stream, and the task as it is shown afterwards.
async fn stream(client: &WireClient) -> Carried {
    streamed(client).await.1
}

/// The same with the events as they came.
async fn streamed(client: &WireClient) -> (Vec<String>, Carried) {
    let request = Request::StreamMessage(message(SendConfiguration::default()));
    let mut events = client.stream(&request, &Conditions::default()).await.expect("a stream");
    let (mut seen, mut id, mut reply) = (Vec::new(), None, None);
    while let Some(event) = events.next().await.expect("an event") {
        seen.push(lines::event(&event.event));
        id = event.face.map(|face| face.task_id).or(id);
        if let TaskEvent::Replied(message) = &event.event {
            reply = Some(Carried::of_message(message));
        }
    }
    let carried = match (reply, id) {
        (Some(reply), _) => reply,
        (None, Some(id)) => Carried::of_task(&get(client, id).await),
        (None, None) => panic!("a stream without a task or a message: {seen:?}"),
    };
    (seen, carried)
}

async fn get(client: &WireClient, id: TaskId) -> Arc<Task> {
    let get = chancery_protocol::GetTask { tenant: None, id, history_length: None };
    match client.call(&Request::GetTask(get), &Conditions::default()).await {
        Ok(Reply::Task(shown)) => shown.task,
        other => panic!("{other:?}"),
    }
}

/// A task of the agent, as 1.0 writes it.
fn task(state: TaskState, parts: &[&str]) -> Value {
    let mut task = json!({ "id": "t", "contextId": "c", "status": { "state": state.name() } });
    if !parts.is_empty() {
        task["artifacts"] = json!([artifact(parts)]);
    }
    task
}

fn artifact(parts: &[&str]) -> Value {
    json!({ "artifactId": "a", "parts": parts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>() })
}

fn status(state: TaskState) -> Value {
    json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": { "state": state.name() } } })
}

fn piece(parts: &[&str], append: bool) -> Value {
    json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "artifact": artifact(parts), "append": append } })
}

fn words(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_AGENT", "parts": [{ "text": text }] })
}

/// How often the agent was asked for one answer, and for a stream.
fn calls(agent: &Scripted) -> (usize, usize) {
    (agent.count(UNARY), agent.count(STREAM))
}

fn params(asked: &Asked) -> Value {
    asked.params()
}

/// What `chancery explain` says of the only task there is.
fn explained(gateway: &Server) -> String {
    let tasks = run(gateway.home(), ["tasks", "list", "--json"]).json();
    let [task] = tasks["tasks"].as_array().expect("a list").as_slice() else { panic!("one task is expected: {tasks}") };
    let ran = run(gateway.home(), ["explain", task["id"].as_str().expect("an id"), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}
