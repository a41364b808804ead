//! A service with one agent, and a caller.

use std::sync::Arc;

use chancery_core::{Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, RetentionConfig, Rulebook, TaskLimits, TaskRunner};
use chancery_protocol::{
    AgentCard, Binding, CallContext, Caller, CancelTask, Error, GetTask, Message, NamedTask, Part, Reply, Request, Role,
    SendConfiguration, SendMessage, Sent, Task, TaskId, Timestamp, TraceId, Version,
};
use chancery_store::MemoryStore;
use chancery_testkit::{ManualClock, PlainSeal};

pub(crate) struct Node(Chancery);

impl Node {
    pub(crate) fn new(runner: impl TaskRunner + 'static) -> Self {
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        Self(Chancery::new(ChanceryParts {
            agents: Agents::new(Agent {
                name: "agent".into(),
                card: Arc::new(card),
                extended: None,
                runner: Arc::new(runner),
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
        }))
    }

    async fn call(&self, request: Request) -> Result<Answer, Error> {
        let context = CallContext {
            version: Version::V1_0,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller: Caller::new("house", "ada"),
            standing: Arc::default(),
            agent: None,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace: TraceId(0xab),
            span: None,
            tracestate: None,
            hop_token: None,
            within: None,
            via: None,
            unlisted_at: None,
        };
        self.0.call(&context, request).await
    }

    /// Sends parts and answers the task, once its turn is over or, if nobody waits, at once.
    pub(crate) async fn send(&self, parts: Vec<Part>, task: Option<&TaskId>, waits: bool) -> Arc<Task> {
        let message = Message { task_id: task.cloned(), ..Message::of_parts(Role::User, "m", parts) };
        let send = SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration { return_immediately: !waits, ..SendConfiguration::default() },
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        };
        match self.call(Request::SendMessage(send)).await {
            Ok(Answer::Reply(Reply::Sent(Sent::Task(NamedTask { task, .. })))) => task,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn say(&self, text: &str) -> Arc<Task> {
        self.send(vec![Part::text(text)], None, true).await
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Arc<Task> {
        match self.call(Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None })).await {
            Ok(Answer::Reply(Reply::Task(shown))) => shown.task,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Arc<Task> {
        match self.call(Request::CancelTask(CancelTask { tenant: None, id: id.clone(), metadata: None })).await {
            Ok(Answer::Reply(Reply::Task(shown))) => shown.task,
            other => panic!("{other:?}"),
        }
    }
}

/// What the status of a task says.
pub(crate) fn reason(task: &Task) -> &str {
    task.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default()
}
