//! Nonces of signed requests, so that none is taken twice, also by the next process.

use chancery_core::{ExpiryPlan, NonceVerdict, SpentNonce};
use chancery_identity::credentials::{NONCE_KEY_BYTES, is_crowded, share_of_key};
use chancery_protocol::Timestamp;

use super::columns::{self, Columns as _, DatabaseSession};
use super::fault::PostgresFault;

/// Where all that are kept seem to count, so many that do not are made room of at once.
const ROOM: i64 = 1000;

/// This row has no nonce: its end is that of the last nonce that was deleted.
const FORGOTTEN: &[u8] = &[0; 32];

const COUNTED: &str = "SELECT nonce FROM nonces JOIN unnest($1::bytea[], $2::bigint[]) AS given (spent, now)
     ON nonce = spent WHERE until >= now";

/// The same nonce, of a signature that holds no more, may not be swept yet. One that another node keeps at this moment stays as
/// it is, and is not answered.
const KEEP: &str = "INSERT INTO nonces AS kept (nonce, until)
     SELECT spent, until FROM unnest($1::bytea[], $2::bigint[]) AS given (spent, until) ORDER BY spent
     ON CONFLICT (nonce) DO UPDATE SET until = excluded.until
     WHERE kept.until < (SELECT now FROM unnest($1::bytea[], $3::bigint[]) AS given (spent, now) WHERE spent = kept.nonce)
     RETURNING kept.nonce, kept.xmax = 0";

/// Counts no further than a key may have.
const OF_KEY: &str = "SELECT count(*) FROM (SELECT 1 FROM nonces WHERE nonce >= $1 AND nonce <= $2 LIMIT $3) of_key";

/// Returns how many nonces are kept.
pub(super) async fn count<D: DatabaseSession>(db: &D) -> Result<u64, PostgresFault> {
    let count = columns::number(db, "SELECT count(*) FROM nonces WHERE nonce <> $1", &[&FORGOTTEN]).await?;
    Ok(count.max(0).cast_unsigned())
}

/// Spends nonces of which no two are the same. Part of a batch's transaction. `count` is how many are kept. The answer has
/// the verdicts and the new count.
pub(super) async fn spend<D: DatabaseSession>(
    db: &D,
    all: &[SpentNonce],
    mut count: u64,
) -> Result<(Vec<NonceVerdict>, u64), PostgresFault> {
    let nonces: Vec<&[u8]> = all.iter().map(|spent| spent.nonce.as_slice()).collect();
    let now: Vec<i64> = all.iter().map(|spent| spent.now.micros()).collect();
    let known = columns::each(db.rows(COUNTED, &[&nonces, &now]).await?, |row| row.digest(0))?;
    let mut forgotten = forgotten(db).await?;
    let mut verdicts = Vec::with_capacity(all.len());
    let mut fresh: Vec<&SpentNonce> = Vec::new();
    for spent in all {
        // A clock that was set back takes a signature that ended for a new one, so an end before the last deleted one counts.
        let is_known = spent.until.micros() <= forgotten || known.contains(&spent.nonce);
        let verdict = if is_known {
            NonceVerdict::Replayed
        } else if has_room(db, spent, count, &fresh).await? {
            NonceVerdict::Fresh
        } else {
            let gone = forget_ended(db, spent.now, ROOM).await?;
            count -= gone.count.min(count);
            forgotten = forgotten.max(gone.last);
            if has_room(db, spent, count, &fresh).await? { NonceVerdict::Fresh } else { NonceVerdict::Full }
        };
        if verdict == NonceVerdict::Fresh {
            fresh.push(spent);
        }
        verdicts.push(verdict);
    }
    if !fresh.is_empty() {
        let (nonces, until): (Vec<&[u8]>, Vec<i64>) =
            fresh.iter().map(|spent| (spent.nonce.as_slice(), spent.until.micros())).unzip();
        let now: Vec<i64> = fresh.iter().map(|spent| spent.now.micros()).collect();
        let kept = db.rows(KEEP, &[&nonces, &until, &now]).await?;
        let kept = columns::each(kept, |row| Ok((row.digest(0)?, row.try_get::<_, bool>(1)?)))?;
        count += kept.iter().filter(|(_, is_new)| *is_new).count() as u64;
        for (spent, verdict) in all.iter().zip(&mut verdicts) {
            if *verdict == NonceVerdict::Fresh && !kept.iter().any(|(nonce, _)| *nonce == spent.nonce) {
                *verdict = NonceVerdict::Replayed;
            }
        }
    }
    Ok((verdicts, count))
}

/// Returns whether there is room for a nonce of this key. The share of a key is only counted where room is scarce.
async fn has_room<D: DatabaseSession>(
    db: &D,
    SpentNonce { nonce, most, .. }: &SpentNonce,
    count: u64,
    fresh: &[&SpentNonce],
) -> Result<bool, PostgresFault> {
    let count = count.saturating_add(fresh.len() as u64);
    if count >= *most || !is_crowded(count, *most) {
        return Ok(count < *most);
    }
    let (mut first, mut last, share) = ([0; 32], [0xff; 32], share_of_key(*most));
    let key = &nonce[..NONCE_KEY_BYTES];
    first[..NONCE_KEY_BYTES].copy_from_slice(key);
    last[..NONCE_KEY_BYTES].copy_from_slice(key);
    let (first, last): (&[u8], &[u8]) = (&first, &last);
    let kept = columns::number(db, OF_KEY, &[&first, &last, &i64::try_from(share).unwrap_or(i64::MAX)]).await?;
    let waiting = fresh.iter().filter(|spent| spent.nonce.starts_with(key)).count() as u64;
    Ok(kept.max(0).cast_unsigned() + waiting < share)
}

/// Part of a batch's transaction. Answers how many went, and whether more are due.
pub(super) async fn expire<D: DatabaseSession>(db: &D, plan: ExpiryPlan) -> Result<(u64, bool), PostgresFault> {
    let gone = forget_ended(db, plan.now, i64::try_from(plan.at_most).unwrap_or(i64::MAX)).await?;
    Ok((gone.count, gone.count > 0 && gone.count == plan.at_most))
}

/// The end of the last nonce that was deleted.
async fn forgotten<D: DatabaseSession>(db: &D) -> Result<i64, PostgresFault> {
    let found = columns::row(db, "SELECT until FROM nonces WHERE nonce = $1", &[&FORGOTTEN]).await?;
    found.map_or(Ok(i64::MIN), |row| Ok(row.try_get(0)?))
}

struct ForgottenNonces {
    count: u64,
    /// The latest end of those.
    last: i64,
}

async fn forget_ended<D: DatabaseSession>(db: &D, now: Timestamp, at_most: i64) -> Result<ForgottenNonces, PostgresFault> {
    let sql = "DELETE FROM nonces WHERE nonce IN
         (SELECT nonce FROM nonces WHERE until < $1 AND nonce <> $3 ORDER BY until LIMIT $2) RETURNING until";
    let gone = db.rows(sql, &[&now.micros(), &at_most, &FORGOTTEN]).await?;
    let ends = columns::each(gone, |row| Ok(row.try_get::<_, i64>(0)?))?;
    let last = ends.iter().copied().max().unwrap_or(i64::MIN);
    if !ends.is_empty() {
        let keep = "INSERT INTO nonces VALUES ($1, $2)
             ON CONFLICT (nonce) DO UPDATE SET until = greatest(nonces.until, excluded.until)";
        db.execute(keep, &[&FORGOTTEN, &last]).await?;
    }
    Ok(ForgottenNonces { count: ends.len() as u64, last })
}
