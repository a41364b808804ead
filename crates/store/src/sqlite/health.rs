//! What the store has seen of its own health: real reads and writes note it, so that a probe of readiness has nothing to write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chancery_core::{StoreError, StoreTrouble};

use super::fault::SqliteFault;

/// While writes fail, a probe of readiness tries one at most this often.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Below so many free bytes a probe tries a write: the next transaction may find no room.
const FEW_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Health {
    /// Whether `state` has anything in it, so that a write that went well does not lock.
    ill: AtomicBool,
    state: Mutex<Illness>,
    /// The last write that was tried because there is little room.
    tried_low: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Illness {
    /// The last read or write could not be done.
    failing: Option<Failing>,
    /// Something was damaged. Stays: it does not mend by itself.
    damage: Option<Damage>,
}

#[derive(Debug)]
struct Failing {
    reason: String,
    tried: Instant,
}

#[derive(Clone, Debug)]
struct Damage {
    reason: String,
    /// The structure of the file and not only the content of a row: to write would make it worse.
    no_writes: bool,
}

/// What a probe of readiness is to do.
#[derive(Debug)]
pub(super) enum Outlook {
    Well,
    /// Writes failed; it is time to try one.
    Try,
    Ill(StoreError),
}

impl Health {
    fn state(&self) -> MutexGuard<'_, Illness> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction was committed.
    pub(super) fn wrote(&self) {
        if self.ill.load(Ordering::Relaxed) {
            let mut state = self.state();
            if let Some(Failing { reason, .. }) = state.failing.take() {
                tracing::info!(reason, "the store can write again");
            }
            self.ill.store(state.damage.is_some(), Ordering::Relaxed);
        }
    }

    /// A read or a write could not be done.
    pub(super) fn note(&self, what: &str, fault: &SqliteFault) {
        let reason = || format!("{what} failed: {fault}");
        match fault.trouble() {
            StoreTrouble::None | StoreTrouble::HeldElsewhere | StoreTrouble::CallWithdrawn => return,
            StoreTrouble::Unavailable | StoreTrouble::Away => {
                let mut state = self.state();
                if state.failing.is_none() {
                    tracing::error!(reason = reason(), "the store cannot write; /readyz answers 503 until it can");
                }
                state.failing = Some(Failing { reason: reason(), tried: Instant::now() });
            }
            StoreTrouble::Damaged => {
                let no_writes = fault.is_structural();
                let mut state = self.state();
                if state.damage.as_ref().is_none_or(|known| no_writes && !known.no_writes) {
                    tracing::error!(
                        reason = reason(),
                        no_writes,
                        "the database is damaged; /readyz answers 503 until the node is started on a sound one. \
                         `chancery store check` names what is damaged"
                    );
                    state.damage = Some(Damage { reason: reason(), no_writes });
                }
            }
        }
        self.ill.store(true, Ordering::Relaxed);
    }

    /// Whether something may be written to the file.
    pub(super) fn may_write(&self) -> Result<(), StoreError> {
        if !self.ill.load(Ordering::Relaxed) {
            return Ok(());
        }
        match &self.state().damage {
            Some(damage) if damage.no_writes => Err(damaged(&damage.reason)),
            _ => Ok(()),
        }
    }

    /// The same for a probe, which also looks at the room on the disk. With little of it a write is tried, once a second at most.
    pub(super) fn outlook_with_room(&self, free_bytes: Option<u64>) -> Outlook {
        let outlook = self.outlook();
        if !matches!(outlook, Outlook::Well) || free_bytes.is_none_or(|free| free >= FEW_BYTES) {
            return outlook;
        }
        let mut tried = self.tried_low.lock().unwrap_or_else(PoisonError::into_inner);
        if tried.is_some_and(|tried| tried.elapsed() < TRY_EVERY) {
            return outlook;
        }
        *tried = Some(Instant::now());
        Outlook::Try
    }

    pub(super) fn outlook(&self) -> Outlook {
        if !self.ill.load(Ordering::Relaxed) {
            return Outlook::Well;
        }
        let mut state = self.state();
        if let Some(damage) = &state.damage {
            return Outlook::Ill(damaged(&damage.reason));
        }
        match &mut state.failing {
            Some(failing) if failing.tried.elapsed() < TRY_EVERY => {
                Outlook::Ill(StoreError::new(failing.reason.clone()).of_trouble(StoreTrouble::Unavailable))
            }
            Some(failing) => {
                failing.tried = Instant::now();
                Outlook::Try
            }
            None => Outlook::Well,
        }
    }
}

/// Bytes that may still be written to the disk of a file, if the system says.
#[cfg(unix)]
pub(super) fn free_bytes(file: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(file).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_file: &Path) -> Option<u64> {
    None
}

fn damaged(reason: &str) -> StoreError {
    StoreError::new(format!("the database is damaged: {reason}")).of_trouble(StoreTrouble::Damaged)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rusqlite::ffi;

    use super::*;

    fn fault(code: i32) -> SqliteFault {
        SqliteFault::Sqlite(Arc::new(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)))
    }

    #[test]
    fn a_full_disk_is_remembered_until_a_write_goes_well() {
        let health = Health::default();
        assert!(matches!(health.outlook(), Outlook::Well));
        health.note("writing", &fault(ffi::SQLITE_FULL));
        let Outlook::Ill(error) = health.outlook() else { panic!("it has just failed") };
        assert!(error.to_string().starts_with("writing failed: ") && error.trouble == StoreTrouble::Unavailable, "{error}");
        health.may_write().expect("the next write may find room");
        health.state().failing.as_mut().unwrap().tried -= TRY_EVERY;
        assert!(matches!(health.outlook(), Outlook::Try), "once");
        assert!(matches!(health.outlook(), Outlook::Ill(_)), "and not again at once");
        health.wrote();
        assert!(matches!(health.outlook(), Outlook::Well));
    }

    #[test]
    fn where_there_is_little_room_a_probe_tries_a_write_once_a_second() {
        let health = Health::default();
        assert!(matches!(health.outlook_with_room(None), Outlook::Well));
        assert!(matches!(health.outlook_with_room(Some(FEW_BYTES)), Outlook::Well));
        assert!(matches!(health.outlook_with_room(Some(FEW_BYTES - 1)), Outlook::Try));
        assert!(matches!(health.outlook_with_room(Some(0)), Outlook::Well), "not again at once");
        *health.tried_low.lock().unwrap() = Instant::now().checked_sub(TRY_EVERY);
        assert!(matches!(health.outlook_with_room(Some(0)), Outlook::Try));
        health.note("a trial write", &fault(ffi::SQLITE_FULL));
        assert!(matches!(health.outlook_with_room(Some(0)), Outlook::Ill(_)));
    }

    #[test]
    fn damage_stays_and_only_that_of_the_files_structure_stops_writes() {
        let health = Health::default();
        health.note("reading", &SqliteFault::unreadable("a row of the log"));
        health.wrote();
        assert!(matches!(health.outlook(), Outlook::Ill(_)));
        health.may_write().expect("the rest is sound");
        health.note("reading", &fault(ffi::SQLITE_CORRUPT));
        assert_eq!(health.may_write().unwrap_err().trouble, StoreTrouble::Damaged);
        health.wrote();
        assert!(matches!(health.outlook(), Outlook::Ill(_)));
    }

    #[test]
    fn what_is_wrong_with_one_call_says_nothing_about_the_store() {
        let health = Health::default();
        health.note("writing", &fault(ffi::SQLITE_CONSTRAINT));
        assert!(matches!(health.outlook(), Outlook::Well));
    }
}
