//! Nonces of signed requests, so that none is taken twice, also by the next process.

use chancery_core::{ExpiryPlan, NonceVerdict, SpentNonce};
use chancery_protocol::Timestamp;

use super::columns::{self, Columns as _, DatabaseSession};
use super::fault::PostgresFault;

/// Where all that are kept seem to count, so many that do not are made room of at once.
const ROOM: i64 = 1000;

const COUNTED: &str = "SELECT nonce FROM nonces JOIN unnest($1::bytea[], $2::bigint[]) AS given (spent, now)
     ON nonce = spent WHERE until >= now";

/// The same nonce, of a signature that holds no more, may not be swept yet.
const KEEP: &str = "INSERT INTO nonces SELECT * FROM unnest($1::bytea[], $2::bigint[])
     ON CONFLICT (nonce) DO UPDATE SET until = excluded.until RETURNING xmax = 0";

/// Spends nonces of which no two are the same. Part of a batch's transaction. `count` is how many are kept.
/// Answers the verdicts, and how many are kept then.
pub(super) async fn spend<D: DatabaseSession>(
    db: &D,
    all: &[SpentNonce],
    mut count: u64,
) -> Result<(Vec<NonceVerdict>, u64), PostgresFault> {
    let nonces: Vec<&[u8]> = all.iter().map(|spent| spent.nonce.as_slice()).collect();
    let now: Vec<i64> = all.iter().map(|spent| spent.now.micros()).collect();
    let known = columns::each(db.rows(COUNTED, &[&nonces, &now]).await?, |row| row.digest(0))?;
    let mut verdicts = Vec::with_capacity(all.len());
    let (mut fresh, mut until) = (Vec::new(), Vec::new());
    for spent in all {
        let will_be = |count: u64, fresh: &Vec<&[u8]>| count.saturating_add(fresh.len() as u64);
        let verdict = if known.contains(&spent.nonce) {
            NonceVerdict::Replayed
        } else {
            if will_be(count, &fresh) >= spent.most {
                count -= forget_ended(db, spent.now, ROOM).await?.min(count);
            }
            if will_be(count, &fresh) >= spent.most { NonceVerdict::Full } else { NonceVerdict::Fresh }
        };
        if verdict == NonceVerdict::Fresh {
            fresh.push(spent.nonce.as_slice());
            until.push(spent.until.micros());
        }
        verdicts.push(verdict);
    }
    if !fresh.is_empty() {
        let made = columns::each(db.rows(KEEP, &[&fresh, &until]).await?, |row| Ok(row.try_get::<_, bool>(0)?))?;
        count += made.into_iter().filter(|made| *made).count() as u64;
    }
    Ok((verdicts, count))
}

/// Part of a batch's transaction. Answers how many went, and whether more are due.
pub(super) async fn expire<D: DatabaseSession>(db: &D, plan: ExpiryPlan) -> Result<(u64, bool), PostgresFault> {
    let gone = forget_ended(db, plan.now, i64::try_from(plan.at_most).unwrap_or(i64::MAX)).await?;
    Ok((gone, gone > 0 && gone == plan.at_most))
}

async fn forget_ended<D: DatabaseSession>(db: &D, now: Timestamp, at_most: i64) -> Result<u64, PostgresFault> {
    let sql = "DELETE FROM nonces WHERE nonce IN (SELECT nonce FROM nonces WHERE until < $1 ORDER BY until LIMIT $2)";
    db.execute(sql, &[&now.micros(), &at_most]).await
}
