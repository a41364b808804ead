//! Dead letters, on and off the line to be delivered again.

use std::time::Duration;

use chancery_core::RecordNote;
use chancery_core::push::{DeadFilter, DeadLetter, LaneState, Receipt, RegistrationId, Replay, ReplayStep};
use chancery_protocol::{Caller, Timestamp};
use tokio_postgres::Row;

use super::rows;
use crate::postgres::columns::{self, Columns as _, DatabaseSession, as_text, limit};
use crate::postgres::conditions::QueryValues;
use crate::postgres::fault::PostgresFault;
use crate::rows::lane_words::state_number;

const COLUMNS: &str = "num, lane, task, registration, tenant, owner, origin, webhook_id, from_seq, to_seq, reason, attempts, first_at, \
                       last_at, http, error, body, headers, replays";

const KEEP: &str =
    "INSERT INTO dead_letters (lane, task, registration, tenant, owner, origin, webhook_id, from_seq, to_seq, reason,
            attempts, first_at, last_at, http, error, body, headers, replays, new_id, epoch)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, false, 0)";

pub(super) async fn keep<D: DatabaseSession>(db: &D, letter: &DeadLetter, from: u64, to: u64) -> Result<(), PostgresFault> {
    let headers = serde_json::to_vec(&letter.headers).map_err(|error| PostgresFault::unreadable(format!("headers: {error}")))?;
    let error = letter.error.as_deref().map(str::as_bytes);
    db.execute(
        KEEP,
        &[
            &letter.lane.cast_signed(),
            &letter.task.as_str(),
            &letter.registration.as_str(),
            &&*letter.owner.tenant,
            &&*letter.owner.name,
            &&*letter.origin,
            &&*letter.webhook_id,
            &from.cast_signed(),
            &to.cast_signed(),
            &&*letter.reason,
            &i64::from(letter.attempts),
            &letter.first_at.micros(),
            &letter.last_at.micros(),
            &letter.http.map(i64::from),
            &error,
            &&*letter.body,
            &headers,
            &i64::from(letter.replays),
        ],
    )
    .await?;
    Ok(())
}

fn letter(row: &Row) -> Result<DeadLetter, PostgresFault> {
    let headers: Vec<(String, String)> =
        serde_json::from_str(as_text(row.bytes(17)?)?).map_err(|error| PostgresFault::unreadable(format!("headers: {error}")))?;
    Ok(DeadLetter {
        id: row.count(0)?,
        lane: row.count(1)?,
        task: row.task(2)?,
        registration: RegistrationId::new(row.text(3)?),
        owner: Caller { tenant: row.text(4)?, name: row.text(5)? },
        origin: row.text(6)?,
        webhook_id: row.text(7)?,
        from: row.count(8)?,
        to: row.count(9)?,
        reason: row.text(10)?,
        attempts: row.small(11)?,
        first_at: row.time(12)?,
        last_at: row.time(13)?,
        http: row.small_or_none(14)?,
        error: row.free_text_or_none(15)?,
        body: row.bytes(16)?.to_vec().into(),
        headers: headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        replays: row.small(18)?,
    })
}

/// What a filter says, to stand after `WHERE`.
fn conditions(filter: &DeadFilter, after: u64, values: &mut QueryValues) -> String {
    let mut sql = format!("num > {}", values.put(after.cast_signed()));
    let mut and = |condition: String| sql.push_str(&format!(" AND {condition}"));
    if let Some(tenant) = &filter.tenant {
        and(format!("tenant = {}", values.put_name(tenant)));
    }
    if let Some(origin) = &filter.origin {
        and(format!("origin = {}", values.put_name(origin)));
    }
    if let Some(task) = &filter.task {
        and(format!("task = {}", values.put_name(task.as_str())));
    }
    if let Some(lane) = filter.lane {
        and(format!("lane = {}", values.put(lane.cast_signed())));
    }
    if let Some(reason) = &filter.reason {
        and(format!("reason = {}", values.put_name(reason)));
    }
    if let Some(since) = filter.since {
        and(format!("last_at >= {}", values.put(since.micros())));
    }
    if let Some(until) = filter.until {
        and(format!("last_at < {}", values.put(until.micros())));
    }
    sql
}

