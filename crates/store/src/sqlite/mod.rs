//! Tasks in one SQLite file: one thread writes and commits in groups, a few read, one tidies up.

mod answers;
mod append;
mod checkpoint;
mod connection;
mod decisions;
mod ended_counts;
mod entries;
mod examine;
mod fault;
mod find;
mod folder;
mod freezes;
mod health;
mod keys;
mod ledger;
mod links;
mod list;
mod nonces;
mod options;
mod outbox;
mod perform;
mod readers;
mod record;
mod row_reader;
mod schema;
mod snapshots;
mod spent;
mod sweep;
mod threads;
mod trees;
mod write_job;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Decision, ExpiryPlan, Freeze, FreezeScope, Governed, KeptKeys, Keyed, LedgerRow, LedgerSnapshot, Link,
    ListCursor, ListFilter, LogEntry, Names, NonceVerdict, PastSpend, Record, RecordLines, RecordNote, RecordedWrite, Scribe,
    Spend, SpentNonce, Store, StoreError, Stored, SweepPlan, TaskListing, TaskSnapshot, TreeCost,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};
use tokio::sync::mpsc;

pub use self::examine::Examined;
pub use self::options::{SqliteOptions, Synchronous};

use self::answers::AppendAnswer;
use self::append::PreparedAppend;
use self::checkpoint::{CheckpointRequest, CheckpointSignal};
use self::health::{Health, Outlook};
use self::readers::Readers;
use self::record::SqliteRecord;
use self::schema::MOST_ENTRIES;
use self::threads::{Open, spawn};
use self::write_job::{WriteOrder, write_job};
use self::writer::{Job, StoreWriter};
use crate::plain_ids;
use crate::rows::decisions::EncodedDecision;
use crate::rows::snapshots::SnapshotRow;

/// A store in a SQLite database.
#[derive(Debug)]
pub struct SqliteStore {
    writer: mpsc::Sender<Job>,
    readers: Readers,
    health: Arc<Health>,
    /// The file of the database.
    path: PathBuf,
    /// What each write adds to, if a record is kept.
    record: Option<Arc<SqliteRecord>>,
    /// Taken when the store closes. It stays the last field: its drop waits for threads that end after the queues above.
    open: Mutex<Option<Open>>,
}

