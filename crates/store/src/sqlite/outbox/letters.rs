//! Dead letters, on and off the line to be delivered again.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::RecordNote;
use chancery_core::push::{DeadFilter, DeadLetter, Receipt, RegistrationId, Replay, ReplayStep};
use chancery_protocol::{Caller, TaskId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::conditions::WhereClause;
use super::{origins, rows};
use crate::sqlite::fault::SqliteFault;

const COLUMNS: &str =
    "num, lane, task, registration, tenant, owner, origin, webhook_id, from_seq, to_seq, reason, attempts, first_at,
                       last_at, http, error, body, headers, replays";

pub(super) fn keep(connection: &Connection, letter: &DeadLetter, from: u64, to: u64) -> Result<(), SqliteFault> {
    let headers = serde_json::to_string(&letter.headers).map_err(|error| SqliteFault::unreadable(format!("headers: {error}")))?;
    connection
        .prepare_cached(
            "INSERT INTO dead_letters (lane, task, registration, tenant, owner, origin, webhook_id, from_seq, to_seq, reason,
                    attempts, first_at, last_at, http, error, body, headers, replays, new_id, epoch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 0, 0)",
        )?
        .execute(params![
            letter.lane,
            letter.task.as_str(),
            letter.registration.as_str(),
            &*letter.owner.tenant,
            &*letter.owner.name,
            &*letter.origin,
            &*letter.webhook_id,
            from,
            to,
            &*letter.reason,
            letter.attempts,
            letter.first_at.micros(),
            letter.last_at.micros(),
            letter.http,
            letter.error.as_deref(),
            &*letter.body,
            headers,
            letter.replays,
        ])?;
    Ok(())
}

fn letter(row: &Row<'_>) -> Result<DeadLetter, SqliteFault> {
    let text = |at: usize| row.get::<_, String>(at).map(Arc::<str>::from);
    let headers: Vec<(String, String)> = serde_json::from_str(row.get_ref(17)?.as_str().map_err(rusqlite::Error::from)?)
        .map_err(|error| SqliteFault::unreadable(format!("headers: {error}")))?;
    Ok(DeadLetter {
        id: row.get(0)?,
        lane: row.get(1)?,
        task: TaskId::new(text(2)?),
        registration: RegistrationId::new(text(3)?),
        owner: Caller { tenant: text(4)?, name: text(5)? },
        origin: text(6)?,
        webhook_id: text(7)?,
        from: row.get(8)?,
        to: row.get(9)?,
        reason: text(10)?,
        attempts: row.get(11)?,
        first_at: Timestamp::from_micros(row.get(12)?),
        last_at: Timestamp::from_micros(row.get(13)?),
        http: row.get(14)?,
        error: row.get::<_, Option<String>>(15)?.map(Arc::from),
        body: row.get::<_, Vec<u8>>(16)?.into(),
        headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        replays: row.get(18)?,
    })
}

/// What a filter says, to stand after `WHERE`.
fn conditions(filter: &DeadFilter, after: u64) -> (String, Vec<Value>) {
    let mut all = WhereClause::of("num > ?", after.cast_signed());
    let text = |text: &Arc<str>| text.as_ref().to_owned();
    all.and("tenant = ?", filter.tenant.as_ref().map(text));
    all.and("origin = ?", filter.origin.as_ref().map(text));
    all.and("task = ?", filter.task.as_ref().map(|task| task.as_str().to_owned()));
    all.and("lane = ?", filter.lane.map(u64::cast_signed));
    all.and("reason = ?", filter.reason.as_ref().map(text));
    all.and("last_at >= ?", filter.since.map(|since| since.micros()));
    all.and("last_at < ?", filter.until.map(|until| until.micros()));
    all.into_parts()
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn list(
    connection: &Connection,
    filter: &DeadFilter,
    after: u64,
    most: usize,
) -> Result<Vec<DeadLetter>, SqliteFault> {
    let (conditions, mut values) = conditions(filter, after);
    values.push(Value::Integer(limit(most)));
    let sql = format!("SELECT {COLUMNS} FROM dead_letters WHERE {conditions} ORDER BY num LIMIT ?");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        letters.push(letter(row)?);
    }
    Ok(letters)
}

pub(super) fn get(connection: &Connection, id: u64) -> Result<Option<DeadLetter>, SqliteFault> {
    let sql = format!("SELECT {COLUMNS} FROM dead_letters WHERE num = ?1");
    connection.prepare_cached(&sql)?.query_row([id], |row| Ok(letter(row))).optional()?.transpose()
}

pub(super) fn put_in_line(
    connection: &Connection,
    filter: &DeadFilter,
    new_id: bool,
    now: Timestamp,
    after: u64,
    most: usize,
) -> Result<Vec<u64>, SqliteFault> {
    let (conditions, mut values) = conditions(filter, after);
    values.extend([Value::Integer(origins::GONE), Value::Integer(limit(most))]);
    let sql = format!(
        "SELECT num FROM dead_letters WHERE {conditions}
         AND EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = dead_letters.lane AND state <> ?) ORDER BY num LIMIT ?"
    );
    let wanted =
        connection.prepare(&sql)?.query_map(params_from_iter(values), |row| row.get(0))?.collect::<Result<Vec<u64>, _>>()?;
    let mut line =
        connection.prepare_cached("UPDATE dead_letters SET replay_at = ?2, new_id = ?3, epoch = epoch + 1 WHERE num = ?1")?;
    for num in &wanted {
        line.execute((num, now.micros(), new_id))?;
    }
    Ok(wanted)
}

