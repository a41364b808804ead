//! The one way in. Every transport turns bytes into these two values and an answer back into bytes.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use chancery_protocol::{AgentCard, CallContext, Error, ErrorKind, IdentityProof, Reply, Request, Timestamp};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::addresses::Addresses;
use crate::agent_identities::AgentIdentities;
use crate::agents::{Agent, Agents};
use crate::answering::{AnswerLedger, AnswerPermit};
use crate::artifacts::PartStore;
use crate::cluster::membership::Membership;
use crate::govern::marks::TraceMarks;
use crate::govern::{Governance, Rulebook};
use crate::grant::granted;
use crate::key_quota::KeyQuota;
use crate::late_reply::LateReply;
use crate::limits::TaskLimits;
use crate::list::PageReader;
use crate::local_turns::LocalTurns;
use crate::open_tasks::OpenTasks;
use crate::publish::Subscription;
use crate::push::{Notifier, Outbox, PushParts, PushService};
use crate::recall::SharedMemory;
use crate::retention::{Retention, RetentionConfig};
use crate::skill_route::SkillRouting;
use crate::streams::{Streams, streams_offered};
use crate::tracker::LoopTracker;
use crate::{Clock, HopTokenService, Record, RecordNote, Seal, Store};

/// Streams that read from the log at the same time.
const LOG_READS: usize = 4;

/// What a call comes back with.
#[derive(Debug)]
pub enum Answer {
    /// A whole reply.
    Reply(Reply),
    /// A reply of many bytes, with the room it has among those that are being answered.
    Large(Reply, AnswerPermit),
    /// A page of a list, to be read task by task.
    Page(Box<PageReader>),
    /// The events of a task, as they come.
    Stream(Box<Subscription>),
    /// The reply to a blocking send that was not there at the deadline of `call_until`.
    Late(Box<LateReply>),
}

/// Repeated `messageId`s are normal traffic; an operator may decide otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// A repeated message id has no effect.
    #[default]
    Off,
    /// A message id from the same caller is taken for an idempotency key.
    MessageId,
}

/// What a control plane is made of.
#[derive(Debug)]
pub struct ChanceryParts {
    /// The agents.
    pub agents: Agents,
    /// The store of tasks, decisions and budgets.
    pub store: Arc<dyn Store>,
    /// The clock of timestamps, budgets, retention and tokens.
    pub clock: Arc<dyn Clock>,
    /// The key that seals page tokens, context ids and addresses.
    pub seal: Arc<dyn Seal>,
    /// The limits of tasks and streams.
    pub limits: TaskLimits,
    /// When ended tasks are deleted.
    pub retention: RetentionConfig,
    /// Whether a repeated message id attaches to its first task.
    pub dedupe: Dedupe,
    /// What governs calls.
    pub rules: Rulebook,
    /// Makes and reads hop tokens. Without it the node sends none, and treats received tokens as those of
    /// other nodes.
    pub hops: Option<Arc<dyn HopTokenService>>,
    /// The parts of webhooks. Without it the node has no webhooks.
    pub push: Option<PushParts>,
}

/// The control plane. Cheap to clone; all clones are the same one.
#[derive(Clone, Debug)]
pub struct Chancery(pub(crate) Arc<ChanceryInner>);

#[derive(Debug)]
pub(crate) struct ChanceryInner {
    pub(crate) agents: ArcSwap<Agents>,
    pub(crate) store: Arc<dyn Store>,
    /// The place among the nodes that share the store, if several can.
    pub(crate) cluster: Option<Membership>,
    /// The store's record, if it keeps one.
    pub(crate) record: Option<Arc<dyn Record>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seal: Arc<dyn Seal>,
    pub(crate) addresses: Addresses,
    pub(crate) marks: TraceMarks,
    pub(crate) limits: ArcSwap<TaskLimits>,
    pub(crate) dedupe: ArcSwap<Dedupe>,
    pub(crate) skill_routing: ArcSwap<SkillRouting>,
    pub(crate) local_turns: Arc<LocalTurns>,
    pub(crate) govern: Arc<Governance>,
    pub(crate) hops: Option<Arc<dyn HopTokenService>>,
    pub(crate) push: Option<PushService>,
    pub(crate) retention: Retention,
    pub(crate) key_quota: Arc<KeyQuota>,
    pub(crate) memory: OnceLock<Arc<dyn SharedMemory>>,
    pub(crate) identities: OnceLock<Arc<dyn AgentIdentities>>,
    pub(crate) part_store: Arc<OnceLock<Arc<dyn PartStore>>>,
    pub(crate) open: Arc<OpenTasks>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) answering: AnswerLedger,
    /// How many streams may read from the log at once, so that those far behind do not hold much of it in memory.
    pub(crate) log_reads: Semaphore,
    /// Large tasks are opened one after the other.
    pub(crate) large_reads: Semaphore,
    /// Turns and recordings that outlive the call that began them.
    pub(crate) background: TaskTracker,
    /// Loops that run as long as the node does.
    pub(crate) loops: LoopTracker,
    /// Fires when the node is dropped without a stop: turns end where they are, as at the end of the process.
    pub(crate) abandoned: CancellationToken,
    /// Counts tasks that came with a name of their client's choice, for readers that wait for one.
    pub(crate) named: watch::Sender<u64>,
    /// Fires when the node stops: streams close, with an id to resume from.
    pub(crate) shutdown: CancellationToken,
    /// Why the node works no more although its process goes on.
    pub(crate) retired: OnceLock<Arc<str>>,
}