impl SqliteStore {
    /// Opens the database, makes it if it is missing, and migrates it to the newest version. Blocks: call it
    /// only at the start.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::open_recording(path, options, None)
    }

    /// The same, with a record that each write adds to.
    pub fn open_recording(
        path: impl AsRef<Path>,
        options: SqliteOptions,
        scribe: Option<Arc<dyn Scribe>>,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let in_context = |error: StoreError| StoreError { message: format!("{}: {}", path.display(), error.message), ..error };
        let claim = folder::claim(path)?;
        let opening = |fault: fault::SqliteFault| in_context(fault.while_doing("opening the database"));
        let mut writing = connection::to_write(path, options).map_err(opening)?;
        schema::migrate(&mut writing).map_err(in_context)?;
        outbox::orphan_all(&mut writing).map_err(|fault| in_context(fault.while_doing("taking over deliveries")))?;
        let end = |_: &Arc<dyn Scribe>| record::end(&writing);
        let end = scribe.as_ref().map(end).transpose().map_err(|fault| in_context(fault.while_doing("reading the record")))?;
        let chain = scribe.as_ref().zip(end).map(|(scribe, end)| scribe.go_on(end));
        let tidying = connection::to_write(path, options).map_err(opening)?;
        let health = Arc::new(Health::default());
        let (readers, mut threads) = Readers::start(path, options, &health).map_err(in_context)?;

        let bell = Arc::new(CheckpointSignal::default());
        let (writer, queue) = mpsc::channel(options.queue_limit.max(1));
        let rope = CheckpointRequest(Arc::clone(&bell));
        threads.push(spawn("store-tidy", move || checkpoint::run(&tidying, &bell, options.wal_limit_bytes))?);
        let notes = Arc::clone(&health);
        threads.push(spawn("store-write", move || {
            if let Err(fault) = writer::run(&writing, queue, options, &rope, chain, &notes) {
                notes.note("preparing to write", &fault);
                tracing::error!(%fault, "the store cannot write and rejects changes; check the disk and restart the node");
            }
        })?);
        let open = Mutex::new(Some(Open::new(threads, claim)));
        let record =
            scribe.map(|scribe| Arc::new(SqliteRecord { scribe, writer: writer.downgrade(), readers: readers.downgrade() }));
        Ok(Self { writer, readers, health, path: path.to_owned(), record, open })
    }

    /// Goes through the whole database and names what is damaged. Blocks, and changes nothing.
    pub fn examine(path: impl AsRef<Path>) -> Result<Examined, StoreError> {
        examine::examine(path.as_ref())
    }

    /// What happens, in the words of the record. Nothing if none is kept.
    fn lines(&self, what: RecordedWrite<'_>) -> RecordLines {
        self.record.as_ref().map_or_else(RecordLines::default, |record| record.scribe.write(what))
    }

    fn noted(&self, note: Option<&RecordNote>) -> RecordLines {
        note.map_or_else(RecordLines::default, |note| self.lines(RecordedWrite::Note(note)))
    }

    fn take_open(&self) -> Option<Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let lines = self.lines(RecordedWrite::Append(&append));
        let prepared = Box::new(PreparedAppend::new(append, lines)?);
        self.write(|answer| Job::Append(prepared, AppendAnswer::here(answer))).await
    }

    async fn withdraw(&self, task: &TaskId, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let (task, lines) = (task.clone(), self.noted(note.as_ref()));
        self.perform_as_writer("taking a task back", move |writer| writer.withdraw(&task, &lines)).await
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        self.readers.read("looking up a task", move |connection| find::find(connection, &owner, &id, names)).await
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        let (owner, key) = (owner.clone(), key.to_owned());
        self.readers.read("looking up a key", move |connection| keys::look_up(connection, &owner, &key, now)).await
    }

    async fn kept_keys(&self) -> Result<Vec<KeptKeys>, StoreError> {
        self.readers.read("counting keys", |connection| keys::kept(connection)).await
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        let id = id.to_owned();
        self.readers.read("looking up a task", move |connection| find::find_any(connection, &id)).await
    }

    async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, StoreError> {
        let name = name.to_owned();
        self.readers.read("looking up callers", move |connection| list::owners_named(connection, &name)).await
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        let task = task.clone();
        self.readers.read("looking up a link", move |connection| links::of_task(connection, &task)).await
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.readers.read("looking up a link", move |connection| links::of_context(connection, &owner, &agent, &context)).await
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        self.entries_within(task, after, limit, u64::MAX).await
    }

    async fn entries_within(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let task = task.clone();
        self.readers.read("reading a log", move |connection| entries::read(connection, task.as_str(), after, limit, bytes)).await
    }

    async fn keep_snapshot(&self, snapshot: TaskSnapshot) -> Result<(), StoreError> {
        let row = SnapshotRow::new(&snapshot, MOST_ENTRIES)?;
        let keep = move |writer: &mut StoreWriter<'_>| snapshots::keep(writer.connection, &row);
        self.write(|answer| Job::Write(write_job("keeping a snapshot", WriteOrder::Tidying, keep, answer))).await
    }

    async fn snapshot(&self, task: &TaskId, artifacts: bool) -> Result<Option<TaskSnapshot>, StoreError> {
        let task = task.clone();
        self.readers.read("reading a snapshot", move |connection| snapshots::of_task(connection, &task, artifacts)).await
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<TaskListing, StoreError> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.readers.read("listing tasks", move |connection| list::list(connection, &filter, after.as_ref(), limit)).await
    }

    async fn list_page(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Vec<Stored>, StoreError> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.readers.read("listing tasks", move |connection| list::list_page(connection, &filter, after.as_ref(), limit)).await
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        self.readers.read("looking for unfinished tasks", |connection| find::unfinished(connection)).await
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        let task = task.clone();
        self.readers.read("looking up how a task is governed", move |connection| trees::governed(connection, &task)).await
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        let root = root.clone();
        self.readers.read("reading a tree", move |connection| trees::tree(connection, &root)).await
    }

    async fn tree_page(&self, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        let (root, after) = (root.clone(), after.cloned());
        self.readers.read("reading a tree", move |connection| trees::tree_page(connection, &root, after.as_ref(), limit)).await
    }

    async fn tree_costs(&self, root: &TaskId) -> Result<Vec<TreeCost>, StoreError> {
        let root = root.clone();
        self.readers.read("adding up a tree", move |connection| trees::tree_costs(connection, &root)).await
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        self.readers.read("looking up a trace", move |connection| trees::roots(connection, trace)).await
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<LedgerSnapshot, StoreError> {
        self.readers.read("reading the ledger", move |connection| trees::ledger(connection, settled_since)).await
    }

    async fn spent(&self, since: Timestamp, trees: bool) -> Result<Vec<PastSpend>, StoreError> {
        self.readers.read("adding up costs", move |connection| spent::all_since(connection, since, trees)).await
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        let task = task.clone();
        let work = move |writer: &mut StoreWriter<'_>| writer.statements.settle(&task, &spend);
        self.perform_as_writer("settling what a task cost", work).await?
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        plain_ids::check_decision(&decision)?;
        let lines = self.lines(RecordedWrite::Decision(&decision));
        let encoded = EncodedDecision::new(decision)?;
        self.perform_as_writer("keeping a decision", move |writer| {
            decisions::keep(writer.connection, &encoded)?;
            writer.add_to_record(&lines);
            Ok(())
        })
        .await
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        let id = id.to_owned();
        self.readers.read("looking up a decision", move |connection| decisions::by_id(connection, &id)).await
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        let task = task.clone();
        self.readers.read("reading a task's decisions", move |connection| decisions::of_task(connection, &task)).await
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        self.readers.read("reading decisions", move |connection| decisions::newest(connection, limit)).await
    }

    async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, StoreError> {
        let id = id.to_owned();
        self.readers.read("reading decisions", move |connection| decisions::before(connection, &id, limit)).await
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        self.readers.read("reading what is frozen", |connection| freezes::list(connection)).await
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        plain_ids::check_freeze(&freeze)?;
        let lines = self.lines(RecordedWrite::Freeze(&freeze));
        self.perform_as_writer("freezing", move |writer| {
            freezes::keep(writer.connection, &freeze)?;
            writer.add_to_record(&lines);
            Ok(())
        })
        .await
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let (scope, lines) = (scope.clone(), self.noted(note.as_ref()));
        self.perform_as_writer("thawing", move |writer| writer.thaw(&scope, &lines)).await
    }

    fn record(&self) -> Option<Arc<dyn Record>> {
        self.record.clone().map(|record| record as Arc<dyn Record>)
    }

    async fn sweep(&self, plan: SweepPlan) -> Result<u64, StoreError> {
        let sweep = move |writer: &mut StoreWriter<'_>| writer.sweep(plan);
        self.write(|answer| Job::Write(write_job("forgetting old tasks", WriteOrder::Tidying, sweep, answer))).await
    }

    async fn spend_nonce(&self, nonce: SpentNonce) -> Result<NonceVerdict, StoreError> {
        self.perform_as_writer("keeping a nonce", move |writer| writer.statements.nonces.spend(&nonce)).await
    }

    async fn expire(&self, plan: ExpiryPlan) -> Result<bool, StoreError> {
        let expire = move |writer: &mut StoreWriter<'_>| writer.expire(plan);
        self.write(|answer| Job::Write(write_job("forgetting what has expired", WriteOrder::Tidying, expire, answer))).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.readers.read("a trial read", |connection| find::find_any(connection, "").map(drop)).await?;
        if self.writer.is_closed() {
            return Err(fault::closed());
        }
        match self.health.outlook_with_room(health::free_bytes(&self.path)) {
            Outlook::Well => Ok(()),
            Outlook::Try => self.perform_as_writer("a trial write", |writer| writer.try_write()).await,
            Outlook::Ill(reason) => Err(reason),
        }
    }

    async fn close(&self, patience: Duration) -> Result<(), StoreError> {
        let Some(open) = self.take_open() else { return Ok(()) };
        let ending = async {
            drop(self.writer.send(Job::Close).await);
            self.readers.close().await;
            tokio::task::spawn_blocking(|| drop(open)).await
        };
        match tokio::time::timeout(patience, ending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(StoreError::caused_by("waiting for the store's threads failed", error)),
            Err(late) => Err(StoreError::caused_by("the store did not finish writing in time", late)),
        }
    }
}
