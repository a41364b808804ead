//! Log entries, one by one, out of rows that hold several.

use std::sync::Arc;

use chancery_core::{LogEntry, fitting, task_state};
use deadpool_postgres::ClientWrapper;

use super::columns::{Columns as _, DatabaseSession, as_text, sought};
use super::fault::PostgresFault;
use crate::rows::log::decode_row;

/// The number of the last entry that a log can have.
pub(super) const MOST_ENTRIES: u64 = i64::MAX as u64;

/// So many rows are read at once, the next ones only if the page has room for them.
const ROWS_AT_ONCE: i64 = 64;

/// The row that holds the first wanted entry may start before it.
const ROWS: &str = "SELECT entries, last_seq FROM log
     WHERE task = (SELECT num FROM tasks WHERE id = $1) AND last_seq > $2
       AND seq >= coalesce((SELECT max(seq) FROM log WHERE task = (SELECT num FROM tasks WHERE id = $1) AND seq <= $2 + 1), 0)
     ORDER BY seq LIMIT $3";

/// Entries after `after`, at most `limit` of them and no more than weigh `bytes` together, but at least one if there is one.
pub(super) async fn read(
    session: &ClientWrapper,
    id: &str,
    after: u64,
    limit: usize,
    bytes: u64,
) -> Result<Vec<Arc<LogEntry>>, PostgresFault> {
    let (mut weight, mut found, mut last) = (0_u64, Vec::<Arc<LogEntry>>::new(), after.min(MOST_ENTRIES - 1).cast_signed());
    'pages: while found.len() < limit && weight <= bytes {
        let rows = session.rows(ROWS, &[&sought(id), &last, &ROWS_AT_ONCE]).await?;
        let is_last_page = (rows.len() as i64) < ROWS_AT_ONCE;
        for row in rows {
            if found.len() >= limit || weight > bytes {
                break 'pages;
            }
            let wanted = decode_row(as_text(row.bytes(0)?)?)?.into_iter().filter(|entry| entry.seq > after);
            let read = found.len();
            found.extend(wanted.take(limit - read).map(Arc::new));
            weight = found[read..].iter().fold(weight, |sum, entry| sum.saturating_add(task_state::weight(&entry.event)));
            last = row.try_get(1)?;
        }
        if is_last_page {
            break;
        }
    }
    if weight > bytes {
        found.truncate(fitting(&found, bytes));
    }
    let counts = |(entry, seq): (&Arc<LogEntry>, u64)| entry.seq == seq;
    if !found.iter().zip(after.saturating_add(1)..).all(counts) {
        let first = after.saturating_add(1);
        return Err(PostgresFault::unreadable(format!("the log of task {id} does not go on with entry {first}")));
    }
    Ok(found)
}
