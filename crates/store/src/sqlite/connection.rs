//! Connections to the database, set up for what they are used for.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::SqliteOptions;
use super::fault::SqliteFault;

/// How long to wait for someone from outside who holds the database, such as an operator's shell.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the writer keeps of the database in memory. With SQLite's own 2 MB, tasks that are about to be forgotten were read again, which the
/// record had pushed out; and SQLite goes through all of it after many commits, so more is not better.
const CACHE_KIB: i64 = 3 * 1024;

/// More than there are, so that none is prepared twice.
const STATEMENTS: usize = 128;

pub(super) fn to_write(path: &Path, options: SqliteOptions) -> Result<Connection, SqliteFault> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    // Asking for the mode answers with the one that is in force.
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(SqliteFault::unreadable(format!(
            "the database insists on journal mode {mode}; its file system may not allow WAL"
        )));
    }
    connection.pragma_update(None, "synchronous", options.synchronous.word())?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Below this size the log's file is written over and over, which costs less than to cut and to grow it.
    let keep = i64::try_from(options.wal_limit_bytes).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", keep)?;
    // Below zero it is a size, not a number of pages.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    prepare_once(&connection)?;
    Ok(connection)
}

pub(super) fn to_read(path: &Path) -> Result<Connection, SqliteFault> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    prepare_once(&connection)?;
    Ok(connection)
}

/// Makes SQLite plan each statement once. Otherwise SQLite plans a statement that compares an indexed column
/// again for each value.
fn prepare_once(connection: &Connection) -> Result<(), SqliteFault> {
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_is_built_for_connections_that_belong_to_one_thread_each() {
        let connection = Connection::open_in_memory().unwrap();
        let mut statement = connection.prepare("PRAGMA compile_options").unwrap();
        let options: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        let built_with = |option: &str| options.iter().any(|name| name == option);
        for option in ["THREADSAFE=2", "DEFAULT_MEMSTATUS=0", "OMIT_SHARED_CACHE", "DEFAULT_LOOKASIDE=1200,256"] {
            assert!(built_with(option), "{option} of .cargo/config.toml is not in force: {options:?}");
        }
        for option in ["ENABLE_API_ARMOR", "ENABLE_STAT4"] {
            assert!(!built_with(option), "{option} is in force: {options:?}");
        }
    }
}
