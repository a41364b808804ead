//! Memory that agents share by reference: what a turn may look at is what it was granted, and every look is kept.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use chancery_protocol::{AgentId, AgentName, ArtifactKind, Caller, Error, ErrorKind, Part, Timestamp};

use crate::ids::fresh_id;
use crate::live::LiveTask;
use crate::memory_looks::MemoryLook;
use crate::service::{Chancery, ChanceryInner};
use crate::{Decision, Fact, Rule, TaskRecord, Verdict};

/// Cards of nodes with a memory tier declare it, with what is known of the tier.
pub const MEMORY_EXTENSION: &str = "https://chancery.dev/a2a/memory/v1";

/// Where vectors lie that are handed over by their witness.
#[async_trait]
pub trait SharedMemory: Send + Sync + Debug {
    /// What the witness stands for, if the grant lets this agent read it.
    async fn resolve(&self, wanted: RecallRequest) -> Result<Collection, Error>;

    /// The nearest to each query, nearest first, if the grant lets this agent search it.
    async fn search(&self, wanted: RecallRequest, queries: Vec<Vec<f32>>, k: usize) -> Result<Vec<Vec<Nearest>>, Error>;

    /// A new generation with these vectors, by their ids, if the grant lets this agent write it.
    async fn write(&self, wanted: RecallRequest, vectors: Vec<(u64, Vec<f32>)>) -> Result<WrittenGeneration, Error>;
}

/// A requested read of memory, with its requester.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallRequest {
    /// The witness of the collection.
    pub witness: String,
    /// The location that the part names. It must equal that of the bundle.
    pub data_ref: String,
    /// What the part that has the witness was handed over for; the grant may allow more.
    pub capabilities: Vec<String>,
    /// The grant, by its id or whole.
    pub grant: Option<String>,
    /// The agent of this node that looks.
    pub agent: AgentName,
    /// The agent whose call brought the reference, where the call proved that it is one.
    pub presenter: Option<AgentId>,
    /// The time of the request.
    pub at: Timestamp,
}

/// A collection of vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// Its witness.
    pub witness: String,
    /// The location of its vectors.
    pub data_ref: String,
    /// The dimensions of each vector.
    pub dim: u32,
    /// The number of vectors.
    pub count: u64,
}

/// A new generation, and the grant that opens it for the agent that wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenGeneration {
    /// The new generation.
    pub collection: Collection,
    /// The grant for the agent that wrote it.
    pub grant: String,
}

/// A vector that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// The id of the vector.
    pub id: u64,
    /// The square of the distance.
    pub score: f32,
}

/// How an agent looks at memory for the task it works on.
#[derive(Clone, Debug)]
pub struct MemoryRecall {
    plane: Weak<ChanceryInner>,
    record: Arc<TaskRecord>,
    /// While it is open.
    live: Weak<LiveTask>,
    presenter: Option<AgentId>,
}

impl MemoryRecall {
    pub(crate) fn new(plane: &Arc<ChanceryInner>, live: &Arc<LiveTask>, presenter: Option<AgentId>) -> Self {
        Self { plane: Arc::downgrade(plane), record: Arc::clone(&live.record), live: Arc::downgrade(live), presenter }
    }

    /// The collection of a part that is a witness.
    pub async fn resolve(&self, part: &Part) -> Result<Collection, Error> {
        let plane = self.plane()?;
        let (memory, wanted) = self.wanted(&plane, part)?;
        let seen = memory.resolve(wanted.clone()).await;
        self.keep(&plane, "resolve", &wanted, seen).await
    }

    /// The nearest to each query in the collection of a part that is a witness.
    pub async fn search(&self, part: &Part, queries: Vec<Vec<f32>>, k: usize) -> Result<Vec<Vec<Nearest>>, Error> {
        let plane = self.plane()?;
        let (memory, wanted) = self.wanted(&plane, part)?;
        let seen = memory.search(wanted.clone(), queries, k).await;
        self.keep(&plane, "search", &wanted, seen).await
    }

    /// Adds vectors to the collection of a part that is a witness, or replaces those of the same ids. What comes of it has a
    /// witness of its own; the old one stays.
    pub async fn write(&self, part: &Part, vectors: Vec<(u64, Vec<f32>)>) -> Result<WrittenGeneration, Error> {
        let plane = self.plane()?;
        let (memory, wanted) = self.wanted(&plane, part)?;
        let seen = memory.write(wanted.clone(), vectors).await;
        let published = seen.as_ref().ok().map(|written| written.collection.witness.clone());
        let look = Look { published: published.as_deref(), ..self.look("write", &wanted) };
        plane.keep_look(look, seen).await
    }

    fn plane(&self) -> Result<Arc<ChanceryInner>, Error> {
        self.plane.upgrade().ok_or_else(|| Error::new(ErrorKind::Unavailable, "the node is shutting down"))
    }

