//! The checks: what a peer built on `rvagent-a2a` needs from a server, call by call.

use std::sync::Arc;

use reqwest::Response;
use rvagent_a2a::client::A2aClient;
use rvagent_a2a::context::TaskContext;
use rvagent_a2a::error::A2aError;
use rvagent_a2a::executor::{Executor, Peer};
use rvagent_a2a::identity::AgentID;
use rvagent_a2a::server::json_rpc::JsonRpcRequest;
use rvagent_a2a::types::{Artifact, Message, Part, Role, Task, TaskSpec, TaskState, TaskStatusUpdateEvent};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::sse::{Update, Updates};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
type Checked = Result<(), Failure>;

/// The node's code for a call that is too deep in its tree.
const RECURSION_DEPTH: i32 = -32052;

pub const OPERATIONS: &[&str] = &[
    "card",
    "send",
    "executor",
    "multi-turn",
    "rejected-as-failed",
    "get",
    "cancel",
    "stream",
    "send-subscribe",
    "resubscribe",
    "resubscribe-get",
    "task-not-found",
    "refused-stream",
    "task-not-cancelable",
    "push",
];

pub async fn run(agent: &Agent, operation: &str) -> Checked {
    match operation {
        "card" => card(agent).await,
        "send" => send(agent).await,
        "executor" => executor(agent).await,
        "multi-turn" => multi_turn(agent).await,
        "rejected-as-failed" => rejected_as_failed(agent).await,
        "get" => get(agent).await,
        "cancel" => cancel(agent).await,
        "stream" => stream(agent).await,
        "send-subscribe" => send_subscribe(agent).await,
        "resubscribe" => resubscribe(agent).await,
        "resubscribe-get" => resubscribe_get(agent).await,
        "task-not-found" => task_not_found(agent).await,
        "refused-stream" => refused_stream(agent).await,
        "task-not-cancelable" => task_not_cancelable(agent).await,
        "push" => push(agent).await,
        other => Err(format!("no check named {other}").into()),
    }
}

pub struct Agent {
    base: String,
    client: Arc<A2aClient>,
    http: reqwest::Client,
}

impl Agent {
    pub fn new(base: String) -> Result<Self, Failure> {
        Ok(Self { base, client: Arc::new(A2aClient::new()?), http: reqwest::Client::new() })
    }

    async fn send(&self, spec: TaskSpec) -> Result<Task, A2aError> {
        self.client.send_task(&self.base, spec).await
    }

    /// A call the client has no method for, in its own envelope.
    async fn post(&self, method: &str, params: Value) -> Result<Response, Failure> {
        let request = JsonRpcRequest { jsonrpc: "2.0".into(), method: method.into(), params, id: json!("interop") };
        Ok(self.http.post(&self.base).json(&request).send().await?)
    }
}

fn spec(id: &str, text: &str) -> TaskSpec {
    TaskSpec {
        id: id.into(),
        skill: "conformance".into(),
        message: Message { role: Role::User, parts: vec![Part::Text { text: text.into() }], metadata: Value::Null },
        policy: None,
        context: TaskContext::new_root(AgentID("0".repeat(64))),
        metadata: Value::Null,
    }
}

fn fresh() -> String {
    Uuid::new_v4().to_string()
}

fn require(what: &str, holds: bool, got: impl std::fmt::Debug) -> Checked {
    if holds { Ok(()) } else { Err(format!("{what}: got {got:?}").into()) }
}

fn texts(artifact: &Artifact) -> Vec<&str> {
    artifact.parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
}

/// A finished task under an id of our choice.
async fn completed(agent: &Agent, text: &str) -> Result<Task, Failure> {
    let id = fresh();
    let task = agent.send(spec(&id, &format!("complete {text}"))).await?;
    require("the id we chose", task.id == id, &task.id)?;
    require("state", task.status.state == TaskState::Completed, task.status.state)?;
    require("artifact", task.artifacts.len() == 1 && texts(&task.artifacts[0]) == [text], &task.artifacts)?;
    Ok(task)
}

async fn card(agent: &Agent) -> Checked {
    let card = agent.client.fetch_card(&agent.base).await?;
    require("name", !card.name.is_empty(), &card.name)?;
    require("url", card.url.starts_with(&agent.base), &card.url)?;
    require("provider", !card.provider.organization.is_empty(), &card.provider)?;
    require("skills", !card.skills.is_empty(), &card.skills)?;
    require("streaming", card.capabilities.streaming, &card.capabilities)?;
    require("push is claimed", card.capabilities.push_notifications, &card.capabilities)
}

