//! The record of what was seen and decided: what goes into it beside what the store is given anyway, and the two ports it needs.
//!
//! A store that keeps a record asks its [`Scribe`] to put each write into words, and adds them to the record in the same
//! transaction. Words hold ids, states, sizes and digests, never content.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_protocol::{AgentName, TaskId, Timestamp};
use chancery_rules::lineage::AgentRef;

use crate::{Append, Decision, Freeze, FreezeScope, LineageRecord, StoreError, TaskRecord};

/// Something for the record that no write of the store says by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordNote {
    /// An agent's card was fetched.
    CardObserved(Box<CardObserved>),
    /// A caller or operator requested the cancel of a task. Its outcome is an update of the task.
    Cancelled { task: TaskId, by: Arc<str>, at: Timestamp },
    /// An operator removed a freeze.
    Thawed { scope: FreezeScope, by: Arc<str>, at: Timestamp },
    /// The agent did not take the first message, and the task was taken back.
    Withdrawn { task: TaskId, at: Timestamp },
    /// A notification was handed to a webhook, or given up.
    Delivered(Box<Delivered>),
    /// The node handed a task to an agent for another agent, or to a remote agent.
    Delegated(Box<Delegated>),
}

/// A delegation that this node made: a task with a task above it, or a task for a remote agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Delegated {
    /// The task that was delegated.
    pub task: Arc<TaskRecord>,
    /// Where the task stands in its tree, and how sure that is.
    pub kinship: Arc<LineageRecord>,
    /// The agent runs outside this node.
    pub remote: bool,
    /// The time when the task was made.
    pub at: Timestamp,
}

impl Delegated {
    /// The agent whose task this one was made for. `None` where a caller asked: then the node itself delegates.
    pub fn delegator(&self) -> Option<&AgentRef> {
        self.kinship.parent.as_ref().and_then(|_| self.kinship.path.last())
    }
}

/// A card of a remote agent that this node fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct CardObserved {
    /// The name of the agent at this node.
    pub agent: AgentName,
    /// The URL that the card was fetched from.
    pub url: Arc<str>,
    /// The protocol version the agent is called in.
    pub protocol_version: Arc<str>,
    /// The card for callers that the agent knows, which this node asked for with its credentials.
    pub extended: bool,
    /// Of the card's bytes as they came; of an extended card in the canonical form (RFC 8785) of its 1.0 JSON, because gRPC carries no
    /// JSON.
    pub sha256: [u8; 32],
    /// The length of the fetched card.
    pub bytes: u64,
    /// The time of the fetch.
    pub at: Timestamp,
}

/// Neither where it went nor what was shown there: addresses and headers may hold secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivered {
    /// The task whose events were delivered.
    pub task: TaskId,
    /// The id of the push configuration.
    pub config: Arc<str>,
    /// The number of the registration.
    pub lane: u64,
    /// The id of the notification, in its header `webhook-id`.
    pub webhook_id: Arc<str>,
    /// The entries of the task's log that it told of, the first and the last.
    pub from: u64,
    /// The last entry of the log that the notification covers.
    pub seq: u64,
    /// How many attempts were made.
    pub attempts: u32,
    /// What the receiver answered, if it did.
    pub status: Option<u16>,
    /// Why there is no automatic retry.
    pub given_up: Option<Arc<str>>,
    /// It had been given up before, and an operator asked for it.
    pub replay: bool,
    /// Of the body that was taken, or that is kept as a dead letter.
    pub sha256: [u8; 32],
    /// The length of that body.
    pub bytes: u64,
    /// The time when the outcome was stored.
    pub at: Timestamp,
}

/// What a store is about to write.
#[derive(Clone, Copy, Debug)]
pub enum RecordedWrite<'a> {
    /// Entries of a task.
    Append(&'a Append),
    /// A decision about a call that made no task.
    Decision(&'a Decision),
    /// A new freeze.
    Freeze(&'a Freeze),
    /// A note for the record alone.
    Note(&'a RecordNote),
}

/// Words for the record: whole lines in the hand of a scribe, ready to be linked to what comes before them. Lines about several things can
/// stand one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordLines(pub Vec<u8>);

/// Entries that became durable together. All are of one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The index of the first.
    pub first: u64,
    /// The number of entries.
    pub count: u64,
    /// When the first happened.
    pub at: Timestamp,
    /// Of the last entry.
    pub hash: [u8; 32],
    /// A line for each, as the scribe writes them.
    pub entries: Vec<u8>,
}

/// A signed word on how the record stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The number of the checkpoint, without gaps.
    pub number: u64,
    /// The index after the last entry it covers.
    pub end: u64,
    /// Its segment is whole and will not grow.
    pub sealed: bool,
    /// The time of the signature.
    pub at: Timestamp,
    /// What is signed, as canonical JSON.
    pub body: String,
    /// The signature over the body.
    pub signature: Vec<u8>,
}

/// What is not yet durable of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnwrittenRecord {
    /// Entries that are not stored yet.
    pub blocks: Vec<Block>,
    /// Checkpoints that are not stored yet.
    pub checkpoints: Vec<Checkpoint>,
}

/// Where a record goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordEnd {
    /// The last of each kind.
    pub sealed: Option<Checkpoint>,
    /// The newest checkpoint.
    pub newest: Option<Checkpoint>,
    /// Everything after the sealed segments.
    pub blocks: Vec<Block>,
}

/// Puts what happens into words.
pub trait Scribe: Send + Sync + Debug {
    /// Called where a write is requested, on any thread, so that the committing thread has less to do.
    fn write(&self, what: RecordedWrite<'_>) -> RecordLines;

    /// Goes on with a record where it ends.
    fn go_on(&self, end: RecordEnd) -> Box<dyn Chain>;
}

/// The growing end of a record, owned by the writer that knows the order of commits.
pub trait Chain: Send + Debug {
    /// Links lines to what came before. Signs by itself where enough has gathered.
    fn add(&mut self, lines: &RecordLines);

    /// Signs how the record stands, unless that is signed already.
    fn sign(&mut self, at: Timestamp);

    /// What has to become durable with the transaction that runs.
    fn unwritten(&self) -> &UnwrittenRecord;

    /// It is durable.
    fn written(&mut self);

    /// The transaction failed: the record is what it was before it.
    fn undo(&mut self);
}

/// What a store lets others do with its record.
#[async_trait]
pub trait Record: Send + Sync + Debug {
    /// Adds a note to the record.
    async fn note(&self, note: RecordNote) -> Result<(), StoreError>;

    /// Signs how the record stands, unless that is signed already.
    async fn sign(&self, at: Timestamp) -> Result<(), StoreError>;

    /// From the block that begins at `from`, or the first after it, in order, at most `limit`.
    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<Block>, StoreError>;

    /// All that are kept, in order, that cover something after `after`.
    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError>;

    /// Deletes all blocks before this index, which must be the end of a sealed segment, at once: no reader
    /// ever finds half a segment. The seals stay. Returns how many blocks were deleted.
    async fn forget(&self, before: u64) -> Result<u64, StoreError>;
}
