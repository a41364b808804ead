//! Lanes as rows, and rows as lanes.

use std::sync::Arc;

use chancery_core::push::{Cursor, Lane, PushProfile, Registration, RegistrationId, SealedSecret, Span};
use chancery_protocol::{Caller, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::lanes;
use crate::postgres::columns::{self, Columns as _, DatabaseSession, SqlValues};
use crate::postgres::fault::PostgresFault;
use crate::postgres::ledger;
use crate::rows::dialects::dialect;
use crate::rows::lane_words::{events_name, events_named, kind_number, kind_numbered, state_named, state_names};

/// The columns that `lane` reads, in its order. The last entry of a due lane is read from its task. So an
/// append to a task whose webhooks are behind need not write its lanes.
const LANE: &str =
    "SELECT l.lane, t.id, r.id, t.tenant, t.owner, t.agent, r.version, r.profile, r.events, r.url, o.origin, r.scheme,
            r.kek_id, r.sealed, r.created_at, r.trace, l.state, l.reason, l.head,
            CASE WHEN l.due_at IS NULL THEN l.tail ELSE t.seq END, l.attempt, l.refusals, l.next_at,
            l.first_fail_at, l.epoch, l.lease_until, l.span_to, l.span_kind, l.receipt, l.origin
     FROM lanes l JOIN registrations r ON r.lane = l.lane JOIN tasks t ON t.num = l.task JOIN push_origins o ON o.num = l.origin";

/// A lane and the number of its origin.
pub(super) struct LaneWithOrigin {
    pub(super) lane: Lane,
    pub(super) origin: i64,
}

pub(super) async fn one<D: DatabaseSession>(
    db: &D,
    which: &str,
    values: &SqlValues<'_>,
) -> Result<Option<LaneWithOrigin>, PostgresFault> {
    Ok(many(db, which, values).await?.into_iter().next())
}

/// The same for conditions that an operator put together.
pub(super) async fn many_once<D: DatabaseSession>(
    db: &D,
    which: &str,
    values: &SqlValues<'_>,
) -> Result<Vec<LaneWithOrigin>, PostgresFault> {
    columns::each(db.rows_once(&format!("{LANE} {which}"), values).await?, found)
}

pub(super) async fn many<D: DatabaseSession>(
    db: &D,
    which: &str,
    values: &SqlValues<'_>,
) -> Result<Vec<LaneWithOrigin>, PostgresFault> {
    columns::each(db.rows(&format!("{LANE} {which}"), values).await?, found)
}

/// A registration's columns from `version` on.
pub(super) struct RegistrationColumns {
    version: &'static str,
    profile: &'static str,
    events: &'static str,
    url: Vec<u8>,
    scheme: Option<Vec<u8>>,
    kek_id: Option<String>,
    sealed: Option<Vec<u8>>,
    created_at: i64,
    trace: Vec<u8>,
}

impl RegistrationColumns {
    pub(super) fn of(registration: &Registration) -> Self {
        let sealed = registration.sealed.as_ref();
        Self {
            version: registration.version.as_str(),
            profile: registration.profile.as_str(),
            events: events_name(registration.events),
            url: registration.url.as_bytes().to_vec(),
            scheme: registration.scheme.as_deref().map(|scheme| scheme.as_bytes().to_vec()),
            kek_id: sealed.map(|sealed| sealed.kek_id.to_string()),
            sealed: sealed.map(|sealed| sealed.bytes.to_vec()),
            created_at: registration.created_at.micros(),
            trace: registration.trace.0.to_be_bytes().to_vec(),
        }
    }

    /// The columns in their order, after what comes first where they are written.
    pub(super) fn after<'v>(&'v self, first: &'v (dyn ToSql + Sync)) -> [&'v (dyn ToSql + Sync); 10] {
        let Self { version, profile, events, url, scheme, kek_id, sealed, created_at, trace } = self;
        [first, version, profile, events, url, scheme, kek_id, sealed, created_at, trace]
    }
}

/// Only what moves.
const CURSOR: &str =
    "SELECT l.state, l.reason, l.head, CASE WHEN l.due_at IS NULL THEN l.tail ELSE t.seq END, l.attempt, l.refusals, l.next_at,
            l.first_fail_at, l.epoch, l.lease_until, l.span_to, l.span_kind, l.origin, l.lane
     FROM lanes l JOIN tasks t ON t.num = l.task";

/// A cursor with the numbers of its lane and its origin.
pub(super) struct LaneCursor {
    pub(super) cursor: Cursor,
    pub(super) lane: u64,
    pub(super) origin: i64,
}

