//! What the control plane needs from the outside: a store, a clock, a seal. Adapters live in crates of their own.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_protocol::{AgentName, Caller, ContextId, Dialect, TaskEvent, TaskId, TaskState, Timestamp, TraceId};
use chancery_rules::budget::Caps;
use chancery_rules::lineage::TokenCheck;
use chancery_rules::task_state;

use crate::cluster::{CallAnswer, Cluster};
use crate::evidence::{Record, RecordNote};
use crate::governed::{Decision, Freeze, FreezeScope, Governed, LedgerRow, LedgerSnapshot, PastSpend, Spend, TreeCost};
use crate::key_quota::{Idempotency, KeptKeys, Keyed};
use crate::listing::{ListCursor, ListFilter, TaskListing, owners_among_listed};
use crate::push::NewRegistration;
use crate::snapshots::TaskSnapshot;
use crate::store_error::StoreError;
use crate::sweep_plan::{ExpiryPlan, SweepPlan};
use crate::token_task::TokenTask;

/// Time, so that tests can move it.
pub trait Clock: Send + Sync + Debug {
    /// The time of day. An operator can set it, forward and back.
    fn now(&self) -> Timestamp;

    /// The time since some moment before the first call of this process. It cannot be set: for counts while
    /// the node runs.
    fn elapsed(&self) -> Duration;
}

/// Makes text that only this node can have made, for tokens that callers carry and must not forge.
pub trait Seal: Send + Sync + Debug {
    fn seal(&self, purpose: &str, content: &[u8]) -> String;

    /// The content, if the token is ours, for this purpose, and unaltered.
    fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>>;

    /// A mark on content that only this node can make, and makes again for the same content.
    fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32];

    /// A collision-resistant digest.
    fn digest(&self, content: &[u8]) -> [u8; 32];
}

/// Makes and reads the tokens that show which task an agent works on. They go out with each piece of work given to an agent, and
/// come back with the calls it makes for it.
pub trait HopTokenService: Send + Sync + Debug {
    /// Nothing where no token can be made; the work goes out without one.
    fn mint(&self, hop: &Hop) -> Option<String>;

    /// The task a token names, if it is one of ours and good. Those of other nodes say nothing here.
    fn read(&self, token: &str, now: Timestamp) -> Result<Option<TokenTask>, TokenCheck>;

    /// The same for the value of this node's member of `tracestate`, which another node wrote in the place of a token.
    fn read_member(&self, value: &str, now: Timestamp) -> Result<TokenTask, TokenCheck>;

    /// The content of another node's token.
    fn read_foreign(&self, _token: &str) -> ForeignToken {
        ForeignToken::default()
    }
}

/// What a token of another node says. It is no proof of anything, so it may only bind the call it came with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignToken {
    /// Members of `tracestate`, each as `NODE@chancery=HANDLE`, to be forwarded in the place of the token:
    /// the other node's own, and those of nodes that the call came through.
    pub members: Vec<String>,
    /// What the other node lets the call cost.
    pub budget: Caps,
}

/// What a hop token is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    pub task: TokenTask,
    /// Members of `tracestate` of the nodes that the task came through before this one.
    pub members: Vec<String>,
    /// What may be spent under it, and the task whose budget that is.
    pub budget: Caps,
    pub issued: Timestamp,
    pub expires: Timestamp,
}

/// One entry of a task's log. Sequence numbers start at 1 and have no gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    pub seq: u64,
    pub at: Timestamp,
    pub event: TaskEvent,
}

/// What never changes about a task after it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRecord {
    pub id: TaskId,
    pub context_id: ContextId,
    pub agent: AgentName,
    pub owner: Caller,
    /// The dialect of the call that made it.
    pub dialect: Dialect,
    /// The name its client gave it, in the original protocol. Unique per owner.
    pub client_task_id: Option<Arc<str>>,
    pub created_at: Timestamp,
}

/// What changes with each append.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub state: TaskState,
    pub status_at: Timestamp,
    /// The last entry's number.
    pub seq: u64,
    /// Weight of all entries, as the limit on a task's size counts it.
    pub bytes: u64,
    /// The agent answered with a message: there is a log, but no task to show.
    pub message_only: bool,
}

/// Where a task goes on when another agent works on it: with whom, and by which names it goes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The peer by the name it has here.
    pub peer: Arc<str>,
    pub task: Option<TaskId>,
    pub context: Option<ContextId>,
}