    fn wanted<'a>(&self, plane: &'a ChanceryInner, part: &Part) -> Result<(&'a Arc<dyn SharedMemory>, RecallRequest), Error> {
        let none = || Error::new(ErrorKind::UnsupportedOperation, "this node has no memory tier");
        let memory = plane.memory.get().ok_or_else(none)?;
        let ArtifactKind::RuLakeWitness { witness, data_ref, capabilities } = ArtifactKind::from_part(part)? else {
            return Err(Error::invalid_field("parts", "is not a ruLake witness"));
        };
        let grant = part.metadata.as_ref().and_then(|metadata| metadata.get("ruvector"));
        let grant = grant.and_then(|vendor| vendor.get("grant")?.as_str().map(str::to_owned));
        let (agent, presenter) = (self.record.agent.clone(), self.presenter.clone());
        Ok((memory, RecallRequest { witness, data_ref, capabilities, grant, agent, presenter, at: plane.clock.now() }))
    }

    async fn keep<T>(
        &self,
        plane: &ChanceryInner,
        what: &'static str,
        wanted: &RecallRequest,
        seen: Result<T, Error>,
    ) -> Result<T, Error> {
        plane.keep_look(self.look(what, wanted), seen).await
    }

    fn look<'a>(&'a self, what: &'static str, wanted: &'a RecallRequest) -> Look<'a> {
        let (by, live) = (Some(&*self.record), self.live.upgrade());
        Look { what, witness: &wanted.witness, data_ref: &wanted.data_ref, published: None, by, live }
    }
}

struct Look<'a> {
    what: &'static str,
    witness: &'a str,
    data_ref: &'a str,
    /// What came of it, if it was written to.
    published: Option<&'a str>,
    /// The task it was for; nothing for the operator.
    by: Option<&'a TaskRecord>,
    live: Option<Arc<LiveTask>>,
}

impl Chancery {
    /// Keeps that the operator looked at memory, and what came of it.
    pub async fn operator_looked<T>(
        &self,
        what: &'static str,
        witness: &str,
        data_ref: &str,
        seen: Result<T, Error>,
    ) -> Result<T, Error> {
        self.0.keep_look(Look { what, witness, data_ref, published: None, by: None, live: None }, seen).await
    }
}

impl ChanceryInner {
    /// Writes down who looked at what and whether it was let, before anything is shown.
    async fn keep_look<T>(&self, look: Look<'_>, seen: Result<T, Error>) -> Result<T, Error> {
        let id = fresh_id();
        let mut facts = vec![
            (Cow::Borrowed("look"), Fact::text(look.what)),
            (Cow::Borrowed("witness"), Fact::text(short(look.witness))),
            (Cow::Borrowed("data_ref"), Fact::text(short(look.data_ref))),
        ];
        facts.extend(look.published.map(|witness| (Cow::Borrowed("published"), Fact::text(witness.to_owned()))));
        if let Err(error) = &seen {
            facts.extend(error.facts.iter().map(|(name, value)| (Cow::Borrowed(*name), Fact::text(value.clone()))));
        }
        let owner = look.by.map_or_else(|| Caller::new("default", "operator"), |task| task.owner.clone());
        let at = self.clock.now();
        let kinship = look.live.as_ref().and_then(|live| live.node()).map(|node| &node.kinship);
        let decision = Decision {
            id: Arc::clone(&id),
            at,
            tenant: owner.tenant,
            caller: owner.name,
            agent: look.by.map_or_else(|| "operator".into(), |task| task.agent.clone()),
            task: look.by.map(|task| task.id.clone()),
            root: kinship.map(|kinship| kinship.root.clone()),
            trace: kinship.map(|kinship| kinship.trace),
            refused: seen.as_ref().err().map(|error| error.kind.reason().into()),
            verdicts: vec![Verdict { rule: Rule::Memory, passed: seen.is_ok(), facts }],
        };
        self.store.decide(Arc::new(decision)).await.map_err(crate::find::internal)?;
        self.retention.one_more_decided();
        if let (Some(live), Ok(_)) = (&look.live, &seen) {
            live.looked(MemoryLook {
                look: Cow::Borrowed(look.what),
                witness: short(look.witness),
                data_ref: short(look.data_ref),
                agent: live.record.agent.to_string(),
                decision: id.to_string(),
                at,
            });
        }
        seen.map_err(|error| {
            tracing::warn!(decision = &*id, witness = look.witness, "rejected access to memory: {error}");
            let message = format!("{} decision={id}", error.message);
            Error { message: message.into(), ..error }.with_fact("decision", id)
        })
    }
}

/// A stranger's text, as much of it as a record needs.
fn short(text: &str) -> String {
    text.chars().take(256).collect()
}