async fn send(agent: &Agent) -> Checked {
    completed(agent, "hello there").await.map(drop)
}

async fn executor(agent: &Agent) -> Checked {
    let card = agent.client.fetch_card(&agent.base).await?;
    let base_url = url::Url::parse(&agent.base)?;
    let peer = Peer { id: AgentID("1".repeat(64)), card, base_url, client: agent.client.clone() };
    let task = Executor::Remote(Box::new(peer)).run(spec(&fresh(), "complete from afar")).await?;
    require("state", task.status.state == TaskState::Completed, task.status.state)?;
    require("artifact", task.artifacts.iter().map(texts).eq([["from afar"]]), &task.artifacts)
}

async fn multi_turn(agent: &Agent) -> Checked {
    let id = fresh();
    let asked = agent.send(spec(&id, "ask which colour?")).await?;
    require("state", asked.status.state == TaskState::InputRequired, asked.status.state)?;
    let done = agent.send(spec(&id, "complete blue")).await?;
    require("same task", done.id == id, &done.id)?;
    require("state", done.status.state == TaskState::Completed, done.status.state)?;
    require("artifact", done.artifacts.iter().map(texts).eq([["blue"]]), &done.artifacts)
}

/// The original has no rejected state; a client of it must still be able to read the answer.
async fn rejected_as_failed(agent: &Agent) -> Checked {
    let task = agent.send(spec(&fresh(), "reject not today")).await?;
    require("state", task.status.state == TaskState::Failed, task.status.state)?;
    let said = task.status.message.map(|message| message.parts);
    require("reason", said == Some(vec![Part::Text { text: "not today".into() }]), said)
}

async fn get(agent: &Agent) -> Checked {
    let sent = completed(agent, "keep me").await?;
    let found = agent.client.get_task(&agent.base, &sent.id).await?;
    require("task", (&found.id, &found.status, &found.artifacts) == (&sent.id, &sent.status, &sent.artifacts), &found)
}

type Waiting = tokio::task::JoinHandle<Result<Task, A2aError>>;

/// A task that sleeps, with the call that waits for it.
async fn sleeping(agent: &Agent) -> (String, Waiting) {
    let id = fresh();
    let (client, base, spec) = (agent.client.clone(), agent.base.clone(), spec(&id, "sleep 60000"));
    let waiting = tokio::spawn(async move { client.send_task(&base, spec).await });
    // The client has no non-blocking send, so the task shows up some time after the call went out; the caller bounds the wait.
    while agent.client.get_task(&agent.base, &id).await.is_err() {
        tokio::task::yield_now().await;
    }
    (id, waiting)
}

async fn cancel(agent: &Agent) -> Checked {
    let (id, waiting) = sleeping(agent).await;
    agent.client.cancel_task(&agent.base, &id).await?;
    let answered = waiting.await??;
    require("waiting caller's state", answered.status.state == TaskState::Canceled, answered.status.state)?;
    let found = agent.client.get_task(&agent.base, &id).await?;
    require("stored state", found.status.state == TaskState::Canceled, found.status.state)
}

/// The artifact chunks of a run that ended completed, with `final` on its last update and on no other.
fn chunks<'a>(id: &str, updates: &'a [Update]) -> Result<Vec<&'a Artifact>, Failure> {
    let mut finals = Vec::new();
    let mut chunks = Vec::new();
    for update in updates {
        match update {
            Update::Status(status) => {
                require("task id", status.id == id, &status.id)?;
                finals.push((status.final_, status.status.state));
            }
            Update::Artifact(update) => {
                require("task id", update.id == id, &update.id)?;
                chunks.push(&update.artifact);
            }
        }
    }
    require("last update", matches!(updates.last(), Some(Update::Status(_))), updates.last())?;
    let (last, before) = finals.split_last().ok_or("no status at all")?;
    require("ends completed", *last == (true, TaskState::Completed), last)?;
    require("only the last is final", before.iter().all(|(last, _)| !last), before)?;
    Ok(chunks)
}

/// The client's own streaming: it listens on an id first, then sends the task under that id.
async fn stream(agent: &Agent) -> Checked {
    let id = fresh();
    let listening = agent.client.stream_task(&agent.base, spec(&id, "complete streamed")).await?;
    agent.send(spec(&id, "complete streamed")).await?;
    let updates = Updates::of(listening).rest().await?;
    let chunks = chunks(&id, &updates)?;
    require("artifact", chunks.iter().map(|chunk| texts(chunk)).eq([["streamed"]]), &chunks)
}

