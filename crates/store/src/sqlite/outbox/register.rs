//! Lanes begin, are taken over, and go.

use chancery_core::push::{Lane, NewRegistration, Registered, Registration, RegistrationLimits, Resealed};
use chancery_core::{Appended, Progress, TaskRecord};
use chancery_protocol::{TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{origins, rows};
use crate::sqlite::fault::Fault;
use crate::sqlite::find::dialect_name;
use crate::{lanes, numbering};

/// Beside those of its task, or in place of the one by the same name.
pub(super) fn register(connection: &Connection, new: &NewRegistration) -> Result<Registered, Fault> {
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
    if let Some(refusal) = origins::too_many(connection, &registration.owner.tenant, of_task, new.limits)? {
        return Ok(refusal);
    }
    let lane = begin(connection, task, new, Start { seq, told: 0 }, ended.then_some(status_at))?;
    Ok(Registered::Kept { lane: lane.number(), replaced: false })
}

/// With the task that is being made.
pub(in crate::sqlite) fn begin_with_task(
    connection: &Connection,
    task: i64,
    new: &NewRegistration,
    progress: &Progress,
) -> Result<Appended, Fault> {
    let ended = numbering::is_finished(progress).then_some(progress.status_at.micros());
    let told = if new.held { 0 } else { progress.seq };
    let lane = begin(connection, task, new, Start { seq: 0, told }, ended)?;
    Ok(lanes::appended(lane.cursor.is_pending(), false))
}

/// Where a lane begins.
struct Start {
    /// After this entry.
    seq: u64,
    /// Everything up to this one is to be told.
    told: u64,
}

pub(in crate::sqlite) fn too_many(
    connection: &Connection,
    task: &TaskRecord,
    limits: RegistrationLimits,
) -> Result<Option<Registered>, Fault> {
    origins::too_many(connection, &task.owner.tenant, 0, limits)
}

/// A row written once, as it is to be.
fn begin(connection: &Connection, task: i64, new: &NewRegistration, start: Start, ended_at: Option<i64>) -> Result<Lane, Fault> {
    let registration = &new.registration;
    let lane = put(connection, None, registration)?;
    let origin = origins::join(connection, &registration.destination())?;
    let mut lane = lanes::begin(new, lane, start.seq);
    lane.cursor.append(start.told, registration.created_at);
    let (cursor, due_at) = (&lane.cursor, lanes::due_at(&lane.cursor));
    connection
        .prepare_cached(
            "INSERT INTO lanes (lane, task, origin, state, head, tail, attempt, refusals, next_at, epoch, lease_until, ended_at, tries,
                                span_to, span_kind, due_at)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, 0, 0, ?6, 0, 0, ?7, 0, ?8, ?9, ?10)",
        )?
        .execute(params![
            lane.number(),
            task,
            origin,
            cursor.head,
            cursor.tail,
            cursor.next_at.micros(),
            ended_at,
            cursor.span.map(|span| span.to),
            cursor.span.map(|span| rows::kind_number(span.kind)),
            due_at.map(Timestamp::micros),
        ])?;
    if let Some(due_at) = due_at {
        origins::hurry(connection, origin, due_at)?;
    }
    connection.prepare_cached("UPDATE tasks SET lanes = lanes + 1 WHERE num = ?1")?.execute([task])?;
    origins::count(connection, &registration.owner.tenant, 1)?;
    Ok(lane)
}

fn replace(connection: &Connection, found: rows::Found, new: &NewRegistration) -> Result<Registered, Fault> {
    let rows::Found { mut lane, origin: before } = found;
    lanes::replace(&mut lane, new);
    put(connection, Some(lane.number()), &new.registration)?;
    let origin = origins::join(connection, &new.registration.destination())?;
    connection.prepare_cached("UPDATE lanes SET origin = ?2 WHERE lane = ?1")?.execute((lane.number(), origin))?;
    rows::put_cursor(connection, lane.number(), &lane.cursor)?;
    origins::leave(connection, before)?;
    origins::reline(connection, origin)?;
    Ok(Registered::Kept { lane: lane.number(), replaced: true })
}