pub(super) const IN_LINE: &str = "SELECT num FROM dead_letters WHERE replay_at IS NOT NULL AND replay_at <= ?1
                                  ORDER BY task, from_seq, num LIMIT ?2";

pub(super) fn claim(connection: &Connection, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, SqliteFault> {
    let mut statement = connection.prepare_cached(IN_LINE)?;
    let due = statement.query_map((now.micros(), limit(most)), |row| row.get(0))?.collect::<Result<Vec<u64>, _>>()?;
    let mut claimed = Vec::with_capacity(due.len());
    for num in due {
        let Some(letter) = get(connection, num)? else { continue };
        let Some(found) = rows::by_number(connection, letter.lane)? else {
            connection.prepare_cached("UPDATE dead_letters SET replay_at = NULL WHERE num = ?1")?.execute([num])?;
            continue;
        };
        let sql = "UPDATE dead_letters SET replay_at = ?2, epoch = epoch + 1 WHERE num = ?1 RETURNING new_id, epoch";
        let until = (now + lease).micros();
        let (new_id, epoch) = connection.prepare_cached(sql)?.query_row((num, until), |row| Ok((row.get(0)?, row.get(1)?)))?;
        claimed.push(Replay { letter, registration: found.lane.registration, new_id, epoch });
    }
    Ok(claimed)
}

pub(super) fn settle(
    connection: &Connection,
    steps: &[ReplayStep],
    record: &mut dyn FnMut(&RecordNote),
) -> Result<(), SqliteFault> {
    for step in steps {
        let settled = if step.taken {
            let sql = "DELETE FROM dead_letters WHERE num = ?1 AND epoch = ?2";
            connection.prepare_cached(sql)?.execute((step.letter, step.epoch))?
        } else {
            let sql = "UPDATE dead_letters SET replay_at = NULL, replays = replays + 1, last_at = ?3, http = ?4, error = ?5
                       WHERE num = ?1 AND epoch = ?2";
            let values = params![step.letter, step.epoch, step.at.micros(), step.http, step.error.as_deref()];
            connection.prepare_cached(sql)?.execute(values)?
        };
        if settled > 0 {
            step.delivered.clone().map(RecordNote::Delivered).iter().for_each(&mut *record);
        }
    }
    Ok(())
}

pub(super) fn purge(connection: &Connection, filter: &DeadFilter, most: usize) -> Result<u64, SqliteFault> {
    let (conditions, mut values) = conditions(filter, 0);
    values.push(Value::Integer(limit(most)));
    let sql =
        format!("DELETE FROM dead_letters WHERE num IN (SELECT num FROM dead_letters WHERE {conditions} ORDER BY num LIMIT ?)");
    Ok(connection.prepare(&sql)?.execute(params_from_iter(values))? as u64)
}

pub(super) fn acknowledge(connection: &Connection, receipt: &Receipt) -> Result<(), SqliteFault> {
    connection
        .prepare_cached(
            "INSERT INTO receipts (lane, seq, webhook_id, task, tenant, owner, origin, body_sha256, http, at, prev_hash, hash,
                    signature, receiver)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            receipt.lane,
            receipt.seq,
            &*receipt.webhook_id,
            receipt.task.as_str(),
            &*receipt.owner.tenant,
            &*receipt.owner.name,
            &*receipt.origin,
            receipt.body_sha256,
            receipt.http,
            receipt.at.micros(),
            receipt.prev_hash,
            receipt.hash,
            &*receipt.signature,
            receipt.receiver_receipt.as_deref(),
        ])?;
    connection.prepare_cached("UPDATE lanes SET receipt = ?2 WHERE lane = ?1")?.execute((receipt.lane, receipt.hash))?;
    Ok(())
}

pub(super) fn receipts(
    connection: &Connection,
    lane: Option<u64>,
    after: u64,
    most: usize,
) -> Result<Vec<(u64, Receipt)>, SqliteFault> {
    let of_lane = if lane.is_some() { "lane = ?3" } else { "?3 IS NULL" };
    let sql = format!(
        "SELECT num, lane, seq, webhook_id, task, tenant, owner, origin, body_sha256, http, at, prev_hash, hash, signature, receiver
         FROM receipts WHERE num > ?1 AND {of_lane} ORDER BY num LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((after, limit(most), lane), |row| {
        let text = |at: usize| row.get::<_, String>(at).map(Arc::<str>::from);
        let receipt = Receipt {
            lane: row.get(1)?,
            seq: row.get(2)?,
            webhook_id: text(3)?,
            task: TaskId::new(text(4)?),
            owner: Caller { tenant: text(5)?, name: text(6)? },
            origin: text(7)?,
            body_sha256: row.get(8)?,
            http: row.get(9)?,
            at: Timestamp::from_micros(row.get(10)?),
            prev_hash: row.get(11)?,
            hash: row.get(12)?,
            signature: text(13)?,
            receiver_receipt: row.get::<_, Option<String>>(14)?.map(Arc::from),
        };
        Ok((row.get(0)?, receipt))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
