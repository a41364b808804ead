//! Nonces of signed requests, so that none is taken twice, also by the next process.

use chancery_core::{ExpiryPlan, NonceVerdict, SpentNonce};
use chancery_identity::credentials::{NONCE_KEY_BYTES, is_crowded, share_of_key};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Statement};

use super::fault::SqliteFault;

/// The statements of signed calls, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct NonceTable<'c> {
    connection: &'c Connection,
    spend: Statement<'c>,
    spent: Statement<'c>,
    /// How many are kept.
    pub(super) count: u64,
    /// The latest end of a nonce that was forgotten. A signature that ends no later may have been used: a clock that was stepped
    /// back takes it for a new one.
    forgotten: i64,
}

/// Where all that are kept seem to count, so many that do not are made room of at once.
const ROOM: i64 = 1000;

/// This row has no nonce: its end is that of the last one that was forgotten.
const FORGOTTEN: [u8; 32] = [0; 32];

pub(super) const ENDED: &str = "DELETE FROM nonces WHERE nonce IN \
     (SELECT nonce FROM nonces WHERE until < ?1 AND nonce <> zeroblob(32) ORDER BY until LIMIT ?2) RETURNING until";

/// Counts no further than a key may have.
const OF_KEY: &str = "SELECT count(*) FROM (SELECT 1 FROM nonces WHERE nonce >= ?1 AND nonce <= ?2 LIMIT ?3)";

impl<'c> NonceTable<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        let forgotten = connection.query_row("SELECT until FROM nonces WHERE nonce = ?1", [FORGOTTEN], |row| row.get(0));
        Ok(Self {
            connection,
            spend: connection.prepare("INSERT INTO nonces (nonce, until) VALUES (?1, ?2) ON CONFLICT (nonce) DO NOTHING")?,
            spent: connection.prepare("SELECT 1 FROM nonces WHERE nonce = ?1 AND until >= ?2")?,
            count: connection.query_row("SELECT count(*) FROM nonces WHERE nonce <> ?1", [FORGOTTEN], |row| row.get(0))?,
            forgotten: forgotten.optional()?.unwrap_or(i64::MIN),
        })
    }

    pub(super) fn spend(&mut self, nonce: &SpentNonce) -> Result<NonceVerdict, SqliteFault> {
        if nonce.until.micros() <= self.forgotten || self.spent.exists((nonce.nonce, nonce.now.micros()))? {
            return Ok(NonceVerdict::Replayed);
        }
        if !self.has_room(nonce)? {
            self.forget_ended(nonce.now, ROOM)?;
            if !self.has_room(nonce)? {
                return Ok(NonceVerdict::Full);
            }
        }
        let row = (nonce.nonce, nonce.until.micros());
        match self.spend.execute(row)? {
            // The same nonce, of a signature that holds no more, is not swept yet.
            0 => drop(self.connection.prepare_cached("UPDATE nonces SET until = ?2 WHERE nonce = ?1")?.execute(row)?),
            _ => self.count += 1,
        }
        Ok(NonceVerdict::Fresh)
    }

    /// Whether there is room for a nonce of this key. The share of a key is only counted where room is scarce.
    fn has_room(&self, SpentNonce { nonce, most, .. }: &SpentNonce) -> Result<bool, SqliteFault> {
        if self.count >= *most || !is_crowded(self.count, *most) {
            return Ok(self.count < *most);
        }
        let (mut first, mut last, share) = ([0; 32], [0xff; 32], share_of_key(*most));
        first[..NONCE_KEY_BYTES].copy_from_slice(&nonce[..NONCE_KEY_BYTES]);
        last[..NONCE_KEY_BYTES].copy_from_slice(&nonce[..NONCE_KEY_BYTES]);
        let of_key: u64 = self.connection.prepare_cached(OF_KEY)?.query_row((first, last, share), |row| row.get(0))?;
        Ok(of_key < share)
    }

    /// Part of a batch's transaction. Answers whether more nonces are due.
    pub(super) fn expire(&mut self, plan: ExpiryPlan) -> Result<bool, SqliteFault> {
        let gone = self.forget_ended(plan.now, i64::try_from(plan.at_most).unwrap_or(i64::MAX))?;
        Ok(gone > 0 && gone == plan.at_most)
    }

    fn forget_ended(&mut self, now: Timestamp, at_most: i64) -> Result<u64, SqliteFault> {
        let mut ended = self.connection.prepare_cached(ENDED)?;
        let gone = ended.query_map((now.micros(), at_most), |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        if let Some(last) = gone.iter().max() {
            self.forgotten = self.forgotten.max(*last);
            let keep = "INSERT INTO nonces (nonce, until) VALUES (?1, ?2) ON CONFLICT (nonce) DO UPDATE SET until = ?2";
            self.connection.prepare_cached(keep)?.execute((FORGOTTEN, self.forgotten))?;
        }
        self.count -= gone.len() as u64;
        Ok(gone.len() as u64)
    }
}
