//! Nodes that share a database, and calls to them.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, NextEvents, RetentionConfig, Rulebook, Store, Subscription,
    SystemClock, TaskLimits,
};
use chancery_protocol::{
    AgentCard, CallContext, CancelTask, Error, GetTask, ListTasks, Message, Reply, Request, Role, SendConfiguration, SendMessage,
    Sent, SubscribeToTask, Task, TaskEvent, TaskId, TaskState,
};
use chancery_store::{PostgresOptions, PostgresStore};
use chancery_testkit::{PlainSeal, call_context};

use super::oracle::{LocalAgent, Oracle, RelayingAgent};
use crate::server::TestDatabase;

pub(super) const LEASE_MS: u64 = 2_000;

/// Longer than anything here takes, on a machine with much else to do.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct TestCluster {
    pub(super) database: TestDatabase,
    pub(super) oracle: Arc<Oracle>,
}

/// A control plane with agents `local` and `helper`, whose turns end with the node, and an agent `relay`, whose turns can be resumed.
pub(super) struct TestNode {
    pub(super) plane: Chancery,
}

impl TestCluster {
    pub(super) fn new() -> Self {
        Self { database: TestDatabase::make(), oracle: Oracle::new() }
    }

    pub(super) async fn node(&self, name: &'static str) -> TestNode {
        self.node_at(name, self.database.url()).await
    }

    pub(super) async fn node_at(&self, name: &'static str, url: String) -> TestNode {
        let options = PostgresOptions { lease_ms: LEASE_MS, ..PostgresOptions::at(url) };
        let store: Arc<dyn Store> = Arc::new(PostgresStore::join(options).await.unwrap());
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        let agent = |agent_name: &str, runner| Agent {
            name: agent_name.into(),
            card: Arc::new(card.clone()),
            extended: None,
            runner,
            exposed: true,
            enforces_input_modes: true,
        };
        let local = || LocalAgent { node: name, oracle: Arc::clone(&self.oracle) };
        let agents = Agents::new(agent("local", Arc::new(local())));
        let plane = Chancery::new(ChanceryParts {
            agents: agents.with(agent("relay", Arc::new(RelayingAgent(local())))).with(agent("helper", Arc::new(local()))),
            store,
            clock: Arc::new(SystemClock),
            seal: Arc::new(PlainSeal),
            limits: TaskLimits::default(),
            retention: RetentionConfig::default(),
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: None,
        });
        plane.recover().await.unwrap();
        TestNode { plane }
    }

    /// Nothing that a node may never do has happened.
    pub(super) fn assert_sound(&self) {
        assert_eq!(self.oracle.two_runners(), 0, "a task had two runners");
        assert!(self.oracle.asked().values().all(|times| *times == 1), "put twice: {:?}", self.oracle.asked());
    }
}

pub(super) fn context(agent: &str) -> CallContext {
    CallContext { agent: Some(agent.into()), ..call_context() }
}

fn message(text: &str, task: Option<&TaskId>) -> Message {
    Message { task_id: task.cloned(), ..Message::text(Role::User, format!("m-{text}"), text) }
}

impl TestNode {
    pub(super) async fn call(&self, context: &CallContext, request: Request) -> Result<Answer, Error> {
        tokio::time::timeout(PATIENCE, self.plane.call(context, request)).await.expect("a call took too long")
    }

