//! Lanes as rows, and rows as lanes.

use std::sync::Arc;

use chancery_core::push::{Cursor, Lane, PushProfile, Registration, RegistrationId, SealedSecret, Span};
use chancery_protocol::{Caller, TaskId, Timestamp, TraceId};
use rusqlite::{Connection, OptionalExtension, Params, Row, Statement, ToSql, params};

use crate::lanes;
use crate::rows::dialects::dialect;
use crate::rows::lane_words::{events_name, events_named, kind_number, kind_numbered, state_named, state_names};
use crate::sqlite::fault::SqliteFault;

/// The columns that `lane` reads, in its order. The last entry of a due lane is read from its task. So an
/// append to a task whose webhooks are behind need not write its lanes.
const LANE: &str =
    "SELECT l.lane, t.id, r.id, t.tenant, t.owner, t.agent, r.version, r.profile, r.events, r.url, o.origin, r.scheme,
            r.kek_id, r.sealed, r.created_at, r.trace, l.state, l.reason, l.head,
            iif(l.due_at IS NULL, l.tail, t.seq), l.attempt, l.refusals, l.next_at,
            l.first_fail_at, l.epoch, l.lease_until, l.span_to, l.span_kind, l.receipt, l.origin
     FROM lanes l JOIN registrations r ON r.lane = l.lane JOIN tasks t ON t.num = l.task JOIN push_origins o ON o.num = l.origin";

/// A lane and the number of its origin.
pub(super) struct LaneRow {
    pub(super) lane: Lane,
    pub(super) origin: i64,
}

pub(super) fn one(connection: &Connection, which: &str, parameters: impl Params) -> Result<Option<LaneRow>, SqliteFault> {
    let mut statement = connection.prepare_cached(&format!("{LANE} {which}"))?;
    statement.query_row(parameters, |row| Ok(found(row))).optional()?.transpose()
}

pub(super) fn many(connection: &Connection, which: &str, parameters: impl Params) -> Result<Vec<LaneRow>, SqliteFault> {
    let mut statement = connection.prepare_cached(&format!("{LANE} {which}"))?;
    let mut rows = statement.query(parameters)?;
    let mut lanes = Vec::new();
    while let Some(row) = rows.next()? {
        lanes.push(found(row)?);
    }
    Ok(lanes)
}

pub(super) fn by_number(connection: &Connection, lane: u64) -> Result<Option<LaneRow>, SqliteFault> {
    one(connection, "WHERE l.lane = ?1", [lane])
}

/// What registrations have in their columns from `version` on, after what comes first where they are written.
pub(super) fn with_columns<T>(registration: &Registration, first: &dyn ToSql, write: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
    let sealed = registration.sealed.as_ref();
    write(params![
        first,
        registration.version.as_str(),
        registration.profile.as_str(),
        events_name(registration.events),
        &*registration.url,
        registration.scheme.as_deref(),
        sealed.map(|sealed| &*sealed.kek_id),
        sealed.map(|sealed| &*sealed.bytes),
        registration.created_at.micros(),
        registration.trace.0.to_be_bytes(),
    ])
}

/// Only what moves.
const CURSOR: &str =
    "SELECT l.state, l.reason, l.head, iif(l.due_at IS NULL, l.tail, t.seq), l.attempt, l.refusals, l.next_at, l.first_fail_at,
            l.epoch, l.lease_until, l.span_to, l.span_kind, l.origin
     FROM lanes l JOIN tasks t ON t.num = l.task WHERE l.lane = ?1";

pub(super) fn cursor_of(connection: &Connection, lane: u64) -> Result<Option<(Cursor, i64)>, SqliteFault> {
    let mut statement = connection.prepare_cached(CURSOR)?;
    let read = |row: &Row<'_>| Ok(cursor(row, 0).and_then(|cursor| Ok((cursor, row.get(12)?))));
    statement.query_row([lane], read).optional()?.transpose()
}

