//! Registers, reads, replaces and deletes lanes.

use chancery_core::push::{NewRegistration, Registered, Registration, Resealed};
use chancery_protocol::TaskId;
use rusqlite::{Connection, OptionalExtension, params};

use super::begin::{BegunLane, Laning, Start};
use super::{origins, rows};
use crate::lanes;
use crate::sqlite::fault::SqliteFault;

/// Beside those of its task, or in place of the one by the same name.
pub(in crate::sqlite) fn register(
    connection: &Connection,
    laning: &mut Laning<'_>,
    new: &NewRegistration,
) -> Result<Registered, SqliteFault> {
    let registration = &new.registration;
    let sql = "SELECT num, seq, lanes, stage = 3, status_at FROM tasks WHERE id = ?1";
    let stand = connection.prepare_cached(sql)?.query_row([registration.task.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, usize>(2)?, row.get::<_, bool>(3)?, row.get::<_, i64>(4)?))
    });
    let Some((task, seq, of_task, ended, status_at)) = stand.optional()? else { return Ok(Registered::NoTask) };
    let named = "WHERE l.task = ?1 AND r.id = ?2";
    if let Some(found) = rows::one(connection, named, (task, registration.id.as_str()))? {
        return replace(connection, found, new);
    }
    if let Some(refusal) = laning.count(&registration.owner.tenant, of_task, new.limits)? {
        return Ok(refusal);
    }
    let BegunLane { lane, .. } = laning.begin(new, Start { task, seq, told: 0, ended_at: ended.then_some(status_at) })?;
    connection.prepare_cached("UPDATE tasks SET lanes = lanes + 1 WHERE num = ?1")?.execute([task])?;
    Ok(Registered::Kept { lane, replaced: false })
}

fn replace(connection: &Connection, found: rows::LaneRow, new: &NewRegistration) -> Result<Registered, SqliteFault> {
    let rows::LaneRow { mut lane, origin: before } = found;
    lanes::replace(&mut lane, new);
    put(connection, lane.number(), &new.registration)?;
    let origin = origins::join(connection, &new.registration.destination())?;
    connection.prepare_cached("UPDATE lanes SET origin = ?2 WHERE lane = ?1")?.execute((lane.number(), origin))?;
    rows::put_cursor(connection, lane.number(), &lane.cursor)?;
    origins::leave(connection, before)?;
    origins::reline(connection, origin)?;
    Ok(Registered::Kept { lane: lane.number(), replaced: true })
}

/// Under its old number.
fn put(connection: &Connection, lane: u64, registration: &Registration) -> Result<(), SqliteFault> {
    let mut put = connection.prepare_cached(
        "UPDATE registrations SET version = ?2, profile = ?3, events = ?4, url = ?5, scheme = ?6, kek_id = ?7, sealed = ?8,
                created_at = ?9, trace = ?10 WHERE lane = ?1",
    )?;
    rows::with_columns(registration, &lane, |columns| put.execute(columns))?;
    Ok(())
}

pub(super) fn unregister(connection: &Connection, task: &TaskId, id: &str) -> Result<Option<u64>, SqliteFault> {
    let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = ?1) AND r.id = ?2";
    let Some(found) = rows::one(connection, which, (task.as_str(), id))? else { return Ok(None) };
    let lane = found.lane.number();
    remove(connection, lane, found.origin, &found.lane.registration.owner.tenant)?;
    connection.prepare_cached("UPDATE tasks SET lanes = lanes - 1 WHERE id = ?1")?.execute([task.as_str()])?;
    Ok(Some(lane))
}

pub(super) fn remove(connection: &Connection, lane: u64, origin: i64, tenant: &str) -> Result<(), SqliteFault> {
    for sql in
        ["DELETE FROM lanes WHERE lane = ?1", "DELETE FROM registrations WHERE lane = ?1", "DELETE FROM attempts WHERE lane = ?1"]
    {
        connection.prepare_cached(sql)?.execute([lane])?;
    }
    origins::uncount(connection, tenant)?;
    origins::leave(connection, origin)
}

pub(super) const OF_TASK: &str =
    "SELECT l.lane, l.origin, t.tenant FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.task = ?1";

/// All lanes of a task that goes, or turns out to be none.
pub(in crate::sqlite) fn remove_all(connection: &Connection, task: i64) -> Result<(), SqliteFault> {
    let mut statement = connection.prepare_cached(OF_TASK)?;
    let lanes = statement.query_map([task], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?;
    for (lane, origin, tenant) in lanes.collect::<Result<Vec<_>, _>>()? {
        remove(connection, lane, origin, &tenant)?;
    }
    connection.prepare_cached("UPDATE tasks SET lanes = 0 WHERE num = ?1")?.execute([task])?;
    Ok(())
}

pub(super) const HOLDS: &str = "SELECT 1 FROM lanes WHERE task = ?1 AND due_at IS NOT NULL";

/// Whether a task must stay because there is something of it to deliver.
pub(in crate::sqlite) fn holds(connection: &Connection, task: i64) -> Result<bool, SqliteFault> {
    Ok(connection.prepare_cached(HOLDS)?.exists([task])?)
}

/// Answers how many had the secrets they were thought to have.
pub(super) fn reseal(connection: &Connection, anew: &[Resealed]) -> Result<u64, SqliteFault> {
    let mut statement = connection
        .prepare_cached("UPDATE registrations SET kek_id = ?2, sealed = ?3 WHERE lane = ?1 AND kek_id = ?4 AND sealed = ?5")?;
    let mut changed = 0;
    for Resealed { lane, before, after } in anew {
        let parameters = params![lane, after.kek_id, &*after.bytes, before.kek_id, &*before.bytes];
        changed += statement.execute(parameters)? as u64;
    }
    Ok(changed)
}
