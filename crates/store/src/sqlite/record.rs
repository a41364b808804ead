//! The record, as rows: a block for each transaction that added to it, and what was signed.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Block, Chain, Checkpoint, Record, RecordEnd, RecordNote, RecordedWrite, Scribe, StoreError};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use tokio::sync::{mpsc, oneshot};

use super::fault::{self, SqliteFault};
use super::readers::WeakReaders;
use super::write_job::{WriteOrder, write_job};
use super::writer::{Job, StoreWriter};

/// The record of a store that is open. It does not keep the store open.
#[derive(Debug)]
pub(super) struct SqliteRecord {
    pub(super) scribe: Arc<dyn Scribe>,
    pub(super) writer: mpsc::WeakSender<Job>,
    pub(super) readers: WeakReaders,
}

impl SqliteRecord {
    async fn perform<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Fn(&mut StoreWriter<'_>) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let writer = self.writer.upgrade().ok_or_else(fault::closed)?;
        let (answer, answered) = oneshot::channel();
        writer.send(Job::Write(write_job(what, WriteOrder::Lasting, work, answer))).await.map_err(|_| fault::closed())?;
        answered.await.map_err(|_| fault::stopped())?
    }
}

#[async_trait]
impl Record for SqliteRecord {
    async fn note(&self, note: RecordNote) -> Result<(), StoreError> {
        let lines = self.scribe.write(RecordedWrite::Note(&note));
        self.perform("adding to the record", move |writer| {
            writer.add_to_record(&lines);
            Ok(())
        })
        .await
    }

    async fn sign(&self, at: Timestamp) -> Result<(), StoreError> {
        self.perform("adding to the record", move |writer| {
            writer.sign(at);
            Ok(())
        })
        .await
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        let readers = self.readers.upgrade().ok_or_else(fault::closed)?;
        readers.read("reading the record", move |connection| blocks(connection, from, limit)).await
    }

    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError> {
        let readers = self.readers.upgrade().ok_or_else(fault::closed)?;
        readers.read("reading the record's checkpoints", move |connection| checkpoints(connection, after)).await
    }

    async fn forget(&self, before: u64) -> Result<u64, StoreError> {
        self.perform("forgetting old entries of the record", move |writer| forget(writer.connection, before)).await
    }
}

/// Part of a batch's transaction.
pub(super) fn keep(connection: &Connection, chain: &dyn Chain) -> Result<(), SqliteFault> {
    let unwritten = chain.unwritten();
    for Block { first, count, at, hash, entries } in &unwritten.blocks {
        connection
            .prepare_cached("INSERT INTO record (first, count, at, hash, entries, shorthand) VALUES (?1, ?2, ?3, ?4, '', ?5)")?
            .execute((first, count, at.micros(), hash.as_slice(), entries))?;
    }
    for Checkpoint { number, end, sealed, at, body, signature } in &unwritten.checkpoints {
        let put = "INSERT INTO record_checkpoints (number, end, sealed, at, body, signature) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        connection.prepare_cached(put)?.execute((number, end, sealed, at.micros(), body, signature))?;
        if *sealed {
            drop_signed_before(connection, *end)?;
        }
    }
    Ok(())
}

/// A seal signs all that the checkpoints before it in its segment did. They would be gone through at each look at the record.
fn drop_signed_before(connection: &Connection, end: u64) -> Result<(), SqliteFault> {
    connection.prepare_cached("DELETE FROM record_checkpoints WHERE end <= ?1 AND NOT sealed")?.execute([end])?;
    Ok(())
}

/// Where the record goes on after a restart.
pub(super) fn end(connection: &Connection) -> Result<RecordEnd, SqliteFault> {
    let one = |sql: &str| connection.query_row(sql, [], checkpoint).optional();
    let newest = one("SELECT number, end, sealed, at, body, signature FROM record_checkpoints ORDER BY number DESC LIMIT 1")?;
    let sealed = match &newest {
        Some(newest) if newest.sealed => Some(newest.clone()),
        Some(_) => one(
            "SELECT number, end, sealed, at, body, signature FROM record_checkpoints WHERE sealed ORDER BY number DESC LIMIT 1",
        )?,
        None => None,
    };
    let open = sealed.as_ref().map_or(0, |sealed| sealed.end);
    Ok(RecordEnd { blocks: blocks(connection, open, usize::MAX)?, sealed, newest })
}

fn blocks(connection: &Connection, from: u64, limit: usize) -> Result<Vec<Block>, SqliteFault> {
    let sql = "SELECT first, count, at, hash, ifnull(shorthand, entries) FROM record WHERE first >= ?1 ORDER BY first LIMIT ?2";
    all(connection, sql, (from, i64::try_from(limit).unwrap_or(i64::MAX)), |row| {
        Ok(Block {
            first: row.get(0)?,
            count: row.get(1)?,
            at: Timestamp::from_micros(row.get(2)?),
            hash: row.get(3)?,
            entries: row.get_ref(4)?.as_bytes()?.to_vec(),
        })
    })
}

fn checkpoints(connection: &Connection, after: u64) -> Result<Vec<Checkpoint>, SqliteFault> {
    let sql = "SELECT number, end, sealed, at, body, signature FROM record_checkpoints WHERE end > ?1 ORDER BY number";
    all(connection, sql, [after], checkpoint)
}

/// Part of a batch's transaction. The seals stay.
pub(super) fn forget(connection: &Connection, before: u64) -> Result<u64, SqliteFault> {
    let gone = connection.prepare_cached("DELETE FROM record WHERE first < ?1")?.execute([before])?;
    drop_signed_before(connection, before)?;
    Ok(gone as u64)
}

fn checkpoint(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    Ok(Checkpoint {
        number: row.get(0)?,
        end: row.get(1)?,
        sealed: row.get(2)?,
        at: Timestamp::from_micros(row.get(3)?),
        body: row.get(4)?,
        signature: row.get(5)?,
    })
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, SqliteFault> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, read)?;
    rows.collect::<rusqlite::Result<_>>().map_err(SqliteFault::from)
}