/// The cursors a query of a task finds, each with its number and that of its origin.
pub(super) fn cursors(statement: &mut Statement<'_>, task: i64) -> Result<Vec<(Cursor, u64, i64)>, SqliteFault> {
    let mut rows = statement.query([task])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((cursor(row, 0)?, row.get(13)?, row.get(12)?));
    }
    Ok(found)
}

/// Writes what moves, and says when the lane can be claimed next. One that has nothing more to deliver has ended with its task.
pub(super) fn put_cursor(connection: &Connection, lane: u64, cursor: &Cursor) -> Result<Option<Timestamp>, SqliteFault> {
    let (state, reason) = state_names(cursor.state);
    let due_at = lanes::due_at(cursor);
    connection
        .prepare_cached(
            "UPDATE lanes SET state = ?2, reason = ?3, head = ?4, tail = ?5, attempt = ?6, refusals = ?7, next_at = ?8,
                    first_fail_at = ?9, epoch = ?10, lease_until = ?11, span_to = ?12, span_kind = ?13, due_at = ?14,
                    ended_at = iif(?14 IS NULL, (SELECT status_at FROM tasks WHERE num = task AND stage = 3), NULL)
             WHERE lane = ?1",
        )?
        .execute(params![
            lane,
            state,
            reason,
            cursor.head,
            cursor.tail,
            cursor.attempt,
            cursor.refusals,
            cursor.next_at.micros(),
            cursor.first_fail_at.map(Timestamp::micros),
            cursor.epoch,
            cursor.lease_until.micros(),
            cursor.span.map(|span| span.to),
            cursor.span.map(|span| kind_number(span.kind)),
            due_at.map(Timestamp::micros),
        ])?;
    Ok(due_at)
}

fn found(row: &Row<'_>) -> Result<LaneRow, SqliteFault> {
    let text =
        |at: usize| -> Result<Arc<str>, SqliteFault> { Ok(row.get_ref(at)?.as_str().map_err(rusqlite::Error::from)?.into()) };
    let word = |at: usize| row.get::<_, Option<String>>(at).map(|word| word.map(Arc::<str>::from));
    let (profile, events) = (text(7)?, text(8)?);
    let sealed = match (word(12)?, row.get::<_, Option<Vec<u8>>>(13)?) {
        (Some(kek_id), Some(bytes)) => Some(SealedSecret { kek_id, bytes: bytes.into() }),
        _ => None,
    };
    let registration = Registration {
        lane: row.get(0)?,
        task: TaskId::new(text(1)?),
        id: RegistrationId::new(text(2)?),
        owner: Caller { tenant: text(3)?, name: text(4)? },
        agent: text(5)?,
        version: dialect(&text(6)?)?.version(),
        profile: PushProfile::from_name(&profile).ok_or_else(|| SqliteFault::unreadable(format!("profile {profile}")))?,
        events: events_named(&events)?,
        url: text(9)?,
        origin: text(10)?,
        scheme: word(11)?,
        sealed,
        created_at: Timestamp::from_micros(row.get(14)?),
        trace: TraceId(u128::from_be_bytes(row.get(15)?)),
    };
    let lane = Lane { registration: Arc::new(registration), cursor: cursor(row, 16)?, receipt: row.get(28)? };
    Ok(LaneRow { lane, origin: row.get(29)? })
}

fn cursor(row: &Row<'_>, from: usize) -> Result<Cursor, SqliteFault> {
    let span = match (row.get(from + 10)?, row.get::<_, Option<i64>>(from + 11)?) {
        (Some(to), Some(kind)) => Some(Span { to, kind: kind_numbered(kind)? }),
        _ => None,
    };
    Ok(Cursor {
        state: state_named(row.get(from)?, row.get::<_, Option<String>>(from + 1)?.as_deref())?,
        head: row.get(from + 2)?,
        tail: row.get(from + 3)?,
        attempt: row.get(from + 4)?,
        refusals: row.get(from + 5)?,
        next_at: Timestamp::from_micros(row.get(from + 6)?),
        first_fail_at: row.get::<_, Option<i64>>(from + 7)?.map(Timestamp::from_micros),
        epoch: row.get(from + 8)?,
        lease_until: Timestamp::from_micros(row.get(from + 9)?),
        span,
    })
}
