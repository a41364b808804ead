//! Carries what is in the write-ahead log over to the database file, beside the writer, whenever there is something.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::fault::SqliteFault;

/// How much is collected before it is carried over: a page that changes often is then written once.
const PAUSE: Duration = Duration::from_millis(200);

/// Connects the writer with the checkpoint thread. While nothing is written, the checkpoint thread sleeps.
#[derive(Debug, Default)]
pub(super) struct CheckpointSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    written: bool,
    stopped: bool,
    too_long: bool,
}

impl CheckpointSignal {
    /// Something was written. Answers whether the log has become too long, once each time it has.
    pub(super) fn ring(&self) -> bool {
        let mut state = self.lock();
        if !state.written {
            state.written = true;
            self.changed.notify_one();
        }
        std::mem::take(&mut state.too_long)
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_one();
    }

    /// Waits for something to do, then a little for more of it. `false` when it is time to end.
    fn wait(&self) -> bool {
        let idle = |state: &mut State| !state.written && !state.stopped;
        let state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, PAUSE, |state| !state.stopped);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.written = false;
        !state.stopped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side of the signal. Dropping it ends the checkpoint thread.
#[derive(Debug)]
pub(super) struct CheckpointRequest(pub(super) Arc<CheckpointSignal>);

impl Drop for CheckpointRequest {
    fn drop(&mut self) {
        self.0.stop();
    }
}

pub(super) fn run(connection: &Connection, bell: &CheckpointSignal, wal_limit_bytes: u64) {
    while bell.wait() {
        match carry_over(connection) {
            Ok(carried) => {
                bell.lock().too_long = carried.bytes > wal_limit_bytes;
                if !carried.all {
                    // A reader still looks at the old pages: try again after the next pause.
                    bell.lock().written = true;
                }
            }
            Err(fault) => {
                tracing::warn!(%fault, "cannot copy the write-ahead log into the database; the store tries again after the next write")
            }
        }
    }
    // The writer has ended: leave everything in the one file.
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(%error, "cannot empty the write-ahead log at the stop; keep the -wal file, and the next start reads it");
    }
}

pub(super) struct Carried {
    /// Of the log, at this moment.
    bytes: u64,
    /// Nothing was left that a reader kept from being carried over.
    all: bool,
}

/// Copies pages of the write-ahead log into the database, and waits for no reader. When all pages are copied
/// and no reader uses the log, SQLite restarts the log at the next write. Beside a busy writer some pages
/// always remain. So the writer does the same between two batches when the log is too long.
pub(super) fn carry_over(connection: &Connection) -> Result<Carried, SqliteFault> {
    let page_bytes: u64 = connection.prepare_cached("PRAGMA page_size")?.query_row([], |row| row.get(0))?;
    let mut checkpoint = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
    let (in_log, carried) = checkpoint.query_row([], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    let pages = u64::try_from(in_log).unwrap_or(0);
    Ok(Carried { bytes: pages.saturating_mul(page_bytes), all: in_log == carried })
}
