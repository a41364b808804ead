//! Log entries as rows: several to a row, as a JSON array.

use std::sync::Arc;

use chancery_core::{LogEntry, StoreError, fitting};
use chancery_protocol::objects::from_json;
use chancery_protocol::{TaskEvent, Timestamp};

use super::UnreadableRow;

/// A row never holds more, so that reading a page out of a long log does not decode much that it skips.
const ENTRIES_PER_ROW: usize = 64;

/// Nor more entries than weigh this much, unless it is a single one.
const BYTES_PER_ROW: u64 = 256 * 1024;

/// Room for most rows, so that they are not moved as they grow.
const TYPICAL_ROW_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct LogRow {
    pub(crate) first_seq: i64,
    pub(crate) last_seq: i64,
    pub(crate) entries: String,
}

/// Encodes entries as rows. The requester of the append does this, so that the one writer only writes. A log has at most `most`
/// entries.
pub(crate) fn encode(entries: &[Arc<LogEntry>], most: u64) -> Result<Vec<LogRow>, StoreError> {
    let mut rows = Vec::with_capacity(entries.len().div_ceil(ENTRIES_PER_ROW));
    let mut rest = entries;
    while !rest.is_empty() {
        let candidates = &rest[..rest.len().min(ENTRIES_PER_ROW)];
        let (row, later) = rest.split_at(fitting(candidates, BYTES_PER_ROW));
        rows.push(encode_row(row, most)?);
        rest = later;
    }
    Ok(rows)
}

fn encode_row(entries: &[Arc<LogEntry>], most: u64) -> Result<LogRow, StoreError> {
    let seq = |entry: Option<&Arc<LogEntry>>| entry.map_or(0, |entry| entry.seq);
    let (first, last) = (seq(entries.first()), seq(entries.last()));
    if last > most {
        return Err(StoreError::new(format!("a task's log cannot have more than {most} entries")));
    }
    let lines: Vec<_> = entries.iter().map(|entry| (entry.seq, entry.at.micros(), &entry.event)).collect();
    let mut text = Vec::with_capacity(TYPICAL_ROW_BYTES);
    let written = serde_json::to_writer(&mut text, &lines).map_err(|error| error.to_string());
    let entries = written.and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()));
    let entries = entries.map_err(|error| StoreError::new(format!("an entry cannot be written as JSON: {error}")))?;
    Ok(LogRow { first_seq: first as i64, last_seq: last as i64, entries })
}

pub(crate) fn decode_row(text: &str) -> Result<Vec<LogEntry>, UnreadableRow> {
    let lines: Vec<(u64, i64, TaskEvent)> =
        from_json(text).map_err(|error| UnreadableRow::new(format!("a row of the log: {error}")))?;
    Ok(lines.into_iter().map(|(seq, at, event)| LogEntry { seq, at: Timestamp::from_micros(at), event }).collect())
}
