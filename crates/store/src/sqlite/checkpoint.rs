//! Carries what is in the write-ahead log over to the database file, beside the writer, whenever there is something.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::fault::Fault;

/// How much is collected before it is carried over: a page that changes often is then written once.
const PAUSE: Duration = Duration::from_millis(200);

/// How the writer tells that there is something to do. While nothing is written, nobody wakes up.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    written: bool,
    stopped: bool,
}

impl Bell {
    pub(super) fn ring(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.written {
            state.written = true;
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.changed.notify_one();
    }

    /// Waits for something to do, then a little for more of it. `false` when it is time to end.
    fn wait(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |state: &mut State| !state.written && !state.stopped;
        let state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, PAUSE, |state| !state.stopped);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.written = false;
        !state.stopped
    }
}

pub(super) fn run(connection: &Connection, bell: &Bell, wal_limit_bytes: u64) {
    while bell.wait() {
        match carry_over(connection, wal_limit_bytes) {
            Ok(true) => {}
            // A reader still looks at the old pages: try again after the next pause.
            Ok(false) => bell.ring(),
            Err(fault) => tracing::warn!(%fault, "carrying the write-ahead log over to the database failed"),
        }
    }
}

/// Whether nothing is left to be carried over.
fn carry_over(connection: &Connection, wal_limit_bytes: u64) -> Result<bool, Fault> {
    let page_size: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let (in_log, carried) = checkpoint(connection, "PASSIVE")?;
    if in_log.saturating_mul(page_size) <= wal_limit_bytes {
        return Ok(in_log == carried);
    }
    // While writers are busy the log never runs empty by itself. This makes the next one start at its beginning.
    checkpoint(connection, "RESTART").map(|(in_log, carried)| in_log == carried)
}

fn checkpoint(connection: &Connection, mode: &str) -> Result<(u64, u64), Fault> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    Ok(connection.prepare_cached(&sql)?.query_row([], |row| {
        let pages = |at| row.get::<_, i64>(at).map(|pages| u64::try_from(pages).unwrap_or(0));
        Ok((pages(1)?, pages(2)?))
    })?)
}