pub(super) async fn cursor_of<D: DatabaseSession>(db: &D, lane: u64) -> Result<Option<LaneCursor>, PostgresFault> {
    let found = cursors(db, "WHERE l.lane = $1", &[&lane.cast_signed()]).await?;
    Ok(found.into_iter().next())
}

pub(super) async fn cursors<D: DatabaseSession>(
    db: &D,
    which: &str,
    values: &SqlValues<'_>,
) -> Result<Vec<LaneCursor>, PostgresFault> {
    let read = |row: &Row| Ok(LaneCursor { cursor: cursor(row, 0)?, lane: row.count(13)?, origin: row.try_get(12)? });
    columns::each(db.rows(&format!("{CURSOR} {which}"), values).await?, read)
}

const PUT_CURSOR: &str =
    "UPDATE lanes SET state = $2, reason = $3, head = $4, tail = $5, attempt = $6, refusals = $7, next_at = $8,
            first_fail_at = $9, epoch = $10, lease_until = $11, span_to = $12, span_kind = $13, due_at = $14,
            ended_at = CASE WHEN $14::bigint IS NULL
                       THEN (SELECT status_at FROM tasks WHERE num = task AND stage = 3) END
     WHERE lane = $1";

/// Writes what moves, and when the lane can be claimed next. One that has nothing more to deliver has ended with its task.
pub(super) async fn put_cursor<D: DatabaseSession>(db: &D, lane: u64, cursor: &Cursor) -> Result<(), PostgresFault> {
    let (state, reason) = state_names(cursor.state);
    let due_at = lanes::due_at(cursor).map(Timestamp::micros);
    let span_to = cursor.span.map(|span| span.to.cast_signed());
    let span_kind = cursor.span.map(|span| kind_number(span.kind));
    let first_fail_at = cursor.first_fail_at.map(Timestamp::micros);
    db.execute(
        PUT_CURSOR,
        &[
            &lane.cast_signed(),
            &state,
            &reason,
            &cursor.head.cast_signed(),
            &cursor.tail.cast_signed(),
            &i64::from(cursor.attempt),
            &i64::from(cursor.refusals),
            &cursor.next_at.micros(),
            &first_fail_at,
            &cursor.epoch.cast_signed(),
            &cursor.lease_until.micros(),
            &span_to,
            &span_kind,
            &due_at,
        ],
    )
    .await?;
    Ok(())
}

fn found(row: &Row) -> Result<LaneWithOrigin, PostgresFault> {
    let (profile, events) = (row.text(7)?, row.text(8)?);
    let sealed = match (row.text_or_none(12)?, row.try_get::<_, Option<Vec<u8>>>(13)?) {
        (Some(kek_id), Some(bytes)) => Some(SealedSecret { kek_id, bytes: bytes.into() }),
        _ => None,
    };
    let registration = Registration {
        lane: row.count(0)?,
        task: row.task(1)?,
        id: RegistrationId::new(row.text(2)?),
        owner: Caller { tenant: row.text(3)?, name: row.text(4)? },
        agent: row.text(5)?,
        version: dialect(&row.text(6)?)?.version(),
        profile: PushProfile::from_name(&profile).ok_or_else(|| PostgresFault::unreadable(format!("profile {profile}")))?,
        events: events_named(&events)?,
        url: row.free_text(9)?,
        origin: row.text(10)?,
        scheme: row.free_text_or_none(11)?,
        sealed,
        created_at: row.time(14)?,
        trace: ledger::trace(row, 15)?,
    };
    let receipt = row.try_get::<_, Option<&[u8]>>(28)?.map(|_| row.digest(28)).transpose()?;
    let lane = Lane { registration: Arc::new(registration), cursor: cursor(row, 16)?, receipt };
    Ok(LaneWithOrigin { lane, origin: row.try_get(29)? })
}

fn cursor(row: &Row, from: usize) -> Result<Cursor, PostgresFault> {
    let span = match (row.try_get::<_, Option<i64>>(from + 10)?, row.try_get::<_, Option<i64>>(from + 11)?) {
        (Some(to), Some(kind)) => Some(Span { to: to.cast_unsigned(), kind: kind_numbered(kind)? }),
        _ => None,
    };
    Ok(Cursor {
        state: state_named(row.try_get(from)?, row.try_get::<_, Option<&str>>(from + 1)?)?,
        head: row.count(from + 2)?,
        tail: row.count(from + 3)?,
        attempt: row.small(from + 4)?,
        refusals: row.small(from + 5)?,
        next_at: row.time(from + 6)?,
        first_fail_at: row.time_or_none(from + 7)?,
        epoch: row.count(from + 8)?,
        lease_until: row.time(from + 9)?,
        span,
    })
}
