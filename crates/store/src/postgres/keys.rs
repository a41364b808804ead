//! Idempotency keys in a table of their own: a key expires at its own time, independent of the task it made.

use chancery_core::{ExpiryPlan, Keyed};
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

const TOO_MANY: &str = "DELETE FROM keys WHERE (tenant, owner, key) IN
     (SELECT tenant, owner, key FROM keys ORDER BY expires_at LIMIT $1)";

/// How many there are beyond a number. No more are counted than may go at once, and one.
const BEYOND: &str = "SELECT count(*) FROM (SELECT 1 FROM keys OFFSET $1 LIMIT $2) beyond";

/// Part of a batch's transaction. Answers whether more keys are due.
pub(super) async fn expire<D: DatabaseSession>(db: &D, plan: ExpiryPlan) -> Result<bool, PostgresFault> {
    let at_most = i64::try_from(plan.at_most).unwrap_or(i64::MAX - 1);
    let expired = db.execute(EXPIRED, &[&plan.now.micros(), &at_most]).await?.cast_signed();
    let too_many = match plan.keep_keys {
        Some(keep) => columns::number(db, BEYOND, &[&i64::try_from(keep).unwrap_or(i64::MAX), &(at_most + 1)]).await?,
        None => 0,
    };
    let going = too_many.min(at_most - expired);
    if going > 0 {
        db.execute(TOO_MANY, &[&going]).await?;
    }
    Ok(at_most > 0 && (expired == at_most || too_many > going))
}
