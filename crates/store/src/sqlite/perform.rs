//! Hands writes to the writer's thread and waits for their answers.

use std::sync::Arc;

use chancery_core::{RecordNote, RecordedWrite, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::SqliteStore;
use super::fault::{self, SqliteFault};
use super::write_job::{WriteOrder, write_job};
use super::writer::{Job, StoreWriter};

impl SqliteStore {
    pub(super) async fn write<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        self.health.may_write()?;
        let (answer, answered) = oneshot::channel();
        self.writer.send(job(answer)).await.map_err(|_| fault::closed())?;
        answered.await.map_err(|_| fault::stopped())?
    }

    /// As one of many writes of its transaction.
    pub(super) async fn perform<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.perform_as_writer(what, move |writer| work(writer.connection)).await
    }

    /// The same for what shares prepared statements or counts with other writes, or adds to the record.
    pub(super) async fn perform_as_writer<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&mut StoreWriter<'_>) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(|answer| Job::Write(write_job(what, WriteOrder::Lasting, work, answer))).await
    }

    /// The same for what may say something for the record.
    pub(super) async fn perform_noting<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection, &mut dyn FnMut(&RecordNote)) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let scribe = self.record.as_ref().map(|record| Arc::clone(&record.scribe));
        let lines = move |note: &RecordNote| scribe.as_ref().map(|scribe| scribe.write(RecordedWrite::Note(note)));
        self.perform_as_writer(what, move |writer| {
            work(writer.connection, &mut |note| lines(note).iter().for_each(|lines| writer.add_to_record(lines)))
        })
        .await
    }

    /// Performs a write that matters only to this process. The answer does not wait for the disk; a later
    /// commit makes the write durable.
    pub(super) async fn perform_fleeting<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&Connection) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(|answer| Job::Write(write_job(what, WriteOrder::Fleeting, move |writer| work(writer.connection), answer)))
            .await
    }
}
