//! Finds a caller's task and reads it, from memory when something is going on with it and from the log otherwise.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_protocol::{CallContext, Error, ErrorKind, NamedTask, Task, TaskEvent, TaskId, Version};
use chancery_rules::task_state;
use tokio::sync::SemaphorePermit;

use crate::agents::Agent;
use crate::live::LiveTask;
use crate::service::ChanceryInner;
use crate::snapshots;
use crate::{LogEntry, Names, Progress, StoreError, StoreTrouble, Stored, TaskRecord};

/// The retry delay for a caller after the store failed: long enough for an operator to free disk space, short
/// enough to wait.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A log is read in pages of this weight, so that a large task is in memory once and not twice.
pub(crate) const PAGE_BYTES: u64 = 1024 * 1024;

/// Only the older protocol lets clients name tasks, so only its callers can find them that way.
pub(crate) fn names(context: &CallContext) -> Names {
    if context.version == Version::V1_0 { Names::Server } else { Names::ServerOrClient }
}

impl ChanceryInner {
    /// A task of the caller's at this agent. Everything else is "not found", in the same words.
    pub(crate) async fn find(&self, context: &CallContext, agent: &Agent, id: &TaskId) -> Result<Stored, Error> {
        let names = names(context);
        let found = match self.open.get(id) {
            Some(live) if live.record.owner == context.caller && self.memory_counts(&live) => Some(live.stored()),
            // Also when somebody else's task goes by this id: the caller may have given it to one of its own.
            _ => self.store.find(&context.caller, id.as_str(), names).await.map_err(internal)?,
        };
        found.filter(|stored| stored.task.agent == agent.name && !stored.progress.message_only).ok_or_else(Error::task_not_found)
    }

    /// The task with room for what is going on with it.
    pub(crate) async fn open(self: &Arc<Self>, stored: Stored) -> Result<Arc<LiveTask>, Error> {
        if let Some(member) = &self.cluster {
            return Box::pin(self.open_shared(member, stored)).await;
        }
        loop {
            if let Some(live) = self.open.get(&stored.task.id) {
                return Ok(live);
            }
            let _turn = self.large_read(&stored).await;
            if let Some(live) = self.open.get(&stored.task.id) {
                return Ok(live);
            }
            let live = self.open.add(self.load(&stored).await?);
            // Between our read and our entry in the list another flow may have opened, moved and left the task. Once
            // listed, every move goes through us, so one more look settles it.
            let now = self.store.find_any(stored.task.id.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)?;
            if live.visible().seq >= now.progress.seq {
                return Ok(live);
            }
            live.break_off(None);
            self.open.drop_stale(&live);
        }
    }

    /// Many may open a large task at once; one reads it, and the others wait for that one.
    pub(crate) async fn large_read(&self, stored: &Stored) -> Option<SemaphorePermit<'_>> {
        if stored.progress.bytes > PAGE_BYTES { self.large_reads.acquire().await.ok() } else { None }
    }

    /// The task as the store has it, to be listed.
    pub(crate) async fn load(&self, stored: &Stored) -> Result<LiveTask, Error> {
        let ReadTask { task, progress, snapshot_seq } = self.read(stored, true).await?;
        let node = self.govern.trees.get(&stored.task.id);
        let live = LiveTask::loaded(Arc::clone(&stored.task), task, progress, node);
        live.snapshot_seq.fetch_max(snapshot_seq, Ordering::Relaxed);
        Ok(live)
    }

    /// The task as it is now, without keeping it.
    pub(crate) async fn current(&self, stored: &Stored) -> Result<Arc<Task>, Error> {
        match self.in_memory(stored) {
            Some(task) => Ok(task),
            None => self.read(stored, true).await.map(|read| read.task),
        }
    }

    fn in_memory(&self, stored: &Stored) -> Option<Arc<Task>> {
        self.open.get(&stored.task.id).filter(|live| self.memory_counts(live)).and_then(|live| live.task())
    }

    /// The same for a list that may leave the artifacts out. They are then not read where a snapshot has the other members.
    pub(crate) async fn current_of_list(&self, stored: &Stored, artifacts: bool) -> Result<Arc<Task>, Error> {
        match self.in_memory(stored) {
            Some(task) => Ok(task),
            None => self.read(stored, artifacts).await.map(|read| read.task),
        }
    }

    /// Folds the log from the last snapshot on. It may have grown since `stored` was read: what the entries say is what counts.
    async fn read(&self, stored: &Stored, artifacts: bool) -> Result<ReadTask, Error> {
        let mut folded = self.begin(&stored.task.id, stored.progress.seq, artifacts).await;
        let mut snapshot_seq = folded.seq;
        while folded.seq < stored.progress.seq || folded.task.is_none() {
            let page = self.page(&stored.task.id, folded.seq, usize::MAX).await?;
            if page.is_empty() && folded.seq > 0 {
                return Err(self.log_ends_early(stored, folded.seq).await);
            }
            let later = page.iter().filter(|entry| entry.seq > stored.progress.seq);
            folded.later_bytes += later.map(|entry| task_state::weight(&entry.event)).sum::<u64>();
            folded.add(&page)?;
        }
        let Folded { task, seq, message_only, later_bytes } = folded;
        let task = Arc::new(task.ok_or_else(Error::task_not_found)?);
        let progress = Progress {
            state: task.status.state,
            status_at: task.status.timestamp.unwrap_or(stored.progress.status_at),
            seq,
            bytes: stored.progress.bytes + later_bytes,
            message_only,
        };
        // A log from before there were snapshots is folded once.
        if artifacts && !message_only && self.keep_snapshot(&task, seq, snapshot_seq).await {
            snapshot_seq = seq;
        }
        Ok(ReadTask { task, progress, snapshot_seq })
    }

    /// The task as its last snapshot has it that is not after entry `to`, or nothing yet.
    async fn begin(&self, task: &TaskId, to: u64, artifacts: bool) -> Folded {
        match snapshots::latest(&*self.store, task, to, artifacts).await {
            Some((seq, task)) => Folded { task: Some(task), seq, ..Folded::default() },
            None => Folded::default(),
        }
    }

    /// The fault of a log that ends before the last entry its task counts. A task that was swept while it was read has none.
    async fn log_ends_early(&self, stored: &Stored, last: u64) -> Error {
        match self.store.find_any(stored.task.id.as_str()).await {
            Ok(Some(now)) => {
                let message = format!("the log of task {} ends with entry {last} of {}", now.task.id, now.progress.seq);
                internal(StoreError::new(message).of_trouble(StoreTrouble::Damaged))
            }
            Ok(None) => Error::task_not_found(),
            Err(fault) => internal(fault),
        }
    }

    /// The task as it was after entry `seq`.
    pub(crate) async fn read_at(&self, task: &TaskId, seq: u64) -> Result<Task, Error> {
        let mut folded = self.begin(task, seq, true).await;
        while folded.seq < seq {
            let left = usize::try_from(seq - folded.seq).unwrap_or(usize::MAX);
            folded.add(&self.page(task, folded.seq, left).await?)?;
        }
        folded.task.ok_or_else(Error::task_not_found)
    }

    async fn page(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        self.store.entries_within(task, after, limit, PAGE_BYTES).await.map_err(internal)
    }

    pub(crate) async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        self.store.entries(task, after, limit).await.map_err(internal)
    }
}

