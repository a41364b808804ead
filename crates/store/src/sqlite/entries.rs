//! Log entries as rows: several to a row on the way in, one by one on the way out.

use std::sync::Arc;

use chancery_core::{LogEntry, fitting, task_state};
use rusqlite::{Connection, OptionalExtension};

use super::fault::SqliteFault;
use super::schema::{ENTRY_BITS, MOST_ENTRIES};
use crate::rows::log::decode_row;

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
