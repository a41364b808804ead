//! The service without doors, over a store that counts what is asked of it and a clock that tests move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chancery::config::TaskLimits;
use chancery::{AgentCard, TaskRunner, new_card};
use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Clock, Dedupe, LogEntry, NextEvents, RetentionConfig, Rulebook, Seal, Store,
    Subscription,
};
use chancery_identity::SealKey;
use chancery_protocol::{
    Binding, CallContext, Caller, Error, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, SubscribeToTask,
    Task, TaskId, Timestamp, TraceId, Version,
};
use chancery_testkit::HookedStore;

/// Stands still until it is moved.
#[derive(Debug)]
pub(crate) struct HandClock(AtomicI64);

impl HandClock {
    pub(crate) fn move_on(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.load(Ordering::SeqCst)).unwrap_or(0))
    }
}

#[derive(Debug)]
struct TestSeal(SealKey);

impl Seal for TestSeal {
    fn seal(&self, purpose: &str, content: &[u8]) -> String {
        self.0.seal(purpose, content)
    }

    fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
        self.0.open(purpose, token)
    }

    fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
        self.0.mark(purpose, content)
    }

    fn digest(&self, content: &[u8]) -> [u8; 32] {
        SealKey::digest(content)
    }
}

pub(crate) struct BareService {
    pub(crate) chancery: Chancery,
    pub(crate) store: Arc<HookedStore>,
    pub(crate) clock: Arc<HandClock>,
}

fn card() -> AgentCard {
    new_card("Bare service", "For tests")
}

impl BareService {
    pub(crate) fn new(store: impl Store + 'static, runner: Arc<dyn TaskRunner>, limits: TaskLimits) -> Self {
        let store = Arc::new(HookedStore::over(store));
        let clock = Arc::new(HandClock(AtomicI64::new(1_800_000_000_000_000)));
        let chancery = Chancery::new(ChanceryParts {
            agents: Agents::new(Agent {
                name: "workshop".into(),
                card: Arc::new(card()),
                extended: None,
                runner,
                exposed: true,
                enforces_input_modes: true,
            }),
            store: store.clone(),
            clock: clock.clone(),
            seal: Arc::new(TestSeal(SealKey::new(&[7; SealKey::BYTES]).expect("32 bytes"))),
            limits,
            retention: RetentionConfig::default(),
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: None,
        });
        Self { chancery, store, clock }
    }

    pub(crate) fn context() -> CallContext {
        CallContext {
            version: Version::V1_0,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller: Caller::new("default", "tester"),
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
        }
    }

    fn message(text: &str, immediately: bool) -> SendMessage {
        SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "m", text)),
            configuration: SendConfiguration { return_immediately: immediately, ..SendConfiguration::default() },
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        }
    }

    pub(crate) async fn send_with(&self, context: &CallContext, text: &str, immediately: bool) -> Result<Arc<Task>, Error> {
        match self.chancery.call(context, Request::SendMessage(Self::message(text, immediately))).await? {
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => Ok(shown.task),
            other => panic!("a task was asked for: {other:?}"),
        }
    }

    pub(crate) async fn send(&self, text: &str) -> Arc<Task> {
        self.send_with(&Self::context(), text, false).await.expect("a task")
    }

    pub(crate) async fn stream(&self, text: &str) -> Box<Subscription> {
        stream_of(self.chancery.call(&Self::context(), Request::StreamMessage(Self::message(text, false))).await)
    }

    pub(crate) async fn subscribe(&self, id: &TaskId) -> Box<Subscription> {
        let request = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: id.clone() });
        stream_of(self.chancery.call(&Self::context(), request).await)
    }
}

fn stream_of(answer: Result<Answer, Error>) -> Box<Subscription> {
    match answer {
        Ok(Answer::Stream(subscription)) => subscription,
        other => panic!("a stream was asked for: {other:?}"),
    }
}

/// Every event up to the end of the stream.
pub(crate) async fn all_events(mut subscription: Box<Subscription>) -> Vec<Arc<LogEntry>> {
    let mut all = Vec::new();
    while let NextEvents::Events(events) = subscription.next().await.expect("events") {
        all.extend(events);
    }
    all
}
