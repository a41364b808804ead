//! Lanes are claimed and settled.

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_core::RecordNote;
use chancery_core::push::{DeliveryAttempt, Lane, LaneSettlement, LaneStep, WebhookOrigin};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, params};

use super::{letters, origins, rows};
use crate::lanes::{ATTEMPTS_KEPT, told};
use crate::sqlite::fault::SqliteFault;

pub(super) const DUE: &str = "SELECT lane FROM lanes WHERE origin = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT ?3";

pub(super) fn claim(
    connection: &Connection,
    now: Timestamp,
    lease: Duration,
    most: usize,
    per_origin: usize,
    except: &[WebhookOrigin],
) -> Result<Vec<Lane>, SqliteFault> {
    let mut due = Vec::new();
    let mut places = Vec::new();
    let mut statement = connection.prepare_cached(DUE)?;
    origins::due(connection, now, |num, origin, _| {
        if !except.contains(&origin) {
            let room = i64::try_from(per_origin.min(most - due.len())).unwrap_or(i64::MAX);
            let lanes = statement.query_map((num, now.micros(), room), |row| row.get::<_, u64>(0))?;
            for lane in lanes {
                due.push(lane?);
            }
            places.push(num);
        }
        Ok(due.len() < most)
    })?;
    let mut claimed = Vec::with_capacity(due.len());
    for number in due {
        let Some(rows::LaneRow { mut lane, .. }) = rows::by_number(connection, number)? else { continue };
        if lane.cursor.claim(now, lease).is_some() {
            rows::put_cursor(connection, number, &lane.cursor)?;
            claimed.push(lane);
        }
    }
    for origin in places {
        origins::reline(connection, origin)?;
    }
    Ok(claimed)
}

/// Releases all leases. No other process can have the database open, so the holders of the leases have ended.
/// Otherwise a restart would wait until the leases expire.
pub(in crate::sqlite) fn orphan_all(connection: &mut Connection) -> Result<(), SqliteFault> {
    let transaction = connection.transaction()?;
    let held = {
        let mut statement = transaction.prepare("SELECT lane FROM lanes WHERE lease_until > 0")?;
        statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<u64>, _>>()?
    };
    let mut moved = BTreeSet::new();
    for lane in held {
        let Some((mut cursor, origin)) = rows::cursor_of(&transaction, lane)? else { continue };
        if cursor.orphan() {
            rows::put_cursor(&transaction, lane, &cursor)?;
            moved.insert(origin);
        }
    }
    for origin in moved {
        origins::reline(&transaction, origin)?;
    }
    transaction.execute("UPDATE dead_letters SET replay_at = 0 WHERE replay_at IS NOT NULL", [])?;
    Ok(transaction.commit()?)
}

pub(super) fn settle(
    connection: &Connection,
    steps: &[LaneStep],
    record: &mut dyn FnMut(&RecordNote),
) -> Result<Vec<LaneSettlement>, SqliteFault> {
    let mut settled = Vec::with_capacity(steps.len());
    let mut moved = BTreeSet::new();
    for step in steps {
        let (done, origin) = settle_one(connection, step)?;
        if let LaneSettlement::Done { change, .. } = &done {
            told(step, change).iter().for_each(&mut *record);
        }
        settled.push(done);
        moved.extend(origin);
    }
    for origin in moved {
        origins::reline(connection, origin)?;
    }
    Ok(settled)
}

fn settle_one(connection: &Connection, step: &LaneStep) -> Result<(LaneSettlement, Option<i64>), SqliteFault> {
    let Some((mut cursor, origin)) = rows::cursor_of(connection, step.lane)? else { return Ok((LaneSettlement::Fenced, None)) };
    let Ok(change) = cursor.settle(step.epoch, step.step, step.now) else { return Ok((LaneSettlement::Fenced, None)) };
    rows::put_cursor(connection, step.lane, &cursor)?;
    if let (Some(letter), Some(dead)) = (&step.dead, change.dead) {
        letters::keep(connection, letter, dead.from, dead.to)?;
    }
    if let Some(receipt) = &step.receipt {
        letters::acknowledge(connection, receipt)?;
    }
    if let Some(attempt) = &step.attempt {
        note(connection, attempt)?;
    }
    Ok((LaneSettlement::Done { cursor, change }, Some(origin)))
}

/// In the place of the oldest, if there are many.
fn note(connection: &Connection, attempt: &DeliveryAttempt) -> Result<(), SqliteFault> {
    let sql = "UPDATE lanes SET tries = tries + 1 WHERE lane = ?1 RETURNING tries";
    let num: u64 = connection.prepare_cached(sql)?.query_row([attempt.lane], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO attempts (lane, slot, num, seq, n, at, ms, outcome, http)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            attempt.lane,
            num % ATTEMPTS_KEPT,
            num,
            attempt.seq,
            attempt.n,
            attempt.at.micros(),
            attempt.ms,
            &*attempt.outcome,
            attempt.http,
        ])?;
    Ok(())
}

pub(super) fn attempts(
    connection: &Connection,
    lane: u64,
    since: Timestamp,
    limit: usize,
) -> Result<Vec<DeliveryAttempt>, SqliteFault> {
    let sql = "SELECT lane, seq, n, at, ms, outcome, http FROM attempts WHERE lane = ?1 AND at >= ?2 ORDER BY num DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((lane, since.micros(), limit), |row| {
        Ok(DeliveryAttempt {
            lane: row.get(0)?,
            seq: row.get(1)?,
            n: row.get(2)?,
            at: Timestamp::from_micros(row.get(3)?),
            ms: row.get(4)?,
            outcome: row.get::<_, String>(5)?.into(),
            http: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn next_due(connection: &Connection, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, SqliteFault> {
    let mut next = None;
    origins::due(connection, Timestamp::from_micros(i64::MAX), |_, origin, due_at| {
        next = (!except.contains(&origin)).then_some(due_at);
        Ok(next.is_none())
    })?;
    Ok(next)
}
