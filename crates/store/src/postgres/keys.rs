//! Idempotency keys in a table of their own: a key expires at its own time, independent of the task it made.

use chancery_core::{EXPIRY_STEP, ExpiryPlan, KeptKeys, Keyed};
use chancery_protocol::{Caller, Timestamp};

use super::columns::{self, Columns as _, DatabaseSession, sought};
use super::fault::PostgresFault;

pub(super) async fn look_up<D: DatabaseSession>(
    db: &D,
    owner: &Caller,
    key: &str,
    now: Timestamp,
) -> Result<Option<Keyed>, PostgresFault> {
    let sql = "SELECT task, fingerprint FROM keys WHERE tenant = $1 AND owner = $2 AND key = $3 AND expires_at > $4";
    let values = (sought(&owner.tenant), sought(&owner.name), sought(key), now.micros());
    let found = columns::row(db, sql, &[&values.0, &values.1, &values.2, &values.3]).await?;
    found.map(|row| Ok(Keyed { task: row.task(0)?, fingerprint: row.digest(1)? })).transpose()
}

const EXPIRED: &str = "DELETE FROM keys WHERE (tenant, owner, key) IN
     (SELECT tenant, owner, key FROM keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";

/// Part of a batch's transaction. Answers whether more keys are due.
pub(super) async fn expire<D: DatabaseSession>(db: &D, plan: ExpiryPlan) -> Result<bool, PostgresFault> {
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX);
    let expired = db.execute(EXPIRED, &[&plan.now.micros(), &at_most]).await?;
    Ok(plan.at_most > 0 && expired == plan.at_most)
}

/// Counts the keys of each caller, by the step in which they expire.
pub(super) async fn kept<D: DatabaseSession>(db: &D) -> Result<Vec<KeptKeys>, PostgresFault> {
    let sql = "SELECT tenant, owner, expires_at / $1, count(*) FROM keys GROUP BY 1, 2, 3";
    columns::each(db.rows(sql, &[&EXPIRY_STEP]).await?, |row| {
        let owner = Caller::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?);
        Ok(KeptKeys { owner, step: row.try_get(2)?, keys: row.try_get::<_, i64>(3)?.cast_unsigned() })
    })
}