/// A task as the store has it.
struct ReadTask {
    task: Arc<Task>,
    progress: Progress,
    /// The entry of its snapshot, or 0.
    snapshot_seq: u64,
}

/// A task as far as its log was read.
#[derive(Default)]
struct Folded {
    task: Option<Task>,
    seq: u64,
    message_only: bool,
    later_bytes: u64,
}

impl Folded {
    fn add(&mut self, page: &[Arc<LogEntry>]) -> Result<(), Error> {
        // Swept since it was found.
        self.seq = page.last().ok_or_else(Error::task_not_found)?.seq;
        self.message_only |= page.iter().any(|entry| matches!(entry.event, TaskEvent::Replied(_)));
        match &mut self.task {
            Some(task) => page.iter().for_each(|entry| task_state::apply(task, &entry.event)),
            none => *none = task_state::fold(page.iter().map(|entry| &entry.event)),
        }
        if self.task.is_some() { Ok(()) } else { Err(Error::task_not_found()) }
    }
}

/// A task as a caller sees it, with at most `history_length` messages of history.
pub(crate) fn shown(record: &TaskRecord, mut task: Arc<Task>, history_length: Option<i32>) -> NamedTask {
    if let Some(length) = history_length.and_then(|length| usize::try_from(length).ok())
        && task.history.len() > length
    {
        let task = Arc::make_mut(&mut task);
        task.history.drain(..task.history.len() - length);
    }
    NamedTask { task, dialect: record.dialect, client_task_id: record.client_task_id.clone() }
}

/// The caller gets a reference and the fact that the node failed; the log has the details. If the store
/// itself is in trouble, the caller gets a retry delay.
pub(crate) fn internal(fault: StoreError) -> Error {
    let reference = crate::ids::fresh_id();
    tracing::error!(
        reference = &*reference,
        error = &fault as &dyn std::error::Error,
        "the store failed; the caller's error has this reference"
    );
    let error = match fault.trouble {
        StoreTrouble::None | StoreTrouble::HeldElsewhere | StoreTrouble::CallWithdrawn => {
            Error::new(ErrorKind::Internal, format!("internal error, reference {reference}"))
        }
        StoreTrouble::Unavailable | StoreTrouble::Away | StoreTrouble::Damaged => {
            come_back(format!("the node cannot read or write its tasks at the moment, reference {reference}"))
        }
    };
    error.with_fact("reference", reference)
}

/// The answer where the store is in trouble.
pub(crate) fn come_back(message: impl Into<Cow<'static, str>>) -> Error {
    Error { retry_after: Some(RETRY_AFTER), ..Error::new(ErrorKind::Unavailable, message) }
}
