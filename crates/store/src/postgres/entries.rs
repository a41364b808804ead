//! Log entries, one by one, out of rows that hold several.

use std::borrow::Cow;
use std::sync::Arc;

use chancery_core::{LogEntry, fitting, task_state};
use chancery_protocol::TaskId;
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

/// So many rows of each of several tasks are read at once.
const ROWS_OF_EACH: i64 = 4;

/// The same for several tasks, each with the number after which it is read.
const ROWS_OF_SEVERAL: &str = "SELECT asked.place, found.entries
     FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (id, after, place)
     JOIN tasks ON tasks.id = asked.id
     CROSS JOIN LATERAL (SELECT entries, seq FROM log WHERE task = tasks.num AND last_seq > asked.after
         AND seq >= coalesce((SELECT max(seq) FROM log WHERE task = tasks.num AND seq <= asked.after + 1), 0)
         ORDER BY seq LIMIT $3) AS found
     ORDER BY asked.place, found.seq";

/// The entries after a number of each of several tasks, in one query. Of each task no more than weigh `bytes` together, but at least
/// one if there is one.
pub(super) async fn read_several(
    session: &ClientWrapper,
    tasks: &[(TaskId, u64)],
    bytes: u64,
) -> Result<Vec<Vec<Arc<LogEntry>>>, PostgresFault> {
    let ids: Vec<Cow<'_, str>> = tasks.iter().map(|(task, _)| sought(task.as_str())).collect();
    let after: Vec<i64> = tasks.iter().map(|(_, after)| (*after).min(MOST_ENTRIES - 1).cast_signed()).collect();
    let mut found = vec![Vec::<Arc<LogEntry>>::new(); tasks.len()];
    for row in session.rows(ROWS_OF_SEVERAL, &[&ids, &after, &ROWS_OF_EACH]).await? {
        let place = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0);
        let Some((of_task, (_, after))) = found.get_mut(place.wrapping_sub(1)).zip(tasks.get(place.wrapping_sub(1))) else {
            continue;
        };
        let wanted = decode_row(as_text(row.bytes(1)?)?)?.into_iter().filter(|entry| entry.seq > *after);
        of_task.extend(wanted.map(Arc::new));
    }
    for (entries, (task, after)) in found.iter_mut().zip(tasks) {
        let most = fitting(entries, bytes);
        entries.truncate(most);
        check_numbers(entries, task.as_str(), *after)?;
    }
    Ok(found)
}

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
    check_numbers(&found, id, after)?;
    Ok(found)
}

fn check_numbers(found: &[Arc<LogEntry>], id: &str, after: u64) -> Result<(), PostgresFault> {
    let first = after.saturating_add(1);
    if found.iter().zip(first..).all(|(entry, seq)| entry.seq == seq) {
        return Ok(());
    }
    Err(PostgresFault::unreadable(format!("the log of task {id} does not go on with entry {first}")))
}
