//! A node of scripted agents under a rulebook, and calls to it.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::budget::{BudgetScope, BudgetStanding as AccountStanding, Price};
use chancery_core::policy::PolicyBook;
use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, Finished, HopTokenService, RetentionConfig, Rulebook, RunError,
    TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
use chancery_protocol::{
    AgentCard, AgentSkill, CallContext, Caller, CallerStanding, CancelTask, Error, IdentityProof, Message, Metadata, Reply,
    Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskId, Timestamp,
};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, ManualClock, PlainSeal, call_context};
use serde_json::{Value, json};

/// An agent that does what a closure says.
pub(crate) struct Acts<F>(pub(crate) F);

#[async_trait]
impl<F, R> TaskRunner for Acts<F>
where
    F: Fn(Turn, TaskUpdateSink) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Finished, RunError>> + Send + 'static,
{
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        (self.0)(turn, updates).await
    }
}

/// The same as an agent elsewhere: it calls over the network, and nothing says for which task but what it brings.
pub(crate) struct Elsewhere<F>(pub(crate) F);

#[async_trait]
impl<F, R> TaskRunner for Elsewhere<F>
where
    F: Fn(Turn, TaskUpdateSink) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Finished, RunError>> + Send + 'static,
{
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        (self.0)(turn, updates).await
    }

    fn keeps_links(&self) -> bool {
        true
    }
}

/// An agent that is done at once.
pub(crate) fn quick() -> impl TaskRunner {
    Acts(|_turn: Turn, updates: TaskUpdateSink| async move { Ok(updates.complete(None)) })
}

/// An agent that stops only when it is told to.
pub(crate) fn patient() -> impl TaskRunner {
    Acts(|turn: Turn, updates: TaskUpdateSink| async move {
        turn.cancelled.cancelled().await;
        Ok(updates.canceled())
    })
}

/// An agent that says what its work cost and is done.
pub(crate) fn reporting(usage: Value) -> impl TaskRunner {
    Acts(move |_turn: Turn, mut updates: TaskUpdateSink| {
        let usage = usage.clone();
        async move {
            updates.annotate(metadata(json!({ "usage": usage }))).await?;
            Ok(updates.complete(None))
        }
    })
}

pub(crate) struct GovernedPlane {
    pub(crate) plane: Chancery,
    pub(crate) store: Arc<HookedStore>,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) struct Plan {
    agents: Vec<Agent>,
    rules: Rulebook,
    pub(crate) retention: RetentionConfig,
    pub(crate) limits: TaskLimits,
    pub(crate) store: Arc<HookedStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) hops: Option<Arc<dyn HopTokenService>>,
}

/// `budget`, `recursion`, `lineage` and `policy` as in the config file; `prices` and `token_prices` by agent.
pub(crate) fn rulebook(rules: &Value) -> Rulebook {
    fn section<T: serde::de::DeserializeOwned + Default>(rules: &Value, name: &str) -> T {
        rules.get(name).map_or_else(T::default, |section| T::deserialize(section).unwrap())
    }
    let prices: std::collections::HashMap<String, chancery_core::MicroUsd> = section(rules, "prices");
    let tokens: std::collections::HashMap<String, u64> = section(rules, "token_prices");
    let named: std::collections::BTreeSet<&String> = prices.keys().chain(tokens.keys()).collect();
    let price = |agent: &String| Price { usd: prices.get(agent).copied(), tokens: tokens.get(agent).copied() };
    let prices = named.into_iter().map(|agent| (agent.as_str().into(), price(agent)));
    Rulebook {
        budget: section(rules, "budget"),
        recursion: section(rules, "recursion"),
        lineage: section(rules, "lineage"),
        policy: PolicyBook::new(&section(rules, "policy")),
        prices: prices.collect(),
        ..Rulebook::default()
    }
}

