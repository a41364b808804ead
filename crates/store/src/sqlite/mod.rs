//! Tasks in one SQLite file: one thread writes and commits in groups, a few read, one tidies up.

mod append;
mod checkpoint;
mod connection;
mod decisions;
mod deed;
mod entries;
mod facts;
mod fault;
mod find;
mod folder;
mod freezes;
mod ledger;
mod links;
mod list;
mod options;
mod outbox;
mod readers;
mod record;
mod schema;
mod spent;
mod sweep;
mod trees;
mod writer;

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Decision, Freeze, FreezeScope, Governed, Happening, Keyed, Ledger, LedgerRow, Lines, Link, ListCursor,
    ListFilter, Listed, LogEntry, Names, Note, Record, Scribe, Spend, Store, StoreError, Stored, SweepPlan,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

pub use self::options::{SqliteOptions, Synchronous};

use self::append::Prepared;
use self::checkpoint::{Bell, Rope};
use self::deed::Write;
use self::fault::Fault;
use self::readers::Readers;
use self::record::SqliteRecord;
use self::writer::Job;

#[derive(Debug)]
pub struct SqliteStore {
    writer: mpsc::Sender<Job>,
    readers: Readers,
    /// What each write adds to, if a record is kept.
    record: Option<Arc<SqliteRecord>>,
    /// Taken by whoever closes. Stays the last field: it waits for threads that end when the queues above are gone.
    open: Mutex<Option<Open>>,
}

/// What has to end before somebody else may open the files.
#[derive(Debug)]
struct Open {
    threads: Vec<JoinHandle<()>>,
    _claim: folder::Claim,
}

impl Drop for Open {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store ended in a panic");
            }
        }
    }
}

impl SqliteStore {
    /// Opens the database, makes it if there is none, and brings it to the newest version. Blocks: it is for the start.
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
        let in_context =
            |error: StoreError| StoreError { message: format!("{}: {}", path.display(), error.message), source: error.source };
        let claim = folder::claim(path)?;
        let opening = |fault: fault::Fault| in_context(fault.while_doing("opening the database"));
        let mut writing = connection::to_write(path, options).map_err(opening)?;
        schema::migrate(&mut writing).map_err(in_context)?;
        outbox::orphan_all(&mut writing).map_err(|fault| in_context(fault.while_doing("taking over deliveries")))?;
        let end = |_: &Arc<dyn Scribe>| record::end(&writing);
        let end = scribe.as_ref().map(end).transpose().map_err(|fault| in_context(fault.while_doing("reading the record")))?;
        let chain = scribe.as_ref().zip(end).map(|(scribe, end)| scribe.go_on(end));
        let tidying = connection::to_write(path, options).map_err(opening)?;
        let (readers, mut threads) = Readers::start(path, options.readers, options.queue_limit).map_err(in_context)?;