/// The original's streaming, with this crate's TaskSpec and event types.
async fn send_subscribe(agent: &Agent) -> Checked {
    let id = fresh();
    let response = agent.post("tasks/sendSubscribe", serde_json::to_value(spec(&id, "stream 3"))?).await?;
    let updates = Updates::of(response).rest().await?;
    let chunks = chunks(&id, &updates)?;
    let flags: Vec<_> = chunks.iter().map(|chunk| (chunk.append, chunk.last_chunk)).collect();
    require("flags", flags == [(false, false), (true, false), (true, true)], &flags)?;
    require("one index", chunks.iter().all(|chunk| chunk.index == chunks[0].index), &chunks)?;
    let stored = agent.client.get_task(&agent.base, &id).await?;
    let streamed: Vec<_> = chunks.iter().flat_map(|chunk| texts(chunk)).collect();
    require("stored artifact", stored.artifacts.iter().map(texts).eq([streamed]), &stored.artifacts)
}

/// Follows a running task that is then canceled, to its final update.
async fn follow(agent: &Agent, id: &str, response: Response) -> Checked {
    let mut updates = Updates::of(response);
    let first = updates.next().await?.ok_or("no update")?;
    let running = matches!(&first, Update::Status(status) if status.id == id && !status.final_);
    require("first update", running, first)?;
    agent.client.cancel_task(&agent.base, id).await?;
    let rest = updates.rest().await?;
    let canceled = |status: &TaskStatusUpdateEvent| status.final_ && status.status.state == TaskState::Canceled;
    require("last update", matches!(rest.last(), Some(Update::Status(status)) if canceled(status)), &rest)
}

async fn resubscribe(agent: &Agent) -> Checked {
    let (id, waiting) = sleeping(agent).await;
    let response = agent.post("tasks/resubscribe", json!({ "id": id })).await?;
    follow(agent, &id, response).await?;
    waiting.await?.map(drop).map_err(Into::into)
}

/// As this crate's own peers do it.
async fn resubscribe_get(agent: &Agent) -> Checked {
    let (id, waiting) = sleeping(agent).await;
    let url = format!("{}/tasks/resubscribe?id={id}", agent.base);
    let response = agent.http.get(url).header("accept", "text/event-stream").send().await?.error_for_status()?;
    follow(agent, &id, response).await?;
    waiting.await?.map(drop).map_err(Into::into)
}

fn refused<T: std::fmt::Debug>(answer: Result<T, A2aError>, code: i32) -> Checked {
    match answer {
        Err(A2aError::JsonRpc(text)) if text.ends_with(&format!("(code {code})")) => Ok(()),
        other => Err(format!("wanted code {code}, got {other:?}").into()),
    }
}

async fn task_not_found(agent: &Agent) -> Checked {
    refused(agent.client.get_task(&agent.base, &fresh()).await, -32001)
}

/// A task too deep for any node is refused, and both of the original's streams say so: the call's own, and the one that the
/// client listens at before it sends.
async fn refused_stream(agent: &Agent) -> Checked {
    let id = fresh();
    let mut deep = spec(&id, "complete too deep");
    deep.context.depth = 99;
    let posted = agent.post("tasks/sendSubscribe", serde_json::to_value(&deep)?).await?;
    let listening = agent.client.stream_task(&agent.base, deep.clone()).await?;
    refused(agent.send(deep).await, RECURSION_DEPTH)?;
    for (stream, response) in [("posted", posted), ("listening", listening)] {
        let text = response.text().await?;
        require(stream, text.contains("data: ") && text.contains(&RECURSION_DEPTH.to_string()), &text)?;
    }
    Ok(())
}

async fn task_not_cancelable(agent: &Agent) -> Checked {
    let done = completed(agent, "done").await?;
    refused(agent.client.cancel_task(&agent.base, &done.id).await, -32002)
}

/// The crate has no methods for this, so its words are written here.
async fn push(agent: &Agent) -> Checked {
    let (done, url) = (completed(agent, "done").await?, "https://example.invalid/hook");
    let params = json!({ "id": done.id, "pushNotificationConfig": { "url": url } });
    let set: Value = agent.post("tasks/pushNotification/set", params).await?.json().await?;
    require("registered", set["result"]["pushNotificationConfig"]["url"] == url, &set)?;
    let found: Value = agent.post("tasks/pushNotification/get", json!({ "id": done.id })).await?.json().await?;
    require("read back", found["result"]["pushNotificationConfig"]["url"] == url, &found)
}
