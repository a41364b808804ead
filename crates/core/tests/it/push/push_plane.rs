//! A control plane with webhooks over a store in memory, and what a test does with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::notify::{Engine, EngineConfig, EngineParts, SlotLimits};
use chancery_core::push::{
    Lane, LaneFilter, Outbox, PushEvents, PushLimits, PushParts, PushTarget, PushTargets, SealedSecret, SecretBytes, Vault,
};
use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Clock, Dedupe, Finished, RetentionConfig, Rulebook, RunError, Store,
    TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
use chancery_protocol::{
    AgentCard, Artifact, Error, Message, Part, PushConfig, PushConfigRef, Reply, Request, Role, SendConfiguration, SendMessage,
    Sent, Task, TaskId, Timestamp,
};
use chancery_store::MemoryStore;
use chancery_testkit::{PlainSeal, call_context};
use tokio::time::Instant;

use super::network::{EXCHANGE, Network, Stamp};

/// Goes with tokio's time, which stands still until everybody waits, and can be set.
#[derive(Debug)]
pub(crate) struct TokioClock {
    began: Instant,
    set_by_seconds: AtomicI64,
}

impl TokioClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), set_by_seconds: AtomicI64::new(0) })
    }

    pub(crate) fn set_by(&self, seconds: i64) {
        self.set_by_seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let set_by = self.set_by_seconds.load(Ordering::Relaxed);
        Timestamp::from_micros((1_000_000 + set_by) * 1_000_000) + self.began.elapsed()
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// `PIECES [PAUSE_MS] [ask]`: so many pieces of one artifact, with a pause after each, and an end.
struct PieceRunner;

#[async_trait]
impl TaskRunner for PieceRunner {
    async fn run(&self, turn: Turn, mut updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let mut words = turn.message.first_text().unwrap_or_default().split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let (pieces, pause) = (number(), Duration::from_millis(number()));
        for piece in 0..pieces {
            let artifact = Artifact::new("a", vec![Part::text(format!("{piece};"))]);
            updates.chunk(artifact, piece > 0, piece + 1 == pieces).await?;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        match words.next() {
            Some("ask") => {
                let question = updates.text("more?");
                Ok(updates.input_required(question))
            }
            _ => Ok(updates.complete(None)),
        }
    }
}

/// Hides nothing; what is hidden from whom is tested where it is done.
#[derive(Debug, Default)]
pub(crate) struct OpenVault {
    /// Nothing can be opened any more.
    pub(crate) lost: AtomicBool,
}

impl Vault for OpenVault {
    fn current(&self) -> Arc<str> {
        "none".into()
    }

    fn seal(&self, _: &[u8], plain: &[u8]) -> SealedSecret {
        SealedSecret { kek_id: "none".into(), bytes: plain.into() }
    }

    fn open(&self, _: &[u8], sealed: &SealedSecret) -> Option<SecretBytes> {
        (!self.lost.load(Ordering::Relaxed)).then(|| SecretBytes::new(Arc::clone(&sealed.bytes)))
    }
}

/// Everything up to the path is the origin.
#[derive(Debug)]
struct AnyTarget;

impl PushTargets for AnyTarget {
    fn judge(&self, url: &str) -> Result<PushTarget, String> {
        let host = url.strip_prefix("https://").ok_or("not https")?.split('/').next().unwrap_or_default();
        // Receivers by that name are told of states only.
        let events = host.starts_with("status").then_some(PushEvents::Status);
        Ok(PushTarget { origin: format!("https://{host}:443").into(), profile: None, events })
    }

    fn judge_scheme(&self, _: &str, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }
}

pub(crate) struct PushPlane {
    pub(crate) chancery: Chancery,
    pub(crate) engine: Arc<Engine>,
    pub(crate) network: Arc<Network>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) vault: Arc<OpenVault>,
    pub(crate) clock: Arc<TokioClock>,
}

/// Nobody rations tests, unless they say so.
pub(crate) fn config() -> EngineConfig {
    let slots = SlotLimits { host_requests_per_second: 0, ..SlotLimits::default() };
    EngineConfig { exchange: EXCHANGE, slots, ..EngineConfig::default() }
}

impl PushPlane {
    pub(crate) fn new(network: Arc<Network>) -> Self {
        Self::with(network, config())
    }

    pub(crate) fn with(network: Arc<Network>, config: EngineConfig) -> Self {
        Self::over(Arc::new(MemoryStore::new()), network, config)
    }

    /// What an engine before this one left in the store is found there.
    pub(crate) fn over(store: Arc<MemoryStore>, network: Arc<Network>, config: EngineConfig) -> Self {
        Self::built(store.clone(), store, network, config)
    }

    /// With an outbox that stands before the store.
    pub(crate) fn built(store: Arc<dyn Store>, outbox: Arc<dyn Outbox>, network: Arc<Network>, config: EngineConfig) -> Self {
        let vault = Arc::<OpenVault>::default();
        let clock = TokioClock::new();
        let card = AgentCard { default_input_modes: vec!["*/*".into()], ..AgentCard::default() };
        let runner = Arc::new(PieceRunner);
        let agent = Agent {
            name: "agent".into(),
            card: Arc::new(card),
            extended: None,
            runner,
            exposed: true,
            enforces_input_modes: true,
        };
        let limits = PushLimits { configs_per_task: 100, configs_per_tenant: 100_000, ..PushLimits::default() };
        let chancery = Chancery::new(ChanceryParts {
            agents: Agents::new(agent),
            store,
            clock: clock.clone(),
            seal: Arc::new(PlainSeal),
            limits: TaskLimits { task_events: 2_000_000, task_bytes: 1 << 32, ..TaskLimits::default() },
            retention: RetentionConfig::default(),
            dedupe: Dedupe::Off,
            rules: Rulebook::default(),
            hops: None,
            push: Some(PushParts {
                outbox: Arc::clone(&outbox),
                vault: vault.clone(),
                targets: Arc::new(AnyTarget),
                limits,
                show_secrets: false,
                snapshot: false,
            }),
        });
        let parts = EngineParts { courier: network.clone(), notary: Arc::new(Stamp), vault: vault.clone(), config };
        let engine = Engine::new(&chancery, parts).expect("there is an outbox");
        Self { chancery, engine, network, outbox, vault, clock }
    }

    pub(crate) fn start(&self) -> tokio::task::JoinHandle<()> {
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move { engine.run().await })
    }

    /// A task with a webhook from its beginning, after its turn.
    pub(crate) async fn task(&self, text: &str, url: &str) -> Arc<Task> {
        self.send(text, None, Some(url), false).await
    }

    pub(crate) async fn begun(&self, text: &str, url: &str) -> Arc<Task> {
        self.send(text, None, Some(url), true).await
    }

    pub(crate) async fn send(&self, text: &str, task: Option<TaskId>, url: Option<&str>, immediately: bool) -> Arc<Task> {
        self.try_send(text, task, url, immediately).await.unwrap()
    }

    pub(crate) async fn try_send(
        &self,
        text: &str,
        task: Option<TaskId>,
        url: Option<&str>,
        immediately: bool,
    ) -> Result<Arc<Task>, Error> {
        let message = Message { task_id: task, ..Message::text(Role::User, "m", text) };
        let configuration = SendConfiguration {
            return_immediately: immediately,
            task_push_notification_config: url.map(push_config).map(Box::new),
            ..SendConfiguration::default()
        };
        let send = SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration,
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        };
        match self.chancery.call(&call_context(), Request::SendMessage(send)).await? {
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn unregister(&self, task: &TaskId, id: &str) {
        let which = PushConfigRef { tenant: None, task_id: task.clone(), id: Some(id.to_owned()) };
        self.chancery.call(&call_context(), Request::DeletePushConfig(which)).await.unwrap();
    }

    pub(crate) async fn lanes(&self) -> Vec<Lane> {
        self.outbox.lanes(&LaneFilter::default(), 0, 100_000).await.unwrap().lanes
    }

    pub(crate) async fn lane(&self, task: &TaskId) -> Lane {
        let filter = LaneFilter { task: Some(task.clone()), ..LaneFilter::default() };
        self.outbox.lanes(&filter, 0, 1).await.unwrap().lanes.remove(0)
    }

    /// Until nothing is due any more or `most` has passed. Answers whether nothing is.
    pub(crate) async fn drained(&self, most: Duration) -> bool {
        let end = Instant::now() + most;
        while Instant::now() < end {
            if self.lanes().await.iter().all(|lane| !lane.cursor.is_pending()) && self.network.under_way() == 0 {
                return true;
            }
            tokio::time::sleep((most / 4_000).max(Duration::from_millis(10))).await;
        }
        false
    }
}

/// Receivers at `/secret` have a token.
fn push_config(url: &str) -> PushConfig {
    let token = url.ends_with("/secret").then(|| "token".to_owned());
    PushConfig { tenant: None, id: None, task_id: None, url: url.to_owned(), token, authentication: None }
}