pub(super) async fn list<D: DatabaseSession>(
    db: &D,
    filter: &DeadFilter,
    after: u64,
    most: usize,
) -> Result<Vec<DeadLetter>, PostgresFault> {
    let mut values = QueryValues::default();
    let conditions = conditions(filter, after, &mut values);
    let most = values.put(limit(most));
    let sql = format!("SELECT {COLUMNS} FROM dead_letters WHERE {conditions} ORDER BY num LIMIT {most}");
    columns::each(db.rows_once(&sql, &values.borrowed()).await?, letter)
}

pub(super) async fn get<D: DatabaseSession>(db: &D, id: u64) -> Result<Option<DeadLetter>, PostgresFault> {
    let sql = format!("SELECT {COLUMNS} FROM dead_letters WHERE num = $1");
    columns::row(db, &sql, &[&id.cast_signed()]).await?.as_ref().map(letter).transpose()
}

pub(super) async fn put_in_line<D: DatabaseSession>(
    db: &D,
    filter: &DeadFilter,
    new_id: bool,
    now: Timestamp,
    after: u64,
    most: usize,
) -> Result<Vec<u64>, PostgresFault> {
    let mut values = QueryValues::default();
    let conditions = conditions(filter, after, &mut values);
    let (gone, most) = (values.put(state_number(LaneState::Gone)), values.put(limit(most)));
    let (now, new_id) = (values.put(now.micros()), values.put(new_id));
    let sql = format!(
        "WITH wanted AS (
             SELECT num FROM dead_letters WHERE {conditions}
             AND EXISTS (SELECT 1 FROM lanes WHERE lanes.lane = dead_letters.lane AND state <> {gone}) ORDER BY num LIMIT {most}),
         lined AS (
             UPDATE dead_letters SET replay_at = {now}, new_id = {new_id}, epoch = epoch + 1
             WHERE num IN (SELECT num FROM wanted) RETURNING num)
         SELECT num FROM lined ORDER BY num"
    );
    columns::each(db.rows_once(&sql, &values.borrowed()).await?, |row| row.count(0))
}

const IN_LINE: &str = "SELECT num FROM dead_letters WHERE replay_at IS NOT NULL AND replay_at <= $1
     ORDER BY task, from_seq, num LIMIT $2";

pub(super) async fn claim<D: DatabaseSession>(
    db: &D,
    now: Timestamp,
    lease: Duration,
    most: usize,
) -> Result<Vec<Replay>, PostgresFault> {
    let due = columns::each(db.rows(IN_LINE, &[&now.micros(), &limit(most)]).await?, |row| row.count(0))?;
    let mut claimed = Vec::with_capacity(due.len());
    for num in due {
        let Some(letter) = get(db, num).await? else { continue };
        let found = rows::one(db, "WHERE l.lane = $1", &[&letter.lane.cast_signed()]).await?;
        let Some(found) = found else {
            db.execute("UPDATE dead_letters SET replay_at = NULL WHERE num = $1", &[&num.cast_signed()]).await?;
            continue;
        };
        let sql = "UPDATE dead_letters SET replay_at = $2, epoch = epoch + 1 WHERE num = $1 RETURNING new_id, epoch";
        let until = (now + lease).micros();
        let line = columns::row(db, sql, &[&num.cast_signed(), &until]).await?;
        let line = line.ok_or_else(|| PostgresFault::unreadable("a dead letter that went while it was claimed"))?;
        let epoch = line.count(1)?;
        claimed.push(Replay { letter, registration: found.lane.registration, new_id: line.try_get(0)?, epoch });
    }
    Ok(claimed)
}