impl Chancery {
    /// Starts a control plane. [`recover`](Self::recover) must run before the first call.
    pub fn new(parts: ChanceryParts) -> Self {
        Self(Arc::new(ChanceryInner {
            agents: ArcSwap::from_pointee(parts.agents),
            cluster: parts.store.cluster().map(|port| Membership::new(port, Arc::clone(&parts.clock))),
            record: parts.store.record(),
            store: parts.store,
            govern: Arc::new(Governance::new(parts.rules, Arc::clone(&parts.clock))),
            clock: parts.clock,
            addresses: Addresses::new(Arc::clone(&parts.seal)),
            marks: TraceMarks::new(Arc::clone(&parts.seal)),
            seal: parts.seal,
            limits: ArcSwap::from_pointee(parts.limits),
            dedupe: ArcSwap::from_pointee(parts.dedupe),
            skill_routing: ArcSwap::default(),
            local_turns: Arc::default(),
            hops: parts.hops,
            push: parts.push.map(PushService::new),
            retention: Retention::new(parts.retention),
            key_quota: Arc::default(),
            memory: OnceLock::new(),
            identities: OnceLock::new(),
            part_store: Arc::default(),
            open: Arc::default(),
            streams: Arc::default(),
            answering: AnswerLedger::default(),
            log_reads: Semaphore::new(LOG_READS),
            large_reads: Semaphore::new(1),
            background: TaskTracker::new(),
            loops: LoopTracker::default(),
            abandoned: CancellationToken::new(),
            named: watch::Sender::new(0),
            shutdown: CancellationToken::new(),
            retired: OnceLock::new(),
        }))
    }

    /// Answers a call, or says why not. The answer is whole: for callers inside of this process.
    pub async fn call(&self, context: &CallContext, request: Request) -> Result<Answer, Error> {
        Ok(match self.call_until(context, request, None).await? {
            Answer::Large(reply, _) => Answer::Reply(reply),
            Answer::Page(page) => Answer::Reply(Reply::Tasks(Box::pin(page.collect()).await.0)),
            other => other,
        })
    }

    /// Answers a call. A blocking send whose task is recorded and has not settled at `deadline` is answered with
    /// `Answer::Late`; every other call takes the time it takes.
    pub async fn call_until(&self, context: &CallContext, request: Request, deadline: Option<Instant>) -> Result<Answer, Error> {
        let inner = &self.0;
        if inner.shutdown.is_cancelled() {
            return Err(inner.closed());
        }
        let agent = &inner.route(context, &request).await?;
        granted(context, &agent.name, &request)?;
        streams_offered(context, agent, &request)?;
        // A blocking send is what most calls are; the rest is boxed so that it stays small.
        let answer = match request {
            Request::SendMessage(send) => inner.send(context, agent, send, deadline).await,
            Request::StreamMessage(send) => Box::pin(inner.stream(context, agent, send)).await.map(Answer::from),
            Request::GetTask(get) => Box::pin(inner.get(context, agent, get)).await,
            Request::ListTasks(list) => Box::pin(inner.list(context, agent, list)).await.map(|page| Answer::Page(Box::new(page))),
            Request::CancelTask(cancel) => Box::pin(inner.cancel(context, agent, cancel)).await,
            Request::SubscribeToTask(subscribe) => Box::pin(inner.subscribe(context, agent, subscribe)).await.map(Answer::from),
            Request::CreatePushConfig(config) => {
                let created = Box::pin(inner.create_push_config(context, agent, config)).await;
                created.map(|config| Answer::Reply(Reply::PushConfig(config)))
            }
            Request::GetPushConfig(which) => {
                let found = Box::pin(inner.push_config(context, agent, which)).await;
                found.map(|config| Answer::Reply(Reply::PushConfig(config)))
            }
            Request::ListPushConfigs(list) => {
                Box::pin(inner.push_configs(context, agent, list)).await.map(|page| Answer::Reply(Reply::PushConfigs(page)))
            }
            Request::DeletePushConfig(which) => {
                let deleted = Box::pin(inner.delete_push_config(context, agent, which)).await;
                deleted.map(|()| Answer::Reply(Reply::PushConfigDeleted))
            }
            Request::GetExtendedCard(_) => extended_card(context, agent).map(|card| Answer::Reply(Reply::Card(card))),
        };
        match inner.offloading_part_store() {
            Some(part_store) => Box::pin(inner.restore_answer(part_store, context, answer?)).await,
            None => answer,
        }
    }

