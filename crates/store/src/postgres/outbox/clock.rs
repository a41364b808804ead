//! Lanes and letters follow a clock that was set.

use std::collections::BTreeSet;

use chancery_core::push::ClockSet;

use super::origins;
use super::rows::{self, LaneCursor};
use crate::postgres::columns::{self, DatabaseSession};
use crate::postgres::fault::PostgresFault;

/// All at once: it goes through every lane, but clocks are not set often.
pub(super) async fn clock_set<D: DatabaseSession>(db: &D, set: ClockSet) -> Result<(), PostgresFault> {
    let (was, is) = (set.was.micros(), set.is.micros());
    let planned = "WHERE l.lease_until > 0 OR l.first_fail_at IS NOT NULL OR l.next_at > $1";
    for LaneCursor { mut cursor, lane, .. } in rows::cursors(db, planned, &[&was.min(is)]).await? {
        cursor.clock_set(set);
        rows::put_cursor(db, lane, &cursor).await?;
    }
    for sql in [
        "UPDATE push_origins SET parked_until = CASE WHEN parked_until > $1 THEN parked_until + $2 ELSE least(parked_until, $3) END
         WHERE parked_until > 0",
        "UPDATE dead_letters SET replay_at = CASE WHEN replay_at > $1 THEN replay_at + $2 ELSE least(replay_at, $3) END
         WHERE replay_at IS NOT NULL",
    ] {
        db.execute(sql, &[&was, &set.by_micros(), &is]).await?;
    }
    let all = columns::each(db.rows("SELECT num FROM push_origins", &[]).await?, |row| Ok(row.try_get(0)?))?;
    origins::reline_all(db, &BTreeSet::from_iter(all)).await
}
