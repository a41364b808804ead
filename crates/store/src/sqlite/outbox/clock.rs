//! Lanes and letters follow a clock that was set.

use chancery_core::push::ClockSet;
use rusqlite::Connection;

use super::{origins, rows};
use crate::sqlite::fault::SqliteFault;

/// All at once: it goes through every lane, but clocks are not set often.
pub(super) fn clock_set(connection: &Connection, set: ClockSet) -> Result<(), SqliteFault> {
    let (was, is) = (set.was.micros(), set.is.micros());
    let sql = "SELECT lane FROM lanes WHERE lease_until > 0 OR first_fail_at IS NOT NULL OR next_at > ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let lanes = statement.query_map([was.min(is)], |row| row.get(0))?.collect::<Result<Vec<u64>, _>>()?;
    for lane in lanes {
        if let Some((mut cursor, _)) = rows::cursor_of(connection, lane)? {
            cursor.clock_set(set);
            rows::put_cursor(connection, lane, &cursor)?;
        }
    }
    let sql = "UPDATE push_origins SET parked_until = iif(parked_until > ?1, parked_until + ?2, min(parked_until, ?3))
               WHERE parked_until > 0";
    connection.prepare_cached(sql)?.execute((was, set.by_micros(), is))?;
    let sql = "UPDATE dead_letters SET replay_at = iif(replay_at > ?1, replay_at + ?2, min(replay_at, ?3))
               WHERE replay_at IS NOT NULL";
    connection.prepare_cached(sql)?.execute((was, set.by_micros(), is))?;
    let mut statement = connection.prepare_cached("SELECT num FROM push_origins")?;
    let all = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    all.into_iter().try_for_each(|origin| origins::reline(connection, origin))
}
