//! A few threads that read, each with a connection, so that reads wait neither for the writer nor on an async thread.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use chancery_core::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::SqliteOptions;
use super::connection;
use super::fault::{self, SqliteFault};
use super::health::Health;

enum Job {
    Read(Box<dyn FnOnce(&mut Connection) + Send>),
    /// No more jobs are taken; those that are queued are still done.
    Close,
}

/// Hands reads to the threads.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    queue: mpsc::Sender<Job>,
    health: Arc<Health>,
}

/// A handle to the readers that does not keep their threads alive.
#[derive(Debug)]
pub(super) struct WeakReaders {
    queue: mpsc::WeakSender<Job>,
    health: Arc<Health>,
}

impl WeakReaders {
    pub(super) fn upgrade(&self) -> Option<Readers> {
        self.queue.upgrade().map(|queue| Readers { queue, health: Arc::clone(&self.health) })
    }
}

impl Readers {
    pub(super) fn downgrade(&self) -> WeakReaders {
        WeakReaders { queue: self.queue.downgrade(), health: Arc::clone(&self.health) }
    }

    pub(super) fn start(
        path: &Path,
        options: SqliteOptions,
        health: &Arc<Health>,
    ) -> Result<(Self, Vec<JoinHandle<()>>), StoreError> {
        let (queue, jobs) = mpsc::channel(options.queue_limit.max(1));
        let jobs = Arc::new(Mutex::new(jobs));
        let threads = (0..options.readers.max(1)).map(|_| {
            let connection = connection::to_read(path).map_err(|fault| fault.while_doing("opening the database to read"))?;
            let jobs = Arc::clone(&jobs);
            let thread = std::thread::Builder::new().name("store-read".into()).spawn(move || serve(connection, &jobs));
            thread.map_err(|error| StoreError::caused_by("starting a reading thread failed", error))
        });
        Ok((Self { queue, health: Arc::clone(health) }, threads.collect::<Result<_, _>>()?))
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Read(Box::new(move |connection| drop(answer.send(work(connection)))));
        self.queue.send(job).await.map_err(|_| fault::closed())?;
        answered.await.map_err(|_| fault::stopped())?.map_err(|fault| {
            self.health.note(what, &fault);
            fault.while_doing(what)
        })
    }

    pub(super) async fn close(&self) {
        // A queue that is closed already is what we want.
        drop(self.queue.send(Job::Close).await);
    }
}

fn serve(mut connection: Connection, jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // One thread waits for the next job, the others for the lock.
        let mut waiting = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.blocking_recv() {
            Some(Job::Read(work)) => {
                drop(waiting);
                work(&mut connection);
            }
            Some(Job::Close) => waiting.close(),
            None => return,
        }
    }
}