    /// Returns the agents that new calls can reach.
    pub fn agents(&self) -> Arc<Agents> {
        self.0.agents.load_full()
    }

    /// Calls that come from now on see these agents. Turns that run go on with the one they began with.
    pub fn set_agents(&self, agents: Agents) {
        self.0.agents.store(Arc::new(agents));
    }

    /// Calls that come from now on are governed by these rules. What was spent stays spent.
    pub fn set_rules(&self, rules: Rulebook) {
        self.0.govern.set_rules(rules);
    }

    /// Shows the rules that calls are governed by now.
    pub fn look_at_rules<T>(&self, look: impl FnOnce(&Rulebook) -> T) -> T {
        look(&self.0.govern.rules.load())
    }

    /// The `tracestate` of a notification: calls of its receiver are no part of the tree.
    pub fn tracestate_of_notifications(&self) -> String {
        self.0.marks.detached()
    }

    /// Calls that come from now on are held to these; turns that run, to those they began with.
    pub fn set_limits(&self, limits: TaskLimits) {
        self.0.limits.store(Arc::new(limits));
    }

    /// Turns that begin from now on can look at it. The first one given stays.
    pub fn set_memory(&self, memory: Arc<dyn SharedMemory>) {
        let _ = self.0.memory.set(memory);
    }

    /// Sets how repeated message ids of later calls are treated.
    pub fn set_dedupe(&self, dedupe: Dedupe) {
        self.0.dedupe.store(Arc::new(dedupe));
    }

    /// The next sweep uses this.
    pub fn set_retention(&self, retention: RetentionConfig) {
        self.0.retention.set(retention);
    }

    /// The current time by the node's clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Where webhooks are kept and what wakes their deliveries, if there are any.
    pub fn outbox(&self) -> Option<(Arc<dyn Outbox>, Arc<Notifier>)> {
        self.0.push.as_ref().map(|push| (Arc::clone(&push.outbox), Arc::clone(&push.notifier)))
    }

    /// What ended tasks are forgotten by now.
    pub fn retention(&self) -> Arc<RetentionConfig> {
        self.0.retention.config.load_full()
    }

    /// Returns how repeated message ids are treated.
    pub fn dedupe(&self) -> Dedupe {
        **self.0.dedupe.load()
    }

    /// Returns the limits of tasks and streams.
    pub fn limits(&self) -> Arc<TaskLimits> {
        self.0.limits.load_full()
    }

    /// Changes whenever a client of the original protocol has named a new task.
    pub fn tasks_named(&self) -> watch::Receiver<u64> {
        self.0.named.subscribe()
    }

    /// The record of what was seen and decided, if one is kept.
    pub fn record(&self) -> Option<Arc<dyn Record>> {
        self.0.record.clone()
    }
}

impl ChanceryInner {
    /// Nothing is made for a record that is not kept.
    pub(crate) fn noted(&self, note: impl FnOnce() -> RecordNote) -> Option<RecordNote> {
        self.record.is_some().then(note)
    }
}

impl Answer {
    pub(crate) fn of(reply: Reply, permit: Option<AnswerPermit>) -> Self {
        match permit {
            Some(permit) => Self::Large(reply, permit),
            None => Self::Reply(reply),
        }
    }
}

impl From<Subscription> for Answer {
    fn from(subscription: Subscription) -> Self {
        Self::Stream(Box::new(subscription))
    }
}

/// The extended card, for authenticated callers.
fn extended_card(context: &CallContext, agent: &Agent) -> Result<Arc<AgentCard>, Error> {
    let Some(card) = &agent.extended else {
        return Err(Error::new(ErrorKind::UnsupportedOperation, "this agent has no extended card"));
    };
    match context.standing.proof {
        IdentityProof::None => Err(Error::new(ErrorKind::Unauthenticated, "the extended card is for authenticated callers only")),
        _ => Ok(Arc::clone(card)),
    }
}

pub(crate) fn push_not_supported() -> Error {
    Error::new(ErrorKind::PushNotificationNotSupported, "push notifications are not supported")
}