/// Entries of one task that become durable together with the task's new state, or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    pub task: Arc<TaskRecord>,
    /// Set when this append makes the task.
    pub creation: Option<Creation>,
    pub progress: Progress,
    /// In order, directly after what is stored.
    pub entries: Vec<Arc<LogEntry>>,
    /// With whom the task goes on from now. Nothing leaves that as it was.
    pub link: Option<Link>,
    /// How the call that makes the task was governed. Only with a creation.
    pub governed: Option<Box<Governed>>,
    /// What the task has cost, from now on. Nothing leaves that as it was.
    pub spend: Option<Spend>,
    /// The decision about a message that continues the task, or the record of its agent's reads of memory.
    pub decision: Option<Arc<Decision>>,
    /// A webhook that receives the task's events from its beginning. Only with a creation.
    pub register: Option<Box<NewRegistration>>,
    /// For the record, if one is kept, beside what all this says by itself.
    pub notes: Vec<RecordNote>,
    /// The answer to the call of another node that this append is about. If that call was withdrawn, the store refuses
    /// the append.
    pub answers: Option<CallAnswer>,
}

#[derive(Clone, Debug, Default)]
pub struct Creation {
    pub idempotency: Option<Idempotency>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    Recorded,
    /// As before, and a webhook has something to receive, sooner than its origin had: the engine is to be
    /// woken.
    RecordedToTell,
    /// As before, and a webhook has something to receive, but it, or others of its origin, are behind
    /// already: no wake-up is needed.
    RecordedBehind,
    /// The owner used this idempotency key before and it has not expired. Nothing was written.
    KeyKnown {
        task: TaskId,
        fingerprint: [u8; 32],
    },
    /// The owner already has a task by this client-chosen name. Nothing was written.
    ClientIdKnown {
        task: TaskId,
    },
    /// The tenant has as many webhooks as it may have, or the task would. Nothing was written.
    TooManyRegistrations {
        of_tenant: bool,
    },
}

/// Which names a task may be found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Only the id the server gave it.
    Server,
    /// Also the name the client gave it, in the original protocol.
    ServerOrClient,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub task: Arc<TaskRecord>,
    pub progress: Progress,
}

/// One use of the nonce of a signed request.
#[derive(Clone, Copy, Debug)]
pub struct SpentNonce {
    /// Tells the nonce from all others.
    pub nonce: [u8; 32],
    /// The last moment at which its signature would be accepted.
    pub until: Timestamp,
    pub now: Timestamp,
    /// So many that still count may be kept at once.
    pub most: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceVerdict {
    /// It was not used before, and is kept until its signature holds no more.
    Fresh,
    Replayed,
    /// As many are kept as may be, and all of them count.
    Full,
}

/// How many entries from the front weigh no more than `bytes` together; the first counts with any weight.
pub fn fitting(entries: &[Arc<LogEntry>], bytes: u64) -> usize {
    let mut sum = 0_u64;
    let within = |entry: &&Arc<LogEntry>| {
        let first = sum == 0;
        sum = sum.saturating_add(task_state::weight(&entry.event));
        first || sum <= bytes
    };
    entries.iter().take_while(within).count()
}

/// The durable log. When `append` answers, what it was given survives the end of the process.
#[async_trait]
pub trait Store: Send + Sync + Debug {
    async fn append(&self, append: Append) -> Result<Appended, StoreError>;

    /// Takes a task back that was made and nothing more, with the names it went by, as if it had never been. One that has gone
    /// on stays. Answers whether it is gone. The note goes into the record if it is.
    async fn withdraw(&self, task: &TaskId, note: Option<RecordNote>) -> Result<bool, StoreError>;

    /// A task of this owner. Someone else's task and none at all are the same answer.
    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError>;

    /// What the owner used an idempotency key for, if that has not expired by `now`. The task may be forgotten: a key lives for its
    /// own time.
    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError>;

    /// How many idempotency keys each caller has. A store that others write to too may leave this out.
    async fn kept_keys(&self) -> Result<Vec<KeptKeys>, StoreError> {
        Ok(Vec::new())
    }

    /// A task of any owner: for the operator only.
    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError>;

    /// The owners of tasks that have this name, of any tenant: for the operator only.
    async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, StoreError> {
        owners_among_listed(self, name).await
    }

    /// With whom a task goes on.
    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError>;

    /// With whom an owner's conversation with an agent went on last.
    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError>;

    /// Entries after `after`, in order, at most `limit`.
    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError>;

    /// The same, and no more of them than weigh `bytes` together, but at least one where there is one.
    async fn entries_within(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let mut entries = self.entries(task, after, limit).await?;
        entries.truncate(fitting(&entries, bytes));
        Ok(entries)
    }

