//! The checks, the same as those of the Python and JS drivers.

use a2a::{A2AError, ListTasksRequest, SendMessageResponse, StreamResponse, Task, TaskState, error_code};
use futures::{StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::agent::{Agent, Events, Failure, Options, artifacts, texts};

type Checked = Result<(), Failure>;

pub const OPERATIONS: &[&str] = &[
    "card",
    "send",
    "message",
    "multi-turn",
    "stream",
    "get",
    "list",
    "cancel",
    "resubscribe",
    "resubscribe-parked",
    "task-not-found",
    "refused-stream",
    "task-not-cancelable",
    "push",
];

pub async fn run(agent: &Agent, operation: &str) -> Checked {
    match operation {
        "card" => card(agent).await,
        "send" => send(agent).await,
        "message" => message(agent).await,
        "multi-turn" => multi_turn(agent).await,
        "stream" => stream(agent).await,
        "get" => get(agent).await,
        "list" => list(agent).await,
        "cancel" => cancel(agent).await,
        "resubscribe" => resubscribe(agent).await,
        "resubscribe-parked" => resubscribe_parked(agent).await,
        "task-not-found" => refused(agent.get(&fresh(), None).await, error_code::TASK_NOT_FOUND),
        "refused-stream" => refused_stream(agent).await,
        "task-not-cancelable" => {
            let done = completed(agent, None).await?;
            refused(agent.cancel(&done.id).await, error_code::TASK_NOT_CANCELABLE)
        }
        "push" => push(agent).await,
        other => Err(format!("no check named {other}").into()),
    }
}

/// Registers a webhook, reads it, lists it, deletes it.
async fn push(agent: &Agent) -> Checked {
    let (done, url) = (completed(agent, None).await?, "https://example.invalid/hook");
    let made = agent.create_push(&done.id, url).await?;
    require("registered", made.url == url && made.task_id == done.id, &made)?;
    let found = agent.get_push(&done.id).await?;
    require("read back", found.url == url, &found)?;
    let all = agent.list_push(&done.id).await?;
    require("listed", all.len() == 1 && all[0].url == url, &all)?;
    agent.delete_push(&done.id).await?;
    let all = agent.list_push(&done.id).await?;
    require("listed after it was deleted", all.is_empty(), &all)?;
    refused(agent.create_push(&fresh(), url).await, error_code::TASK_NOT_FOUND)
}

fn fresh() -> String {
    Uuid::new_v4().to_string()
}

fn require(what: &str, holds: bool, got: impl std::fmt::Debug) -> Checked {
    if holds { Ok(()) } else { Err(format!("{what}: got {got:?}").into()) }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, A2AError>, code: i32) -> Checked {
    match answer {
        Err(error) => require("error code", error.code == code, error),
        Ok(answer) => Err(format!("wanted error {code}, got an answer: {answer:?}").into()),
    }
}

/// A finished task of our own, its artifact holding a text nobody else uses.
async fn completed(agent: &Agent, context_id: Option<&str>) -> Result<Task, Failure> {
    let text = format!("hello {}", fresh());
    let options = Options { context_id: context_id.map(Into::into), ..Options::default() };
    let task = agent.task(&format!("complete {text}"), options).await?;
    require("state", task.status.state == TaskState::Completed, &task.status)?;
    require("artifacts", artifacts(&task) == [[&text]], &task.artifacts)?;
    require("ids", !task.id.is_empty() && !task.context_id.is_empty(), &task)?;
    Ok(task)
}

async fn card(agent: &Agent) -> Checked {
    let card = agent.card().await?;
    let offered = |i: &&a2a::AgentInterface| i.protocol_binding == agent.binding && i.protocol_version.starts_with("1.0");
    require("name", !card.name.is_empty(), &card.name)?;
    require("skills", !card.skills.is_empty(), &card.skills)?;
    require("streaming", card.capabilities.streaming == Some(true), &card.capabilities)?;
    require("push is claimed", card.capabilities.push_notifications == Some(true), &card.capabilities)?;
    require("one interface", card.supported_interfaces.iter().filter(offered).count() == 1, &card.supported_interfaces)
}

async fn send(agent: &Agent) -> Checked {
    let (first, second) = (completed(agent, None).await?, completed(agent, None).await?);
    require("two sends make two tasks", first.id != second.id, &first.id)
}

async fn message(agent: &Agent) -> Checked {
    match agent.send("message good morning", Options::default()).await? {
        SendMessageResponse::Message(message) => require("texts", texts(&message.parts) == ["good morning"], &message),
        SendMessageResponse::Task(task) => Err(format!("a task instead of a message: {task:?}").into()),
    }
}

/// A task that waits for input, and the options that answer it.
async fn asked(agent: &Agent) -> Result<(Task, Options), Failure> {
    let task = agent.task("ask which colour?", Options::default()).await?;
    require("state", task.status.state == TaskState::InputRequired, &task.status)?;
    let answer = Options { task_id: Some(task.id.clone()), ..Options::default() };
    Ok((task, answer))
}

async fn multi_turn(agent: &Agent) -> Checked {
    let (asked, answer) = asked(agent).await?;
    let done = agent.task("complete blue", answer).await?;
    require("same task", (&done.id, &done.context_id) == (&asked.id, &asked.context_id), &done)?;
    require("state", done.status.state == TaskState::Completed, &done.status)?;
    require("artifacts", artifacts(&done) == [["blue"]], &done.artifacts)
}

async fn stream(agent: &Agent) -> Checked {
    let events: Vec<_> = agent.stream("stream 3").await?.try_collect().await?;
    let (first, rest) = events.split_first().ok_or("no event")?;
    let StreamResponse::Task(task) = first else { return Err(format!("first event: {first:?}").into()) };
    let mut chunks = Vec::new();
    let mut streamed = Vec::new();
    for event in rest {
        match event {
            StreamResponse::ArtifactUpdate(chunk) => {
                require("task id", chunk.task_id == task.id, chunk)?;
                streamed.extend(texts(&chunk.artifact.parts));
                chunks.push((&chunk.artifact.artifact_id, chunk.append == Some(true), chunk.last_chunk == Some(true)));
            }
            StreamResponse::StatusUpdate(update) => require("task id", update.task_id == task.id, update)?,
            other => return Err(format!("one task event only, got {other:?}").into()),
        }
    }
    let id = chunks.first().ok_or("no artifact")?.0;
    require("chunks", chunks == [(id, false, false), (id, true, false), (id, true, true)], &chunks)?;
    ends_in(TaskState::Completed, rest)?;
    let stored = agent.get(&task.id, None).await?;
    require("stored artifact", artifacts(&stored) == [streamed], &stored.artifacts)
}

fn ends_in(state: TaskState, events: &[StreamResponse]) -> Checked {
    let last = events.last();
    require("last event", matches!(last, Some(StreamResponse::StatusUpdate(update)) if update.status.state == state), last)
}

async fn get(agent: &Agent) -> Checked {
    let sent = completed(agent, None).await?;
    let found = agent.get(&sent.id, None).await?;
    require("task", found == sent, &found)?;
    require("history kept", found.history.as_ref().is_some_and(|history| !history.is_empty()), &found.history)?;
    let short = agent.get(&sent.id, Some(1)).await?;
    require("history of one", short.history.as_ref().is_some_and(|history| history.len() == 1), &short.history)
}

async fn list(agent: &Agent) -> Checked {
    let context = fresh();
    let (older, newer) = (completed(agent, Some(&context)).await?, completed(agent, Some(&context)).await?);
    let mut request = ListTasksRequest {
        context_id: Some(context),
        status: None,
        page_size: Some(1),
        page_token: None,
        history_length: None,
        status_timestamp_after: None,
        include_artifacts: None,
        tenant: None,
    };
    let page = agent.list(&request).await?;
    require("first page", page.tasks.iter().map(|task| &task.id).eq([&newer.id]), &page)?;
    require("sizes", (page.page_size, page.total_size) == (1, 2), &page)?;
    require("artifacts are left out", artifacts(&page.tasks[0]).is_empty(), &page.tasks)?;
    request.page_token = Some(page.next_page_token);
    request.include_artifacts = Some(true);
    let page = agent.list(&request).await?;
    require("second page", page.tasks.iter().map(|task| &task.id).eq([&older.id]), &page)?;
    require("artifacts", page.tasks[0].artifacts == older.artifacts, &page)?;
    require("no page after it", page.next_page_token.is_empty(), &page)
}

async fn running(agent: &Agent) -> Result<Task, Failure> {
    let task = agent.task("sleep 60000", Options { return_immediately: true, ..Options::default() }).await?;
    require("still running", matches!(task.status.state, TaskState::Submitted | TaskState::Working), &task.status)?;
    Ok(task)
}

async fn cancel(agent: &Agent) -> Checked {
    let task = running(agent).await?;
    let canceled = agent.cancel(&task.id).await?;
    require("answer", canceled.id == task.id && canceled.status.state == TaskState::Canceled, &canceled)?;
    let stored = agent.get(&task.id, None).await?;
    require("stored state", stored.status.state == TaskState::Canceled, &stored.status)
}

/// A subscription whose snapshot has arrived, so that whatever happens next must show up on it.
async fn subscribed(agent: &Agent, task: &Task) -> Result<Events, Failure> {
    let mut events = agent.subscribe(&task.id).await?;
    let first = events.next().await.ok_or("no event")??;
    require("first event", matches!(&first, StreamResponse::Task(snapshot) if snapshot.id == task.id), &first)?;
    Ok(events)
}

async fn refused_stream(agent: &Agent) -> Checked {
    let first = match agent.subscribe(&fresh()).await {
        Ok(mut events) => events.next().await.ok_or("a stream without an event")?,
        Err(error) => Err(error),
    };
    refused(first, error_code::TASK_NOT_FOUND)
}

async fn resubscribe(agent: &Agent) -> Checked {
    let task = running(agent).await?;
    let events = subscribed(agent, &task).await?;
    agent.cancel(&task.id).await?;
    ends_in(TaskState::Canceled, &events.try_collect::<Vec<_>>().await?)
}

async fn resubscribe_parked(agent: &Agent) -> Checked {
    let (task, answer) = asked(agent).await?;
    let events = subscribed(agent, &task).await?;
    agent.task("complete blue", answer).await?;
    let events: Vec<_> = events.try_collect().await?;
    let blue =
        |event: &StreamResponse| matches!(event, StreamResponse::ArtifactUpdate(a) if texts(&a.artifact.parts) == ["blue"]);
    require("artifact", events.iter().filter(|event| blue(event)).count() == 1, &events)?;
    ends_in(TaskState::Completed, &events)
}