impl Plan {
    pub(crate) fn new(rules: &Value) -> Self {
        let store = Arc::new(HookedStore::over(MemoryStore::new()));
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000_000)));
        let (retention, limits) = Default::default();
        Self { agents: Vec::new(), rules: rulebook(rules), retention, limits, store, clock, hops: None }
    }

    pub(crate) fn agent(self, name: &str, runner: impl TaskRunner) -> Self {
        self.skilled(name, &[], runner)
    }

    pub(crate) fn skilled(self, name: &str, skills: &[&str], runner: impl TaskRunner) -> Self {
        let skill =
            |id: &&str| -> AgentSkill { serde_json::from_value(json!({ "id": id, "name": id, "description": id })).unwrap() };
        let skills = skills.iter().map(skill).collect();
        let card = AgentCard { default_input_modes: vec!["*/*".into()], skills, ..AgentCard::default() };
        self.carded(name, card, runner)
    }

    pub(crate) fn carded(mut self, name: &str, card: AgentCard, runner: impl TaskRunner) -> Self {
        self.agents.push(Agent {
            name: name.into(),
            card: Arc::new(card),
            extended: None,
            runner: Arc::new(runner),
            exposed: true,
            enforces_input_modes: true,
        });
        self
    }

    pub(crate) fn build(self) -> GovernedPlane {
        let clock = self.clock;
        let mut agents = self.agents.into_iter();
        let first = Agents::new(agents.next().expect("a node has an agent"));
        let plane = Chancery::new(ChanceryParts {
            agents: agents.fold(first, Agents::with),
            store: Arc::clone(&self.store) as _,
            clock: Arc::clone(&clock) as _,
            seal: Arc::new(PlainSeal),
            limits: self.limits,
            retention: self.retention,
            dedupe: Dedupe::Off,
            rules: self.rules,
            hops: self.hops,
            push: None,
        });
        GovernedPlane { plane, store: self.store, clock }
    }
}

/// A caller who proved who it is.
pub(crate) fn caller(name: &str) -> CallContext {
    let standing = CallerStanding { proof: IdentityProof::ApiKey, ..CallerStanding::default() };
    CallContext { caller: Caller::new("tenant", name), standing: Arc::new(standing), ..call_context() }
}

/// A caller that is an agent of the node, as its operator says.
pub(crate) fn agent_caller(agent: &str) -> CallContext {
    let standing = CallerStanding { proof: IdentityProof::ApiKey, agent: Some(agent.into()), ..CallerStanding::default() };
    CallContext { standing: Arc::new(standing), ..caller(&format!("key-of-{agent}")) }
}

pub(crate) fn to(agent: &str, context: CallContext) -> CallContext {
    CallContext { agent: Some(agent.into()), ..context }
}

pub(crate) fn metadata(value: Value) -> Metadata {
    Metadata::from_object(value.as_object().expect("metadata is an object").clone())
}

pub(crate) fn message(text: &str, said: Value) -> SendMessage {
    let metadata = (!said.is_null()).then(|| metadata(said));
    let message = Arc::new(Message { metadata, ..Message::text(Role::User, "m", text) });
    SendMessage {
        tenant: None,
        message,
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: chancery_protocol::Unknown::default(),
    }
}

impl GovernedPlane {
    pub(crate) async fn send(&self, context: &CallContext, send: SendMessage) -> Result<Arc<Task>, Error> {
        match self.plane.call(context, Request::SendMessage(send)).await? {
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn say(&self, context: &CallContext, text: &str) -> Result<Arc<Task>, Error> {
        self.send(context, message(text, Value::Null)).await
    }

    /// Begins a task and does not wait for its end.
    pub(crate) async fn begin(&self, context: &CallContext, said: Value) -> Result<Arc<Task>, Error> {
        let mut send = message("work", said);
        send.configuration.return_immediately = true;
        self.send(context, send).await
    }

    pub(crate) async fn cancel(&self, context: &CallContext, id: &TaskId) -> Result<Arc<Task>, Error> {
        let cancel = CancelTask { tenant: None, id: id.clone(), metadata: None };
        match self.plane.call(context, Request::CancelTask(cancel)).await? {
            Answer::Reply(Reply::Task(shown)) => Ok(shown.task),
            other => panic!("{other:?}"),
        }
    }

    /// Where a budget stands, if something is counted in it.
    pub(crate) fn standing(&self, scope: &str) -> Option<AccountStanding> {
        let named =
            |found: &BudgetScope| found.to_string() == scope || (scope == "tree" && matches!(found, BudgetScope::Tree(_)));
        self.plane.budgets().into_iter().find(|(account, _)| named(account.scope())).map(|(_, standing)| standing)
    }
}

/// What an agent or the node said at a task's end.
pub(crate) fn reason(task: &Task) -> String {
    task.status.message.as_ref().and_then(|message| message.first_text()).unwrap_or_default().to_owned()
}

/// Lets everything that can move do so, until a condition holds. The time a runtime shows does not pass by this.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let patience = std::time::Instant::now();
    while !holds() {
        assert!(patience.elapsed() < std::time::Duration::from_secs(60), "it never came to hold");
        tokio::task::yield_now().await;
    }
}