    async fn sent(&self, context: &CallContext, text: &str, task: Option<&TaskId>, at_once: bool) -> Result<Arc<Task>, Error> {
        let configuration = SendConfiguration { return_immediately: at_once, ..SendConfiguration::default() };
        let send = SendMessage { configuration, ..SendMessage::new(message(text, task)) };
        match self.call(context, Request::SendMessage(send)).await? {
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a message and waits for the end of its turn.
    pub(super) async fn send(&self, agent: &str, text: &str, task: Option<&TaskId>) -> Result<Arc<Task>, Error> {
        self.sent(&context(agent), text, task, false).await
    }

    /// Sends a message and does not wait.
    pub(super) async fn begin(&self, agent: &str, text: &str) -> TaskId {
        self.sent(&context(agent), text, None, true).await.unwrap().id.clone()
    }

    /// Sends a message with an idempotency key and waits for the end of its turn.
    pub(super) async fn send_with_key(&self, agent: &str, text: &str, key: &str) -> Result<Arc<Task>, Error> {
        let context = CallContext { idempotency_key: Some(key.into()), ..context(agent) };
        self.sent(&context, text, None, false).await
    }

    pub(super) async fn get(&self, agent: &str, id: &TaskId) -> Arc<Task> {
        let get = GetTask { tenant: None, id: id.clone(), history_length: None };
        match self.call(&context(agent), Request::GetTask(get)).await.unwrap() {
            Answer::Reply(Reply::Task(shown)) | Answer::Large(Reply::Task(shown), _) => shown.task,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn list(&self, agent: &str) -> Vec<Arc<Task>> {
        match self.call(&context(agent), Request::ListTasks(ListTasks::default())).await.unwrap() {
            Answer::Reply(Reply::Tasks(page)) => page.tasks.into_iter().map(|shown| shown.task).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn cancel(&self, agent: &str, id: &TaskId) -> Result<Arc<Task>, Error> {
        let cancel = CancelTask { tenant: None, id: id.clone(), metadata: None };
        match self.call(&context(agent), Request::CancelTask(cancel)).await? {
            Answer::Reply(Reply::Task(shown)) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn subscribe(&self, agent: &str, id: &TaskId, seen: Option<u64>) -> Result<Subscription, Error> {
        self.subscribe_as(CallContext { last_event_id: seen, ..context(agent) }, id).await
    }

    pub(super) async fn subscribe_as(&self, context: CallContext, id: &TaskId) -> Result<Subscription, Error> {
        let subscribe = SubscribeToTask { tenant: None, id: id.clone() };
        match self.call(&context, Request::SubscribeToTask(subscribe)).await? {
            Answer::Stream(subscription) => Ok(*subscription),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the task is in a state, as this node answers.
    pub(super) async fn until(&self, agent: &str, id: &TaskId, state: TaskState) -> Arc<Task> {
        let looking = async {
            loop {
                let task = self.get(agent, id).await;
                if task.status.state == state {
                    return task;
                }
                assert!(!task.status.state.is_terminal(), "{task:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never {state:?}"))
    }

    /// The end of the process, without a word to anybody.
    pub(super) fn kill(self) {
        self.plane.abandon();
    }

    pub(super) async fn leave(self, patience: Duration) {
        self.plane.shut_down(patience).await.unwrap();
    }
}

/// Reads a stream to its end: the numbers of its events, and the state it ended with.
pub(super) async fn read(mut stream: Subscription, at_most: usize) -> Vec<u64> {
    let reading = async {
        let mut numbers = Vec::new();
        while numbers.len() < at_most {
            match stream.next().await.unwrap() {
                NextEvents::Events(events) => {
                    for entry in &events {
                        // A stream that opens with the task has the task in the place of what came before.
                        let opens = matches!(entry.event, TaskEvent::Created(_)) && numbers.is_empty() && entry.seq > 1;
                        if !opens {
                            numbers.push(entry.seq);
                        }
                    }
                }
                NextEvents::Done => break,
                NextEvents::ShuttingDown => panic!("the node shuts down"),
            }
        }
        numbers
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("a stream took too long")
}

/// Every number once and in order.
pub(super) fn assert_whole(numbers: &[u64], first: u64) {
    let expected: Vec<u64> = (first..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "gaps or repeats");
}

pub(super) fn reason(task: &Task) -> String {
    let message = task.status.message.as_ref();
    message.and_then(|message| message.first_text()).unwrap_or_default().to_owned()
}
