//! Log entries as rows: several to a row on the way in, one by one on the way out.

use std::sync::Arc;

use chancery_core::{LogEntry, StoreError, fitting, task_state};
use chancery_protocol::objects::from_json;
use chancery_protocol::{TaskEvent, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use super::fault::SqliteFault;
use super::schema::{ENTRY_BITS, MOST_ENTRIES};

/// A row never holds more, so that reading a page out of a long log does not decode much that it skips.
const ENTRIES_PER_ROW: usize = 64;

/// Nor more entries than weigh this much, unless it is a single one.
const BYTES_PER_ROW: u64 = 256 * 1024;

/// Room for most rows, so that they are not moved as they grow.
const TYPICAL_ROW_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct LogRow {
    pub(super) first_seq: i64,
    pub(super) last_seq: i64,
    pub(super) entries: String,
}

/// Encodes entries as rows. The requester of the append does this, so that the one writer thread only writes.
pub(super) fn encode(entries: &[Arc<LogEntry>]) -> Result<Vec<LogRow>, StoreError> {
    let mut rows = Vec::with_capacity(entries.len().div_ceil(ENTRIES_PER_ROW));
    let mut rest = entries;
    while !rest.is_empty() {
        let most = &rest[..rest.len().min(ENTRIES_PER_ROW)];
        let (row, later) = rest.split_at(fitting(most, BYTES_PER_ROW));
        rows.push(encode_row(row)?);
        rest = later;
    }
    Ok(rows)
}

fn encode_row(entries: &[Arc<LogEntry>]) -> Result<LogRow, StoreError> {
    let seq = |entry: Option<&Arc<LogEntry>>| entry.map_or(0, |entry| entry.seq);
    let (first, last) = (seq(entries.first()), seq(entries.last()));
    if last > MOST_ENTRIES {
        return Err(StoreError::new(format!("a task's log cannot have more than {MOST_ENTRIES} entries")));
    }
    let lines: Vec<_> = entries.iter().map(|entry| (entry.seq, entry.at.micros(), &entry.event)).collect();
    let mut text = Vec::with_capacity(TYPICAL_ROW_BYTES);
    let written = serde_json::to_writer(&mut text, &lines).map_err(|error| error.to_string());
    let entries = written.and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()));
    let entries = entries.map_err(|error| StoreError::new(format!("an entry cannot be written as JSON: {error}")))?;
    Ok(LogRow { first_seq: first as i64, last_seq: last as i64, entries })
}

pub(super) fn place(task: i64, seq: i64) -> i64 {
    (task << ENTRY_BITS) | seq
}

/// The places of all rows of a task.
pub(super) fn places(task: i64) -> (i64, i64) {
    (place(task, 0), place(task, MOST_ENTRIES as i64))
}

/// Entries after `after`, at most `limit` of them and no more than weigh `bytes` together, but at least one if there is one.
pub(super) fn read(
    connection: &mut Connection,
    id: &str,
    after: u64,
    limit: usize,
    bytes: u64,
) -> Result<Vec<Arc<LogEntry>>, SqliteFault> {
    let mut weight = 0_u64;
    let mut found = Vec::new();
    // One view for both questions: the number of a task that goes may become another's.
    let view = connection.transaction()?;
    let task = view.prepare_cached("SELECT num FROM tasks WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?;
    let Some(task) = task else { return Ok(found) };
    let (lowest, highest) = places(task);
    let first_wanted = place(task, after.saturating_add(1).min(MOST_ENTRIES) as i64);

    // The row that holds the first wanted entry may start before it.
    let mut statement = view.prepare_cached(
        "SELECT entries FROM log
         WHERE place BETWEEN ifnull((SELECT max(place) FROM log WHERE place BETWEEN ?1 AND ?2), ?2) AND ?3 AND last_seq > ?4
         ORDER BY place",
    )?;
    let after_bound = after.min(MOST_ENTRIES) as i64;
    let mut rows = statement.query((lowest, first_wanted, highest, after_bound))?;
    while found.len() < limit
        && weight <= bytes
        && let Some(row) = rows.next()?
    {
        let wanted =
            decode_row(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?.into_iter().filter(|entry| entry.seq > after);
        let read = found.len();
        found.extend(wanted.take(limit - found.len()).map(Arc::new));
        if bytes < u64::MAX {
            weight = found[read..].iter().fold(weight, |sum, entry| sum.saturating_add(task_state::weight(&entry.event)));
        }
    }
    if weight > bytes {
        found.truncate(fitting(&found, bytes));
    }
    let counts = |(entry, seq): (&Arc<LogEntry>, u64)| entry.seq == seq;
    if !found.iter().zip(after.saturating_add(1)..).all(counts) {
        return Err(SqliteFault::unreadable(format!(
            "the log of task {id} does not go on with entry {}",
            after.saturating_add(1)
        )));
    }
    Ok(found)
}

pub(super) fn decode_row(text: &str) -> Result<Vec<LogEntry>, SqliteFault> {
    let lines: Vec<(u64, i64, TaskEvent)> =
        from_json(text).map_err(|error| SqliteFault::unreadable(format!("a row of the log: {error}")))?;
    Ok(lines.into_iter().map(|(seq, at, event)| LogEntry { seq, at: Timestamp::from_micros(at), event }).collect())
}
