//! Registers, reads, replaces and deletes lanes.

use chancery_core::push::{NewRegistration, Registered, Resealed};
use chancery_protocol::TaskId;

use super::begin::{self, LaneStart, NewLane};
use super::origins;
use super::rows::{self, LaneWithOrigin, RegistrationColumns};
use crate::lanes;
use crate::postgres::columns::{self, Columns as _, DatabaseSession, sought};
use crate::postgres::fault::PostgresFault;
use crate::postgres::writer_state::WriterState;

/// Beside those of its task, or in place of the one by the same name.
pub(super) async fn register(state: &mut WriterState, new: &NewRegistration) -> Result<Registered, PostgresFault> {
    let session = state.session()?;
    let db = &*session;
    let registration = &new.registration;
    // From now on the task's row says that it has webhooks.
    state.set_open(&registration.task, None);
    let sql = "SELECT num, seq, lanes, stage = 3, status_at FROM tasks WHERE id = $1 FOR UPDATE";
    let stand = columns::row(db, sql, &[&sought(registration.task.as_str())]).await?;
    let Some(stand) = stand else { return Ok(Registered::NoTask) };
    let (task, ended): (i64, bool) = (stand.try_get(0)?, stand.try_get(3)?);
    let named = "WHERE l.task = $1 AND r.id = $2";
    if let Some(found) = rows::one(db, named, &[&task, &registration.id.as_str()]).await? {
        return replace(db, found, new).await;
    }
    if let Some(refusal) = begin::count(db, &registration.owner.tenant, stand.small(2)?, new.limits).await? {
        return Ok(refusal);
    }
    let ended_at = if ended { Some(stand.try_get(4)?) } else { None };
    let NewLane { lane, .. } = begin::begin(db, new, LaneStart { task, seq: stand.count(1)?, told: 0, ended_at }).await?;
    db.execute("UPDATE tasks SET lanes = lanes + 1 WHERE num = $1", &[&task]).await?;
    Ok(Registered::Kept { lane: lane.cast_unsigned(), replaced: false })
}

/// Under its old number.
const REPLACE: &str =
    "UPDATE registrations SET version = $2, profile = $3, events = $4, url = $5, scheme = $6, kek_id = $7, sealed = $8,
            created_at = $9, trace = $10 WHERE lane = $1";

async fn replace<D: DatabaseSession>(db: &D, found: LaneWithOrigin, new: &NewRegistration) -> Result<Registered, PostgresFault> {
    let LaneWithOrigin { mut lane, origin: before } = found;
    lanes::replace(&mut lane, new);
    let number = lane.number().cast_signed();
    db.execute(REPLACE, &RegistrationColumns::of(&new.registration).after(&number)).await?;
    let origin = origins::join(db, &new.registration.destination()).await?;
    db.execute("UPDATE lanes SET origin = $2 WHERE lane = $1", &[&number, &origin]).await?;
    rows::put_cursor(db, lane.number(), &lane.cursor).await?;
    origins::leave(db, before).await?;
    origins::reline(db, origin).await?;
    Ok(Registered::Kept { lane: lane.number(), replaced: true })
}

pub(super) async fn unregister<D: DatabaseSession>(db: &D, task: &TaskId, id: &str) -> Result<Option<u64>, PostgresFault> {
    let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = $1) AND r.id = $2";
    let task = sought(task.as_str());
    let Some(found) = rows::one(db, which, &[&task, &sought(id)]).await? else { return Ok(None) };
    let lane = found.lane.number();
    remove(db, lane.cast_signed(), found.origin, &found.lane.registration.owner.tenant).await?;
    db.execute("UPDATE tasks SET lanes = lanes - 1 WHERE id = $1", &[&task]).await?;
    Ok(Some(lane))
}

pub(super) async fn remove<D: DatabaseSession>(db: &D, lane: i64, origin: i64, tenant: &str) -> Result<(), PostgresFault> {
    for sql in
        ["DELETE FROM lanes WHERE lane = $1", "DELETE FROM registrations WHERE lane = $1", "DELETE FROM attempts WHERE lane = $1"]
    {
        db.execute(sql, &[&lane]).await?;
    }
    origins::uncount(db, tenant).await?;
    origins::leave(db, origin).await
}

/// All lanes of a task that goes, or turns out to be none.
pub(in crate::postgres) async fn remove_all<D: DatabaseSession>(db: &D, task: i64) -> Result<(), PostgresFault> {
    let sql = "SELECT l.lane, l.origin, t.tenant FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.task = $1";
    for row in db.rows(sql, &[&task]).await? {
        remove(db, row.try_get(0)?, row.try_get(1)?, &row.text(2)?).await?;
    }
    db.execute("UPDATE tasks SET lanes = 0 WHERE num = $1", &[&task]).await?;
    Ok(())
}

/// Answers how many had the secrets they were thought to have.
pub(super) async fn reseal<D: DatabaseSession>(db: &D, anew: &[Resealed]) -> Result<u64, PostgresFault> {
    let sql = "UPDATE registrations SET kek_id = $2, sealed = $3 WHERE lane = $1 AND kek_id = $4 AND sealed = $5";
    let mut changed = 0;
    for Resealed { lane, before, after } in anew {
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&lane.cast_signed(), &&*after.kek_id, &&*after.bytes, &&*before.kek_id, &&*before.bytes];
        changed += db.execute(sql, &values).await?;
    }
    Ok(changed)
}
