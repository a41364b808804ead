//! Lanes are claimed and settled.

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_core::RecordNote;
use chancery_core::push::{DeliveryAttempt, Lane, LaneSettlement, LaneStep, WebhookOrigin};
use chancery_protocol::Timestamp;
use deadpool_postgres::ClientWrapper;

use super::rows::{self, LaneCursor};
use super::{letters, origins};
use crate::lanes::{ATTEMPTS_KEPT, told};
use crate::postgres::columns::{self, Columns as _, DatabaseSession, limit};
use crate::postgres::fault::PostgresFault;
use crate::postgres::flight::BEGIN;

/// Of each origin the lanes that are due, the longest waiting first, and of two that wait equally long the older one.
const DUE: &str = "SELECT due.lane FROM unnest($1::bigint[]) WITH ORDINALITY AS given (origin, place)
     CROSS JOIN LATERAL (SELECT lane, due_at FROM lanes WHERE lanes.origin = given.origin AND due_at <= $2
                         ORDER BY due_at, lane LIMIT $3) due
     ORDER BY given.place, due.due_at, due.lane LIMIT $4";

pub(super) async fn claim<D: DatabaseSession>(
    db: &D,
    now: Timestamp,
    lease: Duration,
    most: usize,
    per_origin: usize,
    except: &[WebhookOrigin],
) -> Result<Vec<Lane>, PostgresFault> {
    // Every origin that is due has a lane that is due, so as many origins as lanes are enough.
    let due = origins::due(db, now, except, limit(most)).await?;
    let origins: Vec<i64> = due.iter().map(|due| due.num).collect();
    if origins.is_empty() || per_origin == 0 {
        return Ok(Vec::new());
    }
    let lanes = db.rows(DUE, &[&origins, &now.micros(), &limit(per_origin), &limit(most)]).await?;
    let lanes = columns::each(lanes, |row| Ok(row.try_get::<_, i64>(0)?))?;
    let mut found = rows::many(db, "WHERE l.lane = ANY($1)", &[&lanes]).await?;
    let place = |lane: &Lane| lanes.iter().position(|number| *number == lane.number().cast_signed());
    found.sort_by_key(|found| place(&found.lane));
    let mut claimed = Vec::with_capacity(found.len());
    for rows::LaneWithOrigin { mut lane, .. } in found {
        if lane.cursor.claim(now, lease).is_some() {
            rows::put_cursor(db, lane.number(), &lane.cursor).await?;
            claimed.push(lane);
        }
    }
    origins::reline_all(db, &BTreeSet::from_iter(origins)).await?;
    Ok(claimed)
}

/// Releases all leases, in a transaction of its own. No other node can write any more, so no caller holds them. Otherwise a restart would
/// wait until the leases expire.
pub(in crate::postgres) async fn orphan_all(session: &ClientWrapper) -> Result<(), PostgresFault> {
    session.batch_execute(BEGIN).await?;
    let released = release_leases(session).await;
    session.batch_execute(if released.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    released
}

pub(in crate::postgres) async fn release_leases<D: DatabaseSession>(db: &D) -> Result<(), PostgresFault> {
    let mut moved = BTreeSet::new();
    for LaneCursor { mut cursor, lane, origin } in rows::cursors(db, "WHERE l.lease_until > 0", &[]).await? {
        if cursor.orphan() {
            rows::put_cursor(db, lane, &cursor).await?;
            moved.insert(origin);
        }
    }
    origins::reline_all(db, &moved).await?;
    db.execute("UPDATE dead_letters SET replay_at = 0 WHERE replay_at IS NOT NULL", &[]).await?;
    Ok(())
}

/// Answers the result of each step, and what the record says of them.
pub(super) async fn settle<D: DatabaseSession>(
    db: &D,
    steps: &[LaneStep],
) -> Result<(Vec<LaneSettlement>, Vec<RecordNote>), PostgresFault> {
    let (mut settled, mut notes) = (Vec::with_capacity(steps.len()), Vec::new());
    let mut moved = BTreeSet::new();
    for step in steps {
        let (done, origin) = settle_one(db, step).await?;
        if let LaneSettlement::Done { change, .. } = &done {
            notes.extend(told(step, change));
        }
        settled.push(done);
        moved.extend(origin);
    }
    origins::reline_all(db, &moved).await?;
    Ok((settled, notes))
}

async fn settle_one<D: DatabaseSession>(db: &D, step: &LaneStep) -> Result<(LaneSettlement, Option<i64>), PostgresFault> {
    let Some(LaneCursor { mut cursor, origin, .. }) = rows::cursor_of(db, step.lane).await? else {
        return Ok((LaneSettlement::Fenced, None));
    };
    let Ok(change) = cursor.settle(step.epoch, step.step, step.now) else { return Ok((LaneSettlement::Fenced, None)) };
    rows::put_cursor(db, step.lane, &cursor).await?;
    if let (Some(letter), Some(dead)) = (&step.dead, change.dead) {
        letters::keep(db, letter, dead.from, dead.to).await?;
    }
    if let Some(receipt) = &step.receipt {
        letters::acknowledge(db, receipt).await?;
    }
    if let Some(attempt) = &step.attempt {
        note(db, attempt).await?;
    }
    Ok((LaneSettlement::Done { cursor, change }, Some(origin)))
}

const NOTE: &str = "INSERT INTO attempts (lane, slot, num, seq, n, at, ms, outcome, http) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (lane, slot) DO UPDATE SET num = excluded.num, seq = excluded.seq, n = excluded.n, at = excluded.at, ms = excluded.ms,
                                            outcome = excluded.outcome, http = excluded.http";

/// In the place of the oldest, if there are many.
async fn note<D: DatabaseSession>(db: &D, attempt: &DeliveryAttempt) -> Result<(), PostgresFault> {
    let lane = attempt.lane.cast_signed();
    let num = columns::number(db, "UPDATE lanes SET tries = tries + 1 WHERE lane = $1 RETURNING tries", &[&lane]).await?;
    db.execute(
        NOTE,
        &[
            &lane,
            &(num % ATTEMPTS_KEPT.cast_signed()),
            &num,
            &attempt.seq.cast_signed(),
            &i64::from(attempt.n),
            &attempt.at.micros(),
            &i64::from(attempt.ms),
            &&*attempt.outcome,
            &attempt.http.map(i64::from),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn attempts<D: DatabaseSession>(
    db: &D,
    lane: u64,
    since: Timestamp,
    most: usize,
) -> Result<Vec<DeliveryAttempt>, PostgresFault> {
    let sql = "SELECT lane, seq, n, at, ms, outcome, http FROM attempts WHERE lane = $1 AND at >= $2 ORDER BY num DESC LIMIT $3";
    columns::each(db.rows(sql, &[&lane.cast_signed(), &since.micros(), &limit(most)]).await?, |row| {
        Ok(DeliveryAttempt {
            lane: row.count(0)?,
            seq: row.count(1)?,
            n: row.small(2)?,
            at: row.time(3)?,
            ms: row.small(4)?,
            outcome: row.text(5)?,
            http: row.small_or_none(6)?,
        })
    })
}

pub(super) async fn next_due<D: DatabaseSession>(db: &D, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, PostgresFault> {
    let next = origins::due(db, Timestamp::from_micros(i64::MAX), except, 1).await?;
    Ok(next.first().map(|due| due.due_at))
}
