//! Idempotency keys in a table of their own: a key expires at its own time, independent of the task it made.

use chancery_core::{EXPIRY_STEP, ExpiryPlan, Idempotency, KeptKeys, Keyed, TaskRecord};
use chancery_protocol::{Caller, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Statement};

use super::fault::SqliteFault;

/// The statements that creations need, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct KeyTable<'c> {
    look_up: Statement<'c>,
    keep: Statement<'c>,
    replace: Statement<'c>,
}

const LOOK_UP: &str = "SELECT task, fingerprint FROM keys WHERE tenant = ?1 AND owner = ?2 AND key = ?3 AND expires_at > ?4";

pub(super) const EXPIRED: &str = "DELETE FROM keys WHERE (tenant, owner, key) IN
     (SELECT tenant, owner, key FROM keys WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

impl<'c> KeyTable<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        Ok(Self {
            look_up: connection.prepare(LOOK_UP)?,
            keep: connection.prepare(
                "INSERT INTO keys (tenant, owner, key, task, fingerprint, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (tenant, owner, key) DO NOTHING",
            )?,
            replace: connection.prepare(
                "UPDATE keys SET task = ?4, fingerprint = ?5, expires_at = ?6 WHERE tenant = ?1 AND owner = ?2 AND key = ?3",
            )?,
        })
    }

    pub(super) fn known(&mut self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, SqliteFault> {
        Ok(self.look_up.query_row((&*owner.tenant, &*owner.name, key, now.micros()), keyed).optional()?)
    }

    /// Takes the place of the same key if that has expired.
    pub(super) fn keep(&mut self, task: &TaskRecord, idempotency: &Idempotency) -> Result<(), SqliteFault> {
        let Idempotency { key, fingerprint, expires_at } = idempotency;
        let Caller { tenant, name } = &task.owner;
        let row = (&**tenant, &**name, &**key, task.id.as_str(), fingerprint.as_slice(), expires_at.micros());
        if self.keep.execute(row)? == 0 {
            self.replace.execute(row)?;
        }
        Ok(())
    }
}

/// Frees the key of a task that is taken back. Another task may have the key by now.
pub(super) fn release(connection: &Connection, owner: (&str, &str), key: &str, task: &TaskId) -> Result<(), SqliteFault> {
    let sql = "DELETE FROM keys WHERE tenant = ?1 AND owner = ?2 AND key = ?3 AND task = ?4";
    connection.prepare_cached(sql)?.execute((owner.0, owner.1, key, task.as_str()))?;
    Ok(())
}

/// Part of a batch's transaction. Answers whether more keys are due.
pub(super) fn expire(connection: &Connection, plan: ExpiryPlan) -> Result<bool, SqliteFault> {
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    let expired = connection.prepare_cached(EXPIRED)?.execute((plan.now.micros(), at_most))? as u64;
    Ok(plan.at_most > 0 && expired == plan.at_most)
}

/// How many keys each caller has.
pub(super) fn kept(connection: &Connection) -> Result<Vec<KeptKeys>, SqliteFault> {
    let sql = "SELECT tenant, owner, expires_at / ?1, count(*) FROM keys GROUP BY 1, 2, 3";
    let mut kept = connection.prepare(sql)?;
    let rows = kept.query_map([EXPIRY_STEP], |row| {
        let owner = Caller::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        Ok(KeptKeys { owner, step: row.get(2)?, keys: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// For a reader, who has no statements of its own.
pub(super) fn look_up(connection: &Connection, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, SqliteFault> {
    let parameters = (&*owner.tenant, &*owner.name, key, now.micros());
    Ok(connection.prepare_cached(LOOK_UP)?.query_row(parameters, keyed).optional()?)
}

fn keyed(row: &Row<'_>) -> rusqlite::Result<Keyed> {
    Ok(Keyed { task: row.get::<_, String>(0)?.into(), fingerprint: row.get(1)? })
}
