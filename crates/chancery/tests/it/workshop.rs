//! The service without doors, over a store that counts what is asked of it and a clock that tests move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chancery::{AgentCard, TaskLimits, TaskRunner, new_card};
use chancery_core::{
    Agent, Agents, Answer, Append, Appended, Chancery, Clock, Decision, Dedupe, Freeze, FreezeScope, Governed, Keyed, Ledger,
    LedgerRow, Link, ListCursor, ListFilter, Listed, LogEntry, Names, Next, Note, Parts, RetentionConfig, Rulebook, Seal, Spend,
    Store, StoreError, Stored, Subscription, SweepPlan,
};
use chancery_identity::SealKey;
use chancery_protocol::{
    AgentName, Binding, CallContext, Caller, ContextId, Error, Message, Reply, Request, Role, SendConfiguration, SendMessage,
    Sent, SubscribeToTask, Task, TaskId, Timestamp, TraceId, Version,
};
use tokio::sync::Semaphore;

/// Hands everything on, and counts.
#[derive(Debug)]
pub(crate) struct CountingStore {
    inner: Arc<dyn Store>,
    reads: AtomicU64,
    entries_read: AtomicU64,
    /// One permit lets one append through.
    gate: Semaphore,
}

impl CountingStore {
    /// Finds, lists and log reads so far.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Log entries handed out so far.
    pub(crate) fn entries_read(&self) -> u64 {
        self.entries_read.load(Ordering::SeqCst)
    }

    /// From now on, every append waits for `admit`.
    pub(crate) fn close_gate(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn admit(&self, appends: usize) {
        self.gate.add_permits(appends);
    }

    fn one_read(&self) {
        self.reads.fetch_add(1, Ordering::SeqCst);
    }
}

#[chancery::async_trait]
impl Store for CountingStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        self.gate.acquire().await.expect("the gate stays").forget();
        self.inner.append(append).await
    }

    async fn withdraw(&self, task: &TaskId, note: Option<Note>) -> Result<bool, StoreError> {
        self.inner.withdraw(task, note).await
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        self.one_read();
        self.inner.find(owner, id, names).await
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        self.one_read();
        self.inner.keyed(owner, key, now).await
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        self.one_read();
        self.inner.find_any(id).await
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        self.inner.link(task).await
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        self.inner.context_link(owner, agent, context).await
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        self.one_read();
        let entries = self.inner.entries(task, after, limit).await?;
        self.entries_read.fetch_add(entries.len() as u64, Ordering::SeqCst);
        Ok(entries)
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Listed, StoreError> {
        self.one_read();
        self.inner.list(filter, after, limit).await
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        self.inner.unfinished().await
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        self.inner.governed(task).await
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        self.inner.tree(root).await
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        self.inner.roots(trace).await
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<Ledger, StoreError> {
        self.inner.ledger(settled_since).await
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        self.inner.settle(task, spend).await
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        self.inner.decide(decision).await
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        self.inner.decision(id).await
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions_of(task).await
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions(limit).await
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        self.inner.freezes().await
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        self.inner.freeze(freeze).await
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<Note>) -> Result<bool, StoreError> {
        self.inner.thaw(scope, note).await
    }

    async fn sweep(&self, plan: SweepPlan, now: Timestamp) -> Result<u64, StoreError> {
        self.inner.sweep(plan, now).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn close(&self, patience: Duration) -> Result<(), StoreError> {
        self.inner.close(patience).await
    }
}

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

pub(crate) struct Workshop {
    pub(crate) chancery: Chancery,
    pub(crate) store: Arc<CountingStore>,
    pub(crate) clock: Arc<HandClock>,
}

fn card() -> AgentCard {
    new_card("Workshop", "For tests")
}

impl Workshop {
    pub(crate) fn new(store: impl Store + 'static, runner: Arc<dyn TaskRunner>, limits: TaskLimits) -> Self {
        let (reads, entries_read) = (AtomicU64::new(0), AtomicU64::new(0));
        let store = Arc::new(CountingStore { inner: Arc::new(store), reads, entries_read, gate: Semaphore::new(1_000_000) });
        let clock = Arc::new(HandClock(AtomicI64::new(1_800_000_000_000_000)));
        let chancery = Chancery::new(Parts {
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
            tracestate: None,
            hop_token: None,
            within: None,
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
    while let Next::Events(events) = subscription.next().await.expect("events") {
        all.extend(events);
    }
    all
}
