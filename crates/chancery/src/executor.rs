//! One way to have a task done, wherever its agent runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, RetentionConfig, Rulebook, SystemClock, TaskLimits, TaskRunner,
};
use chancery_identity::SealKey;
use chancery_protocol::{
    AgentCard, Artifact, Binding, CallContext, Caller, Error, ErrorKind, Message, Metadata, Reply, Request, SendConfiguration,
    SendMessage, Sent, Task, TaskState, TraceId, Version,
};
use chancery_store::MemoryStore;

use crate::agent_registry::AgentRegistry;
use crate::build_error::BuildError;
use crate::config::{AgentConfig, Config};
use crate::gateway::{InCode, Remote, RemoteParts};
use crate::seal::KeySeal;

/// An agent elsewhere, by its URL.
pub struct RemotePeer(Arc<dyn TaskRunner>);

impl fmt::Debug for RemotePeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peer")
    }
}

impl RemotePeer {
    /// Nothing is asked of it yet: its card is fetched with the first task. What may be called, and the limits on it, is as in
    /// a node's config; the URL itself is allowed by being given.
    pub fn new(url: impl Into<String>, config: &Config) -> Result<Self, BuildError> {
        let remote_parts = RemoteParts {
            config: Arc::new(config.clone()),
            // It has no address of its own that others could call back.
            public_url: url::Url::parse("http://localhost.invalid/").map_err(|_| BuildError::NoAgent)?,
            swp_url: None,
            clock: Arc::new(SystemClock),
            agent_registry: Arc::new(AgentRegistry::open(None)?),
            knows_callers: false,
            in_code: InCode::default(),
            known_names: std::collections::BTreeSet::new(),
        };
        let fault = |fault| BuildError::Agent { name: "peer".to_owned(), fault };
        let remote =
            Remote::new("peer", &AgentConfig::at(url), false, &remote_parts).map_err(fault)?.ok_or(BuildError::NoAgent)?;
        Ok(Self(remote.runner(&remote_parts)))
    }
}

/// Where an agent runs. Whoever gives it a task does not see the difference.
pub enum Executor {
    Local(Arc<dyn TaskRunner>),
    Remote(RemotePeer),
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local(_) => "Executor::Local",
            Self::Remote(_) => "Executor::Remote",
        })
    }
}

impl Executor {
    /// Has the task done and gives what it produced.
    pub async fn run(&self, message: Message, metadata: Option<Metadata>) -> Result<Vec<Arc<Artifact>>, Error> {
        let task = self.run_task(message, metadata).await?;
        match task.status.state {
            TaskState::Completed => Ok(task.artifacts.clone()),
            state => {
                let said = task.status.message.as_ref().and_then(|message| message.first_text().map(str::to_owned));
                let reason = said.unwrap_or_else(|| format!("the task is {}", state.name()));
                Err(Error::new(ErrorKind::InvalidAgentResponse, reason).with_fact("state", state.name()))
            }
        }
    }

    /// The same, with the whole task, however it ended.
    pub async fn run_task(&self, message: Message, metadata: Option<Metadata>) -> Result<Arc<Task>, Error> {
        let runner = match self {
            Self::Local(runner) => Arc::clone(runner),
            Self::Remote(RemotePeer(runner)) => Arc::clone(runner),
        };
        let plane = plane(runner)?;
        let context = CallContext {
            version: Version::V1_0,
            wrapped: false,
            binding: Binding::JsonRpc,
            caller: Caller::new("default", "executor"),
            standing: Arc::default(),
            agent: None,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace: TraceId(rand::random()),
            span: None,
            tracestate: None,
            hop_token: None,
            within: None,
            via: None,
        };
        let send = SendMessage {
            tenant: None,
            message: Arc::new(message),
            configuration: SendConfiguration::default(),
            metadata,
            client_task_id: None,
            unknown: Default::default(),
        };
        let answer = plane.call(&context, Request::SendMessage(send)).await?;
        let task = match answer {
            Answer::Reply(Reply::Sent(Sent::Task(shown))) => Ok(shown.task),
            Answer::Reply(Reply::Sent(Sent::Message(message))) => Ok(Arc::new(answered(message))),
            _ => Err(Error::new(ErrorKind::Internal, "a message was answered with something else")),
        };
        // Nothing of it is kept, so there is nothing to wait for.
        let _ = plane.shut_down(Duration::ZERO).await;
        task
    }
}

/// A control plane for one task: the same steps as in a node, in memory.
fn plane(runner: Arc<dyn TaskRunner>) -> Result<Chancery, Error> {
    let no_key = |fault: chancery_identity::KeyError| Error::new(ErrorKind::Internal, fault.to_string());
    let key = SealKey::random_bytes().and_then(|bytes| SealKey::new(&bytes)).map_err(no_key)?;
    let card = AgentCard { default_input_modes: vec!["*/*".to_owned()], ..AgentCard::default() };
    let agent =
        Agent { name: "agent".into(), card: Arc::new(card), extended: None, runner, exposed: true, enforces_input_modes: true };
    Ok(Chancery::new(ChanceryParts {
        agents: Agents::new(agent),
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        seal: Arc::new(KeySeal(key)),
        limits: TaskLimits::default(),
        retention: RetentionConfig::default(),
        dedupe: chancery_core::Dedupe::Off,
        rules: Rulebook::default(),
        hops: None,
        push: None,
    }))
}

/// An agent that answers with a message has done its task with it.
fn answered(message: Arc<Message>) -> Task {
    let artifact = Artifact::new("answer", message.parts.clone());
    let status = chancery_protocol::TaskStatus {
        state: TaskState::Completed,
        message: Some(message),
        timestamp: None,
        unknown: Default::default(),
    };
    Task {
        id: "answer".into(),
        context_id: "answer".into(),
        status,
        artifacts: vec![Arc::new(artifact)],
        history: Vec::new(),
        metadata: None,
        unknown: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::agents::{BuiltIn, Conformance};
    use chancery_protocol::{Part, Role};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    fn message(text: &str) -> Message {
        Message::of_parts(Role::User, "m", vec![Part::text(text)])
    }

    /// The ADR's test: the same task, here and elsewhere, comes to the same.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn executor_remote_gives_what_executor_local_gives() {
        let agent = BuiltIn::Conformance;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let builder = Node::builder().shared_agent("conformance", agent.card(), agent.runner());
        let node = builder.public_url(&url).build().await.unwrap();
        let stop = CancellationToken::new();
        let (serving, until) = (Arc::new(node), stop.clone());
        let server = Arc::clone(&serving);
        chancery_core::spawn_watched("test", async move { server.serve(listener, until).await });

        let here = Executor::Local(Arc::new(Conformance));
        let elsewhere = Executor::Remote(RemotePeer::new(&url, &Config::default()).unwrap());
        for text in ["complete", "hello there", "stream 3 1"] {
            let parts = |artifacts: Vec<Arc<Artifact>>| artifacts.iter().map(|one| one.parts.clone()).collect::<Vec<_>>();
            let local = parts(here.run(message(text), None).await.unwrap());
            let remote = parts(elsewhere.run(message(text), None).await.unwrap());
            assert_eq!(local, remote, "{text}");
        }
        for text in ["fail out of ink", "reject not today", "ask which one?"] {
            let (local, remote) = (here.run(message(text), None).await, elsewhere.run(message(text), None).await);
            assert_eq!(local.unwrap_err(), remote.unwrap_err(), "{text}");
        }
        stop.cancel();
    }
}