/// Under its old number, or a new one. Answers which.
fn put(connection: &Connection, lane: Option<u64>, registration: &Registration) -> Result<u64, Fault> {
    let sealed = registration.sealed.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO registrations (lane, id, version, profile, events, url, scheme, kek_id, sealed, created_at, trace)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (lane) DO UPDATE SET version = ?3, profile = ?4, events = ?5, url = ?6, scheme = ?7, kek_id = ?8,
                    sealed = ?9, created_at = ?10, trace = ?11",
        )?
        .execute(params![
            lane,
            registration.id.as_str(),
            dialect_name(registration.version),
            registration.profile.as_str(),
            rows::events_name(registration.events),
            &*registration.url,
            registration.scheme.as_deref(),
            sealed.map(|sealed| &*sealed.kek_id),
            sealed.map(|sealed| &*sealed.bytes),
            registration.created_at.micros(),
            registration.trace.0.to_be_bytes(),
        ])?;
    Ok(lane.unwrap_or(connection.last_insert_rowid().cast_unsigned()))
}

pub(super) fn unregister(connection: &Connection, task: &TaskId, id: &str) -> Result<Option<u64>, Fault> {
    let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = ?1) AND r.id = ?2";
    let Some(found) = rows::one(connection, which, (task.as_str(), id))? else { return Ok(None) };
    let lane = found.lane.number();
    remove(connection, lane, found.origin, &found.lane.registration.owner.tenant)?;
    connection.prepare_cached("UPDATE tasks SET lanes = lanes - 1 WHERE id = ?1")?.execute([task.as_str()])?;
    Ok(Some(lane))
}

pub(super) fn remove(connection: &Connection, lane: u64, origin: i64, tenant: &str) -> Result<(), Fault> {
    for sql in
        ["DELETE FROM lanes WHERE lane = ?1", "DELETE FROM registrations WHERE lane = ?1", "DELETE FROM attempts WHERE lane = ?1"]
    {
        connection.prepare_cached(sql)?.execute([lane])?;
    }
    origins::count(connection, tenant, -1)?;
    origins::leave(connection, origin)
}

pub(super) const OF_TASK: &str =
    "SELECT l.lane, l.origin, t.tenant FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.task = ?1";

/// All lanes of a task that goes, or turns out to be none.
pub(in crate::sqlite) fn remove_all(connection: &Connection, task: i64) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(OF_TASK)?;
    let lanes = statement.query_map([task], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?;
    for (lane, origin, tenant) in lanes.collect::<Result<Vec<_>, _>>()? {
        remove(connection, lane, origin, &tenant)?;
    }
    connection.prepare_cached("UPDATE tasks SET lanes = 0 WHERE num = ?1")?.execute([task])?;
    Ok(())
}

/// New entries of a task that has so many lanes. Those that are due have something to deliver already, and need not be written.
pub(in crate::sqlite) fn tell(
    connection: &Connection,
    task: i64,
    of_task: usize,
    progress: &Progress,
    now: Timestamp,
) -> Result<Appended, Fault> {
    if progress.message_only {
        remove_all(connection, task)?;
        return Ok(Appended::Recorded);
    }
    let ended_at = numbering::is_finished(progress).then_some(progress.status_at.micros());
    let idle = rows::idle(connection, task)?;
    let behind = idle.len() < of_task;
    let mut became_due = false;
    for (mut cursor, lane, origin) in idle {
        cursor.append(progress.seq, now);
        let due_at = lanes::due_at(&cursor);
        connection
            .prepare_cached("UPDATE lanes SET tail = ?2, next_at = ?3, due_at = ?4, ended_at = ?5 WHERE lane = ?1")?
            .execute(params![
                lane,
                cursor.tail,
                cursor.next_at.micros(),
                due_at.map(Timestamp::micros),
                ended_at.filter(|_| due_at.is_none())
            ])?;
        if let Some(due_at) = due_at {
            origins::hurry(connection, origin, due_at)?;
            became_due = true;
        }
    }
    Ok(lanes::appended(became_due, behind))
}

pub(super) const HOLDS: &str = "SELECT 1 FROM lanes WHERE task = ?1 AND due_at IS NOT NULL";

/// Whether a task must stay because there is something of it to deliver.
pub(in crate::sqlite) fn holds(connection: &Connection, task: i64) -> Result<bool, Fault> {
    Ok(connection.prepare_cached(HOLDS)?.exists([task])?)
}

/// Answers how many had the secrets they were thought to have.
pub(super) fn reseal(connection: &Connection, anew: &[Resealed]) -> Result<u64, Fault> {
    let mut statement = connection
        .prepare_cached("UPDATE registrations SET kek_id = ?2, sealed = ?3 WHERE lane = ?1 AND kek_id = ?4 AND sealed = ?5")?;
    let mut changed = 0;
    for Resealed { lane, before, after } in anew {
        let parameters = params![lane, after.kek_id, &*after.bytes, before.kek_id, &*before.bytes];
        changed += statement.execute(parameters)? as u64;
    }
    Ok(changed)
}
