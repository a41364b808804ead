//! The record, as rows: a block for each transaction that added to it, and what was signed.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_core::{Block, Checkpoint, Record, RecordEnd, RecordNote, RecordedWrite, Scribe, StoreError};
use chancery_protocol::Timestamp;
use tokio_postgres::Row;

use super::columns::{self, Columns as _, DatabaseSession, limit};
use super::fault::PostgresFault;
use super::readers::{PostgresReaders, read};
use super::requests::WriteRequests;

/// The record of a store that is open. It does not keep the store open.
#[derive(Debug)]
pub(super) struct PostgresRecord {
    pub(super) scribe: Arc<dyn Scribe>,
    pub(super) requests: WriteRequests,
    pub(super) readers: PostgresReaders,
    /// A member of a cluster writes and reads a book of its own.
    pub(super) book: i64,
}

#[async_trait]
impl Record for PostgresRecord {
    async fn note(&self, note: RecordNote) -> Result<(), StoreError> {
        let lines = self.scribe.write(RecordedWrite::Note(&note));
        let what = "adding to the record";
        self.requests
            .perform(what, lines, |lines, state| {
                Box::pin(async move {
                    state.add_to_record(lines);
                    Ok(())
                })
            })
            .await
    }

    async fn sign(&self, at: Timestamp) -> Result<(), StoreError> {
        let what = "adding to the record";
        self.requests
            .perform(what, at, |at, state| {
                Box::pin(async move {
                    state.sign(*at);
                    Ok(())
                })
            })
            .await
    }

    async fn blocks(&self, from: u64, most: usize) -> Result<Vec<Block>, StoreError> {
        read!(self.readers, "reading the record", |db| blocks(db, self.book, from, most))
    }

    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError> {
        read!(self.readers, "reading the record's checkpoints", |db| checkpoints(db, self.book, after))
    }

    async fn forget(&self, before: u64) -> Result<u64, StoreError> {
        let what = "forgetting old entries of the record";
        self.requests
            .perform(what, before, |before, state| {
                Box::pin(async move { forget(&*state.session()?, state.identity.book(), *before).await })
            })
            .await
    }
}

/// A seal signs all that the checkpoints before it in its segment did. They would be gone through at each look at the record.
async fn drop_signed_before<D: DatabaseSession>(db: &D, book: i64, end: u64) -> Result<(), PostgresFault> {
    let sql = "DELETE FROM record_checkpoints WHERE book = $1 AND covers <= $2 AND NOT sealed";
    db.execute(sql, &[&book, &end.cast_signed()]).await?;
    Ok(())
}

const CHECKPOINT: &str = "SELECT number, covers, sealed, at, body, signature FROM record_checkpoints";

/// Where the record goes on after a restart.
pub(super) async fn end<D: DatabaseSession>(db: &D, book: i64) -> Result<RecordEnd, PostgresFault> {
    let newest = columns::row(db, &format!("{CHECKPOINT} WHERE book = $1 ORDER BY number DESC LIMIT 1"), &[&book]).await?;
    let newest = newest.as_ref().map(checkpoint).transpose()?;
    let sealed = format!("{CHECKPOINT} WHERE book = $1 AND sealed ORDER BY number DESC LIMIT 1");
    let sealed = columns::row(db, &sealed, &[&book]).await?;
    let sealed = sealed.as_ref().map(checkpoint).transpose()?;
    let open = sealed.as_ref().map_or(0, |sealed| sealed.end);
    Ok(RecordEnd { blocks: blocks(db, book, open, usize::MAX).await?, sealed, newest })
}

async fn blocks<D: DatabaseSession>(db: &D, book: i64, from: u64, most: usize) -> Result<Vec<Block>, PostgresFault> {
    let sql = "SELECT first, count, at, hash, entries FROM record WHERE book = $1 AND first >= $2 ORDER BY first LIMIT $3";
    columns::each(db.rows(sql, &[&book, &from.cast_signed(), &limit(most)]).await?, |row| {
        Ok(Block {
            first: row.count(0)?,
            count: row.count(1)?,
            at: row.time(2)?,
            hash: row.digest(3)?,
            entries: row.bytes(4)?.to_vec(),
        })
    })
}

async fn checkpoints<D: DatabaseSession>(db: &D, book: i64, after: u64) -> Result<Vec<Checkpoint>, PostgresFault> {
    let sql = format!("{CHECKPOINT} WHERE book = $1 AND covers > $2 ORDER BY number");
    columns::each(db.rows(&sql, &[&book, &after.cast_signed()]).await?, checkpoint)
}

/// Part of a batch's transaction. The seals stay.
async fn forget<D: DatabaseSession>(db: &D, book: i64, before: u64) -> Result<u64, PostgresFault> {
    let gone = db.execute("DELETE FROM record WHERE book = $1 AND first < $2", &[&book, &before.cast_signed()]).await?;
    drop_signed_before(db, book, before).await?;
    Ok(gone)
}

fn checkpoint(row: &Row) -> Result<Checkpoint, PostgresFault> {
    Ok(Checkpoint {
        number: row.count(0)?,
        end: row.count(1)?,
        sealed: row.try_get(2)?,
        at: row.time(3)?,
        body: row.free_text(4)?.as_ref().to_owned(),
        signature: row.bytes(5)?.to_vec(),
    })
}
