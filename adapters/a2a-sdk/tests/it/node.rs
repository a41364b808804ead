//! A service with the scripted executor as its agent, and a caller.

use std::sync::Arc;

use chancery_a2a_sdk::SdkRunner;
use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, LogEntry, NextEvents, RetentionConfig, Rulebook, Subscription,
    TaskLimits,
};
use chancery_protocol::{
    AgentCard, Binding, CallContext, Caller, CancelTask, Error, GetTask, Message, Metadata, NamedTask, Reply, Request, Role,
    SendConfiguration, SendMessage, Sent, SubscribeToTask, Task, TaskEvent, TaskId, TaskState, Timestamp, TraceId, Version,
};
use chancery_store::MemoryStore;
use chancery_testkit::{ManualClock, PlainSeal};
use tokio::sync::{Mutex, Notify, mpsc};

use crate::executor::{Heard, Scripted};

pub(crate) struct Node {
    chancery: Chancery,
    heard: Mutex<mpsc::UnboundedReceiver<Heard>>,
    pub(crate) released: Arc<Notify>,
}

impl Node {
    pub(crate) fn new() -> Self {
        let (executor, heard) = Scripted::new();
        let released = Arc::clone(&executor.released);
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        let runner = Arc::new(SdkRunner::new(executor));
        let chancery = Chancery::new(ChanceryParts {
            agents: Agents::new(Agent {
                name: "scripted".into(),
                card: Arc::new(card),
                extended: None,
                runner,
                exposed: true,
                enforces_input_modes: true,
            }),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000))),
            seal: Arc::new(PlainSeal),
            limits: TaskLimits::default(),
            retention: RetentionConfig::default(),
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: None,
        });
        Self { chancery, heard, released }
    }

    /// The executor's next call.
    pub(crate) async fn heard(&self) -> Heard {
        self.heard.lock().await.recv().await.expect("the executor is there")
    }

    async fn call(&self, version: Version, request: Request) -> Result<Answer, Error> {
        let context = CallContext {
            version,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller: Caller::new("house", "ada"),
            standing: Arc::default(),
            agent: None,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace: TraceId(1),
            span: None,
            tracestate: None,
            hop_token: None,
            within: None,
            via: None,
            unlisted_at: None,
        };
        self.chancery.call(&context, request).await
    }

    pub(crate) async fn sent(&self, version: Version, send: SendMessage) -> Sent {
        match self.call(version, Request::SendMessage(send)).await {
            Ok(Answer::Reply(Reply::Sent(sent))) => sent,
            other => panic!("{other:?}"),
        }
    }

    /// Sends and waits for the turn to be over.
    pub(crate) async fn send(&self, text: &str) -> Arc<Task> {
        self.send_on(text, None).await
    }

    pub(crate) async fn send_on(&self, text: &str, task: Option<&TaskId>) -> Arc<Task> {
        task_of(self.sent(Version::V1_0, saying(text, task, false)).await)
    }

    /// Sends and does not wait for more than the executor's first word.
    pub(crate) async fn start(&self, text: &str) -> TaskId {
        task_of(self.sent(Version::V1_0, saying(text, None, true)).await).id.clone()
    }

    pub(crate) async fn stream(&self, text: &str) -> Subscription {
        match self.call(Version::V1_0, Request::StreamMessage(saying(text, None, false))).await {
            Ok(Answer::Stream(stream)) => *stream,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn subscribe(&self, id: &TaskId) -> Subscription {
        match self.call(Version::V1_0, Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.clone() })).await {
            Ok(Answer::Stream(stream)) => *stream,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Arc<Task> {
        match self.call(Version::V1_0, Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None })).await {
            Ok(Answer::Reply(Reply::Task(shown))) => shown.task,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Arc<Task>, Error> {
        match self.call(Version::V1_0, Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None })).await? {
            Answer::Reply(Reply::Task(NamedTask { task, .. })) => Ok(task),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn saying(text: &str, task: Option<&TaskId>, return_immediately: bool) -> SendMessage {
    let message = Message { task_id: task.cloned(), ..Message::text(Role::User, "m", text) };
    let metadata = Metadata::from_object([("from".to_owned(), "the test".into())].into_iter().collect());
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration { return_immediately, ..SendConfiguration::default() },
        metadata: Some(metadata),
        client_task_id: None,
        unknown: Default::default(),
    }
}

fn task_of(sent: Sent) -> Arc<Task> {
    match sent {
        Sent::Task(shown) => shown.task,
        Sent::Message(message) => panic!("a message instead of a task: {message:?}"),
    }
}

/// All that a stream still shows.
pub(crate) async fn rest(mut stream: Subscription) -> Vec<Arc<LogEntry>> {
    let mut seen = Vec::new();
    while let NextEvents::Events(entries) = stream.next().await.expect("a stream that ends well") {
        seen.extend(entries);
    }
    seen
}

/// A stream in short: states, pieces of artifacts, messages.
pub(crate) fn outline(entries: &[Arc<LogEntry>]) -> Vec<String> {
    let line = |entry: &Arc<LogEntry>| match &entry.event {
        TaskEvent::Created(task) => format!("task {:?}", task.status.state),
        TaskEvent::Said(message) => format!("said {}", message.first_text().unwrap_or_default()),
        TaskEvent::Status(change) => {
            let text = change.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or("-");
            format!("{:?} {text}", change.status.state)
        }
        TaskEvent::Artifact(chunk) => {
            let text = chunk.artifact.parts[0].as_text().unwrap_or_default();
            let (how, end) = (if chunk.append { "+" } else { "=" }, if chunk.last_chunk { "." } else { "" });
            format!("{}{how}{text}{end}", chunk.artifact.artifact_id)
        }
        TaskEvent::Replied(message) => format!("reply {}", message.first_text().unwrap_or_default()),
    };
    entries.iter().map(line).collect()
}

/// State and words of a task's status.
pub(crate) fn status(task: &Task) -> (TaskState, Option<&str>) {
    (task.status.state, task.status.message.as_ref().and_then(|message| message.first_text()))
}

/// The conversation so far.
pub(crate) fn history(task: &Task) -> Vec<&str> {
    task.history.iter().filter_map(|message| message.first_text()).collect()
}