        let bell = Arc::new(Bell::default());
        let (writer, queue) = mpsc::channel(options.queue_limit.max(1));
        let rope = Rope(Arc::clone(&bell));
        threads.push(spawn("store-tidy", move || checkpoint::run(&tidying, &bell, options.wal_limit_bytes))?);
        threads.push(spawn("store-write", move || {
            if let Err(fault) = writer::run(&writing, queue, options, &rope, chain) {
                tracing::error!(%fault, "the store cannot write");
            }
        })?);
        let open = Mutex::new(Some(Open { threads, _claim: claim }));
        let record =
            scribe.map(|scribe| Arc::new(SqliteRecord { scribe, writer: writer.downgrade(), readers: readers.downgrade() }));
        Ok(Self { writer, readers, record, open })
    }

    async fn write<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.writer.send(job(answer)).await.map_err(|_| fault::closed())?;
        answered.await.map_err(|_| fault::stopped())?
    }

    /// As one of many writes of its transaction.
    async fn perform<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.perform_noting(what, move |connection, _| work(connection)).await
    }

    /// The same for what may say something for the record.
    async fn perform_noting<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection, &mut dyn FnMut(&Note)) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let scribe = self.record.as_ref().map(|record| Arc::clone(&record.scribe));
        let work = move |connection: &Connection, record: &mut dyn FnMut(&Lines)| {
            work(connection, &mut |note| scribe.iter().for_each(|scribe| record(&scribe.write(Happening::Note(note)))))
        };
        self.write(|answer| Job::Do(Box::new(Write { what, fleeting: false, work, done: RefCell::new(None), answer }))).await
    }

    /// What the next process does not go by: answered as soon as it is written, and on the disk with whatever comes after it.
    async fn perform_fleeting<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = move |connection: &Connection, _: &mut dyn FnMut(&Lines)| work(connection);
        self.write(|answer| Job::Do(Box::new(Write { what, fleeting: true, work, done: RefCell::new(None), answer }))).await
    }

    /// What happens, in the words of the record. Nothing if none is kept.
    fn lines(&self, what: Happening<'_>) -> Lines {
        self.record.as_ref().map_or_else(Lines::default, |record| record.scribe.write(what))
    }

    fn noted(&self, note: Option<&Note>) -> Lines {
        note.map_or_else(Lines::default, |note| self.lines(Happening::Note(note)))
    }

    fn take_open(&self) -> Option<Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| StoreError::caused_by(format!("starting thread {name} failed"), error))
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let lines = self.lines(Happening::Append(&append));
        let prepared = Box::new(Prepared::new(append, lines)?);
        self.write(|answer| Job::Append(prepared, answer)).await
    }

    async fn withdraw(&self, task: &TaskId, note: Option<Note>) -> Result<bool, StoreError> {
        let lines = self.noted(note.as_ref());
        self.write(|answer| Job::Withdraw(task.clone(), lines, answer)).await
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        self.readers.read("looking up a task", move |connection| find::find(connection, &owner, &id, names)).await
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        let (owner, key) = (owner.clone(), key.to_owned());
        self.readers.read("looking up a key", move |connection| find::keyed(connection, &owner, &key, now)).await
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        let id = id.to_owned();
        self.readers.read("looking up a task", move |connection| find::find_any(connection, &id)).await
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        let task = task.clone();
        self.readers.read("looking up a link", move |connection| links::of_task(connection, &task)).await
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        let what = "looking up a conversation's link";
        self.readers.read(what, move |connection| links::of_context(connection, &owner, &agent, &context)).await
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let task = task.clone();
        self.readers.read("reading a log", move |connection| entries::read(connection, task.as_str(), after, limit)).await
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Listed, StoreError> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.readers.read("listing tasks", move |connection| list::list(connection, &filter, after.as_ref(), limit)).await
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

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        self.readers.read("looking up a trace", move |connection| trees::roots(connection, trace)).await
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<Ledger, StoreError> {
        self.readers.read("reading the ledger", move |connection| trees::ledger(connection, settled_since)).await
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        self.write(|answer| Job::Settle(task.clone(), Box::new(spend), answer)).await
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        let lines = self.lines(Happening::Decision(&decision));
        let encoded = decisions::Encoded::new(decision)?;
        self.write(|answer| Job::Decide(encoded, lines, answer)).await
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

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        self.readers.read("reading what is frozen", |connection| freezes::list(connection)).await
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        let lines = self.lines(Happening::Freeze(&freeze));
        self.write(|answer| Job::Freeze(Box::new(freeze), lines, answer)).await
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<Note>) -> Result<bool, StoreError> {
        let lines = self.noted(note.as_ref());
        self.write(|answer| Job::Thaw(scope.clone(), lines, answer)).await
    }

    fn record(&self) -> Option<Arc<dyn Record>> {
        self.record.clone().map(|record| record as Arc<dyn Record>)
    }

    async fn sweep(&self, plan: SweepPlan, now: Timestamp) -> Result<u64, StoreError> {
        self.write(|answer| Job::Sweep(plan, now, answer)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.readers.read("a trial read", |connection| find::find_any(connection, "").map(drop)).await?;
        self.write(Job::Check).await
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
