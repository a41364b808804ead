//! Tasks in a PostgreSQL database: one task writes and commits in groups, a few sessions read.
//!
//! Each batch passes a fence, the row of its writer, and counts it up. So a later owner of the database shuts this one out, and
//! after a broken connection the row says whether the last batch is in. Several nodes share a database as members of a cluster.

mod append;
mod batch;
mod batch_sql;
mod cluster;
mod columns;
mod conditions;
mod connection;
mod decisions;
mod ended_counts;
mod entries;
mod fault;
mod fence;
mod find;
mod flight;
mod freezes;
mod health;
mod keys;
mod ledger;
mod links;
mod list;
mod nonces;
mod outbox;
mod owner_lease;
mod port;
mod readers;
mod record;
mod refusals;
mod requests;
mod requirements;
mod schema;
#[cfg(test)]
#[allow(dead_code, clippy::disallowed_methods, reason = "the tests of the contract use the rest, and start tasks as they like")]
#[path = "../../tests/it/server.rs"]
mod server;
mod snapshots;
mod spent;
mod sweep;
mod takeover;
mod task_rows;
mod tls;
mod trees;
mod writer;
mod writer_state;

use std::sync::{Arc, Mutex, PoisonError};

use chancery_core::{RecordLines, RecordNote, RecordedWrite, Scribe, StoreError, spawn_watched};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::cluster::{ClusterMember, WakeupOutbox};
use self::connection::DatabaseConnector;
use self::fence::WriterIdentity;
use self::health::WriterHealth;
use self::owner_lease::OwnerLease;
use self::readers::PostgresReaders;
use self::record::PostgresRecord;
use self::requests::{QueuedWrite, WriteRequests};
use self::writer::BatchWriter;
use self::writer_state::WriterState;
use crate::postgres_options as options;
use crate::postgres_options::PostgresOptions;

/// A store in a PostgreSQL database. One node has it for itself, the one that opened it last, or several nodes join and share it.
#[derive(Debug)]
pub struct PostgresStore {
    requests: WriteRequests,
    readers: PostgresReaders,
    health: Arc<WriterHealth>,
    /// The row that a later owner of the database closes.
    identity: WriterIdentity,
    /// What each write adds to, if a record is kept.
    record: Option<Arc<PostgresRecord>>,
    /// This node among others, if it joined them.
    member: Option<Arc<ClusterMember>>,
    /// Taken when the store closes.
    open: Mutex<Option<OpenWriter>>,
}

/// How a node uses the database.
#[derive(Clone, Copy, Debug)]
enum NodePlace {
    /// It has the database for itself.
    Owner,
    /// It is one of several.
    Member,
}

/// The writer's queue and task. Dropping the queue lets the writer end once it has written what is queued.
#[derive(Debug)]
struct OpenWriter {
    queue: mpsc::Sender<QueuedWrite>,
    task: JoinHandle<()>,
    /// Of a node that has the database for itself.
    lease: Option<OwnerLease>,
}