/// Answers what the record says of the steps.
pub(super) async fn settle<D: DatabaseSession>(db: &D, steps: &[ReplayStep]) -> Result<Vec<RecordNote>, PostgresFault> {
    let mut notes = Vec::new();
    for step in steps {
        let (letter, epoch) = (step.letter.cast_signed(), step.epoch.cast_signed());
        let settled = if step.taken {
            db.execute("DELETE FROM dead_letters WHERE num = $1 AND epoch = $2", &[&letter, &epoch]).await?
        } else {
            let sql = "UPDATE dead_letters SET replay_at = NULL, replays = replays + 1, last_at = $3, http = $4, error = $5
                       WHERE num = $1 AND epoch = $2";
            let error = step.error.as_deref().map(str::as_bytes);
            db.execute(sql, &[&letter, &epoch, &step.at.micros(), &step.http.map(i64::from), &error]).await?
        };
        if settled > 0 {
            notes.extend(step.delivered.clone().map(RecordNote::Delivered));
        }
    }
    Ok(notes)
}

pub(super) async fn purge<D: DatabaseSession>(db: &D, filter: &DeadFilter, most: usize) -> Result<u64, PostgresFault> {
    let mut values = QueryValues::default();
    let conditions = conditions(filter, 0, &mut values);
    let most = values.put(limit(most));
    let sql = format!(
        "DELETE FROM dead_letters WHERE num IN (SELECT num FROM dead_letters WHERE {conditions} ORDER BY num LIMIT {most}) RETURNING num"
    );
    Ok(db.rows_once(&sql, &values.borrowed()).await?.len() as u64)
}

const ACKNOWLEDGE: &str =
    "INSERT INTO receipts (lane, seq, webhook_id, task, tenant, owner, origin, body_sha256, http, at, prev_hash, hash,
            signature, receiver)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

pub(super) async fn acknowledge<D: DatabaseSession>(db: &D, receipt: &Receipt) -> Result<(), PostgresFault> {
    let (lane, hash) = (receipt.lane.cast_signed(), receipt.hash.as_slice());
    let receiver = receipt.receiver_receipt.as_deref().map(str::as_bytes);
    db.execute(
        ACKNOWLEDGE,
        &[
            &lane,
            &receipt.seq.cast_signed(),
            &&*receipt.webhook_id,
            &receipt.task.as_str(),
            &&*receipt.owner.tenant,
            &&*receipt.owner.name,
            &&*receipt.origin,
            &receipt.body_sha256.as_slice(),
            &i64::from(receipt.http),
            &receipt.at.micros(),
            &receipt.prev_hash.as_slice(),
            &hash,
            &&*receipt.signature,
            &receiver,
        ],
    )
    .await?;
    db.execute("UPDATE lanes SET receipt = $2 WHERE lane = $1", &[&lane, &hash]).await?;
    Ok(())
}

pub(super) async fn receipts<D: DatabaseSession>(
    db: &D,
    lane: Option<u64>,
    after: u64,
    most: usize,
) -> Result<Vec<(u64, Receipt)>, PostgresFault> {
    let mut values = QueryValues::default();
    let (after, most) = (values.put(after.cast_signed()), values.put(limit(most)));
    let of_lane = lane.map(|lane| format!("AND lane = {}", values.put(lane.cast_signed()))).unwrap_or_default();
    let sql = format!(
        "SELECT num, lane, seq, webhook_id, task, tenant, owner, origin, body_sha256, http, at, prev_hash, hash, signature, receiver
         FROM receipts WHERE num > {after} {of_lane} ORDER BY num LIMIT {most}"
    );
    columns::each(db.rows(&sql, &values.borrowed()).await?, |row| {
        let receipt = Receipt {
            lane: row.count(1)?,
            seq: row.count(2)?,
            webhook_id: row.text(3)?,
            task: row.task(4)?,
            owner: Caller { tenant: row.text(5)?, name: row.text(6)? },
            origin: row.text(7)?,
            body_sha256: row.digest(8)?,
            http: row.small(9)?,
            at: row.time(10)?,
            prev_hash: row.digest(11)?,
            hash: row.digest(12)?,
            signature: row.text(13)?,
            receiver_receipt: row.free_text_or_none(14)?,
        };
        Ok((row.count(0)?, receipt))
    })
}
