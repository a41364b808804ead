//! Forgets finished tasks, oldest first. The space they took is used again, so the file does not grow.

use chancery_core::SweepPlan;
use chancery_protocol::Timestamp;
use rusqlite::Connection;

use super::entries::places;
use super::fault::Fault;
use super::schema::IS_FINISHED;

/// How many tasks have to go. Asked on a reading connection: counting takes time that writers need not wait for.
pub(super) fn due(connection: &mut Connection, plan: SweepPlan) -> Result<u64, Fault> {
    let view = connection.transaction()?;
    let count = |sql: String, bound: i64| view.prepare_cached(&sql)?.query_row([bound], |row| row.get::<_, u64>(0));
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    let too_old = match plan.older_than {
        Some(bound) => count(
            format!("SELECT count(*) FROM (SELECT 1 FROM tasks WHERE {IS_FINISHED} AND status_at < ?1 LIMIT {at_most})"),
            bound.micros(),
        )?,
        None => 0,
    };
    let too_many = match plan.keep_at_most {
        Some(keep) => count(format!("SELECT count(*) FROM tasks WHERE {IS_FINISHED} AND 0 = ?1"), 0)?.saturating_sub(keep),
        None => 0,
    };
    Ok(too_old.max(too_many).min(plan.at_most))
}

/// Removes that many tasks. Part of a batch's transaction.
pub(super) fn remove(connection: &Connection, count: u64, now: Timestamp) -> Result<u64, Fault> {
    connection
        .prepare_cached(
            "UPDATE tasks SET key = NULL, key_fingerprint = NULL, key_expires_at = NULL
             WHERE key IS NOT NULL AND key_expires_at <= ?1",
        )?
        .execute([now.micros()])?;

    let oldest = format!("SELECT num FROM tasks WHERE {IS_FINISHED} ORDER BY status_at, id LIMIT ?1");
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let tasks =
        connection.prepare_cached(&oldest)?.query_map([count], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut remove_log = connection.prepare_cached("DELETE FROM log WHERE place BETWEEN ?1 AND ?2")?;
    let mut remove_task = connection.prepare_cached("DELETE FROM tasks WHERE num = ?1")?;
    for task in &tasks {
        remove_log.execute(places(*task))?;
        remove_task.execute([task])?;
    }
    Ok(tasks.len() as u64)
}