impl PostgresStore {
    /// Connects, checks the database, brings it to the newest version, and takes it over: the writes of a node that used it before
    /// are refused from then on. Fails while nodes share the database.
    pub async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        Self::open_recording(options, None).await
    }

    /// The same, with a record that each write adds to.
    pub async fn open_recording(options: PostgresOptions, scribe: Option<Arc<dyn Scribe>>) -> Result<Self, StoreError> {
        let shown = options.shown_url();
        Self::open_as(NodePlace::Owner, options, scribe)
            .await
            .map_err(|error| StoreError { message: format!("{shown}: {}", error.message), ..error })
    }

    /// Connects and says what keeps a store from working in the database: a server that is too old, a right that is missing. It
    /// changes nothing, and a node that uses the database goes on.
    pub async fn probe(options: PostgresOptions) -> Result<(), StoreError> {
        let shown = options.shown_url();
        Self::probe_unnamed(options).await.map_err(|error| StoreError { message: format!("{shown}: {}", error.message), ..error })
    }

    async fn probe_unnamed(options: PostgresOptions) -> Result<(), StoreError> {
        let session = DatabaseConnector::new(options)?.open().await;
        schema::look(&session.map_err(|fault| fault.while_doing("opening the database"))?).await
    }

    /// The same as one of several nodes that share the database: no other node is shut out. Fails while a node has the database
    /// for itself.
    pub async fn join(options: PostgresOptions) -> Result<Self, StoreError> {
        Self::join_recording(options, None).await
    }

    /// The same, with a record that each write adds to. Each member writes and reads a book of the record of its own.
    pub async fn join_recording(options: PostgresOptions, scribe: Option<Arc<dyn Scribe>>) -> Result<Self, StoreError> {
        let shown = options.shown_url();
        Self::open_as(NodePlace::Member, options, scribe)
            .await
            .map_err(|error| StoreError { message: format!("{shown}: {}", error.message), ..error })
    }

    async fn open_as(place: NodePlace, options: PostgresOptions, scribe: Option<Arc<dyn Scribe>>) -> Result<Self, StoreError> {
        let connector = DatabaseConnector::new(options)?;
        let opening = |fault: fault::PostgresFault| fault.while_doing("opening the database");
        let session = connector.open().await.map_err(opening)?;
        schema::prepare(&session).await?;
        let lease = connector.options().lease();
        let (identity, joined) = match place {
            NodePlace::Owner => {
                let identity = fence::take_over(&session, lease).await.map_err(opening)?;
                outbox::orphan_all(&session).await.map_err(|fault| fault.while_doing("taking over deliveries"))?;
                (identity, None)
            }
            NodePlace::Member => {
                let joined = cluster::join(&session, lease).await.map_err(opening)?;
                (joined.identity.clone(), Some(joined))
            }
        };
        let book = identity.book();
        let nonces = nonces::count(&session).await.map_err(opening)?;
        let chain = match &scribe {
            Some(scribe) => {
                let end = record::end(&session, book).await.map_err(|fault| fault.while_doing("reading the record"))?;
                Some(scribe.go_on(end))
            }
            None => None,
        };
        drop(session);
        let connector = match &joined {
            Some(joined) => connector.named(&joined.session_name),
            None => connector.named(&format!("chancery node {}", identity.node)),
        };
        let readers = PostgresReaders::new(connector.clone())?;
        let (queue, writes) = mpsc::channel(connector.options().queue_limit.max(1));
        let health = Arc::new(WriterHealth::default());
        let patience = connector.options().patience();
        let requests = WriteRequests { queue: queue.downgrade(), health: Arc::clone(&health), patience };
        let mut state = WriterState::new(identity.clone(), chain, nonces);
        let member = joined.map(|joined| {
            let wakeups = Arc::new(WakeupOutbox::default());
            state.wakeups = Some(Arc::clone(&wakeups));
            ClusterMember::start(joined, connector.clone(), requests.clone(), readers.clone(), wakeups)
        });
        let lease = member.is_none().then(|| OwnerLease::start(connector.clone(), identity.clone()));
        let writer = BatchWriter::new(connector, writes, Arc::clone(&health), state);
        let task = spawn_watched("store-write", writer.run());
        let record =
            scribe.map(|scribe| Arc::new(PostgresRecord { scribe, requests: requests.clone(), readers: readers.clone(), book }));
        let open = Mutex::new(Some(OpenWriter { queue, task, lease }));
        Ok(Self { requests, readers, health, identity, record, member, open })
    }

    /// What happens, in the words of the record. Nothing if none is kept.
    fn lines(&self, what: RecordedWrite<'_>) -> RecordLines {
        self.record.as_ref().map_or_else(RecordLines::default, |record| record.scribe.write(what))
    }

    fn noted(&self, note: Option<&RecordNote>) -> RecordLines {
        note.map_or_else(RecordLines::default, |note| self.lines(RecordedWrite::Note(note)))
    }

    fn scribe(&self) -> Option<Arc<dyn Scribe>> {
        self.record.as_ref().map(|record| Arc::clone(&record.scribe))
    }

    fn take_open(&self) -> Option<OpenWriter> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A store that is dropped closes its reading sessions, also where a record of it is still held.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.readers.close();
        self.member.iter().for_each(|member| member.stop());
    }
}
