//! What webhooks cost the tasks they come with: lanes begin, and are made due by the entries of their task.

use chancery_core::push::{NewRegistration, Registered, RegistrationLimits, WebhookOrigin};
use chancery_core::{Appended, Progress};
use chancery_protocol::Timestamp;

use super::rows::{self, LaneCursor, RegistrationColumns};
use crate::postgres::columns::{self, DatabaseSession};
use crate::postgres::fault::PostgresFault;
use crate::rows::lane_words::kind_number;
use crate::{lanes, numbering};

/// Where a lane begins.
pub(super) struct LaneStart {
    pub(super) task: i64,
    /// After this entry.
    pub(super) seq: u64,
    /// The last entry that the lane has to deliver.
    pub(super) told: u64,
    /// When the task ended, if it has.
    pub(super) ended_at: Option<i64>,
}

/// A lane that has begun.
pub(super) struct NewLane {
    pub(super) lane: i64,
    /// Whether there is something to deliver.
    pub(super) due: bool,
    /// Whether that makes its origin due sooner than it was.
    pub(super) sooner: bool,
}

const COUNT: &str = "INSERT INTO push_tenants (tenant, lanes) VALUES ($1, 1)
     ON CONFLICT (tenant) DO UPDATE SET lanes = push_tenants.lanes + 1 WHERE push_tenants.lanes < $2";

/// One more lane of a tenant, of whose task there are so many, unless there are too many: then nothing was written.
pub(in crate::postgres) async fn count<D: DatabaseSession>(
    db: &D,
    tenant: &str,
    of_task: usize,
    limits: RegistrationLimits,
) -> Result<Option<Registered>, PostgresFault> {
    if of_task >= limits.per_task {
        return Ok(Some(Registered::TooManyOfTask));
    }
    let most = columns::limit(limits.per_tenant);
    let counted = most > 0 && db.execute(COUNT, &[&tenant, &most]).await? > 0;
    Ok((!counted).then_some(Registered::TooManyOfTenant))
}

/// With the task that is being made. It was counted before.
pub(in crate::postgres) async fn begin_with_task<D: DatabaseSession>(
    db: &D,
    task: i64,
    new: &NewRegistration,
    progress: &Progress,
) -> Result<Appended, PostgresFault> {
    let told = if new.held { 0 } else { progress.seq };
    let ended_at = numbering::is_finished(progress).then_some(progress.status_at.micros());
    let begun = begin(db, new, LaneStart { task, seq: 0, told, ended_at }).await?;
    Ok(lanes::appended(begun.sooner, begun.due))
}

const REGISTER: &str = "INSERT INTO registrations (id, version, profile, events, url, scheme, kek_id, sealed, created_at, trace)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING lane";

const BEGIN: &str =
    "INSERT INTO lanes (lane, task, origin, state, head, tail, attempt, refusals, next_at, epoch, lease_until, ended_at,
                                        tries, span_to, span_kind, due_at)
     VALUES ($1, $2, $3, 1, $4, $5, 0, 0, $6, 0, 0, $7, 0, $8, $9, $10)";

/// Rows written once, as they are to be.
pub(super) async fn begin<D: DatabaseSession>(db: &D, new: &NewRegistration, start: LaneStart) -> Result<NewLane, PostgresFault> {
    let registration = &new.registration;
    let columns = RegistrationColumns::of(registration);
    let lane = columns::number(db, REGISTER, &columns.after(&registration.id.as_str())).await?;
    let mut cursor = lanes::first_cursor(new, start.seq);
    cursor.append(start.told, registration.created_at);
    let due_at = lanes::due_at(&cursor).map(Timestamp::micros);
    let (origin, sooner) = join(db, &registration.destination(), due_at).await?;
    db.execute(
        BEGIN,
        &[
            &lane,
            &start.task,
            &origin,
            &cursor.head.cast_signed(),
            &cursor.tail.cast_signed(),
            &cursor.next_at.micros(),
            &start.ended_at,
            &cursor.span.map(|span| span.to.cast_signed()),
            &cursor.span.map(|span| kind_number(span.kind)),
            &due_at,
        ],
    )
    .await?;
    Ok(NewLane { lane, due: due_at.is_some(), sooner })
}

/// Makes the origin if it is missing. What it answers is from before: NULL where it was missing.
const JOIN: &str = "WITH before AS (SELECT due_at FROM push_origins WHERE tenant = $1 AND origin = $2)
     INSERT INTO push_origins (tenant, origin, lanes, parked_until, due_at) VALUES ($1, $2, 1, 0, $3)
     ON CONFLICT (tenant, origin) DO UPDATE SET lanes = push_origins.lanes + 1,
         due_at = CASE WHEN $3::bigint IS NULL THEN push_origins.due_at
                       ELSE least(push_origins.due_at, greatest($3, push_origins.parked_until)) END
     RETURNING num, due_at IS DISTINCT FROM (SELECT due_at FROM before)";

/// Adds a lane to an origin. Returns the origin's number, and whether the lane makes it due sooner.
async fn join<D: DatabaseSession>(db: &D, origin: &WebhookOrigin, due_at: Option<i64>) -> Result<(i64, bool), PostgresFault> {
    let joined = columns::row(db, JOIN, &[&&*origin.tenant, &&*origin.origin, &due_at]).await?;
    let joined = joined.ok_or_else(|| PostgresFault::unreadable("an origin that has no row"))?;
    Ok((joined.try_get(0)?, joined.try_get(1)?))
}

const MOVE_ON: &str = "UPDATE lanes SET tail = $2, next_at = $3, due_at = $4, ended_at = $5 WHERE lane = $1";

const HURRY: &str = "UPDATE push_origins SET due_at = greatest($2, parked_until)
     WHERE num = $1 AND (due_at IS NULL OR due_at > greatest($2, parked_until))";

/// New entries of a task that has so many lanes. Those that are due have something to deliver already, and need not be written.
pub(in crate::postgres) async fn tell<D: DatabaseSession>(
    db: &D,
    task: i64,
    of_task: i64,
    progress: &Progress,
    now: Timestamp,
) -> Result<Appended, PostgresFault> {
    let ended_at = numbering::is_finished(progress).then_some(progress.status_at.micros());
    let idle = rows::cursors(db, "WHERE l.task = $1 AND l.due_at IS NULL", &[&task]).await?;
    let mut behind = (idle.len() as i64) < of_task;
    let mut sooner = false;
    for LaneCursor { mut cursor, lane, origin } in idle {
        cursor.append(progress.seq, now);
        let due_at = lanes::due_at(&cursor).map(Timestamp::micros);
        let ended_at = ended_at.filter(|_| due_at.is_none());
        let (tail, next_at) = (cursor.tail.cast_signed(), cursor.next_at.micros());
        db.execute(MOVE_ON, &[&lane.cast_signed(), &tail, &next_at, &due_at, &ended_at]).await?;
        if let Some(due_at) = due_at {
            sooner |= db.execute(HURRY, &[&origin, &due_at]).await? > 0;
            behind = true;
        }
    }
    Ok(lanes::appended(sooner, behind))
}