    /// The entries after a number of each of several tasks, in the order of the tasks. Of each task no more than weigh `bytes`
    /// together, maybe fewer, but at least one where there is one. A store that others write to too reads them in one query.
    async fn entries_of(&self, tasks: &[(TaskId, u64)], bytes: u64) -> Result<Vec<Vec<Arc<LogEntry>>>, StoreError> {
        let mut read = Vec::with_capacity(tasks.len());
        for (task, after) in tasks {
            read.push(self.entries_within(task, *after, usize::MAX, bytes).await?);
        }
        Ok(read)
    }

    /// Keeps a task as it is after an entry, in place of an earlier snapshot. One of a task that has no such entry is not kept. A store
    /// may lose snapshots, and need not keep any: the log says the same.
    async fn keep_snapshot(&self, _snapshot: TaskSnapshot) -> Result<(), StoreError> {
        Ok(())
    }

    /// The snapshot of a task, without its artifacts unless `_artifacts` is set.
    async fn snapshot(&self, _task: &TaskId, _artifacts: bool) -> Result<Option<TaskSnapshot>, StoreError> {
        Ok(None)
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<TaskListing, StoreError>;

    /// The tasks of the same page, without their total: a list of one context, or since a time, is not counted.
    async fn list_page(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Vec<Stored>, StoreError> {
        Ok(self.list(filter, after, limit).await?.tasks)
    }

    /// Tasks that were submitted or working: after a restart no turn works on them any more.
    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError>;

    /// The governance of a task. Nothing for tasks from before governance.
    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError>;

    /// All tasks of a delegation tree that are kept, in the order they were made.
    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError>;

    /// At most `limit` tasks of a delegation tree in the same order, those made after the task `after`. None if `after` is not kept.
    async fn tree_page(&self, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Result<Vec<LedgerRow>, StoreError>;

    /// What each task of a tree cost, in the same order and without the rest of its row.
    async fn tree_costs(&self, root: &TaskId) -> Result<Vec<TreeCost>, StoreError>;

    /// The root tasks of the trees with this trace id, oldest first. A caller can give several trees one.
    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError>;

    /// What a start has to know to go on counting where the last run stopped: the tasks that have not ended, all tasks of
    /// their trees, and what was settled since then, by tasks that are kept and by those that are not.
    async fn ledger(&self, settled_since: Timestamp) -> Result<LedgerSnapshot, StoreError>;

    /// The costs of turns that were settled since then, of stored and of deleted tasks. A store may add up
    /// equal ones, and leave the roots out unless `trees` is set.
    async fn spent(&self, since: Timestamp, _trees: bool) -> Result<Vec<PastSpend>, StoreError> {
        let LedgerSnapshot { tasks, past } = self.ledger(Timestamp::from_micros(i64::MIN)).await?;
        let kept = tasks.iter().filter_map(|row| PastSpend::of_last_turn(&row.owner, &row.agent, &row.governed));
        Ok(kept.chain(past).filter(|past| past.at >= since).collect())
    }

    /// What a task has cost, without anything being said in its log.
    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError>;

    /// Keeps a decision about a call that nothing came of.
    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError>;

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError>;

    /// The decisions about later messages of a task, oldest first.
    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError>;

    /// The newest decisions, newest first: for the operator only.
    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError>;

    /// The decisions made before the one with this id, newest first. None if that one is not kept.
    async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, StoreError>;

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError>;

    /// Another freeze of the same scope is replaced.
    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError>;

    /// Answers whether it was frozen. The note goes into the record if it was.
    async fn thaw(&self, scope: &FreezeScope, note: Option<RecordNote>) -> Result<bool, StoreError>;

    /// Forgets terminal tasks. The idempotency keys that made them stay. Answers how many tasks went.
    async fn sweep(&self, plan: SweepPlan) -> Result<u64, StoreError>;

    /// Keeps the use of a nonce. When it answers, the use survives the end of the process.
    async fn spend_nonce(&self, nonce: SpentNonce) -> Result<NonceVerdict, StoreError>;

    /// Forgets idempotency keys and nonces whose time is over. Answers whether more are due than may go at once.
    async fn expire(&self, plan: ExpiryPlan) -> Result<bool, StoreError>;

    /// The record that each write adds to, where one is kept.
    fn record(&self) -> Option<Arc<dyn Record>> {
        None
    }

    /// The nodes that share this store, if several can.
    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        None
    }

    /// Whether reads and writes work, for readiness. Asked often: a store that works is not written to for this.
    async fn check(&self) -> Result<(), StoreError>;

    /// Waits until everything appended is durable and lets go of files.
    async fn close(&self, patience: Duration) -> Result<(), StoreError>;
}
