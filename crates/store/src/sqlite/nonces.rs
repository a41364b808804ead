//! Nonces of signed requests, so that none is taken twice, also by the next process.

use chancery_core::{ExpiryPlan, NonceVerdict, SpentNonce};
use chancery_protocol::Timestamp;
use rusqlite::{Connection, Statement};

use super::fault::SqliteFault;

/// The statements of signed calls, prepared once for the writer's connection.
#[derive(Debug)]
pub(super) struct NonceTable<'c> {
    connection: &'c Connection,
    spend: Statement<'c>,
    spent: Statement<'c>,
    /// How many are kept.
    pub(super) count: u64,
}

/// Where all that are kept seem to count, so many that do not are made room of at once.
const ROOM: i64 = 1000;

pub(super) const ENDED: &str =
    "DELETE FROM nonces WHERE nonce IN (SELECT nonce FROM nonces WHERE until < ?1 ORDER BY until LIMIT ?2)";

impl<'c> NonceTable<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, SqliteFault> {
        Ok(Self {
            connection,
            spend: connection.prepare("INSERT INTO nonces (nonce, until) VALUES (?1, ?2) ON CONFLICT (nonce) DO NOTHING")?,
            spent: connection.prepare("SELECT 1 FROM nonces WHERE nonce = ?1 AND until >= ?2")?,
            count: connection.query_row("SELECT count(*) FROM nonces", [], |row| row.get(0))?,
        })
    }

    pub(super) fn spend(&mut self, nonce: &SpentNonce) -> Result<NonceVerdict, SqliteFault> {
        if self.spent.exists((nonce.nonce, nonce.now.micros()))? {
            return Ok(NonceVerdict::Replayed);
        }
        if self.count >= nonce.most {
            self.forget_ended(nonce.now, ROOM)?;
            if self.count >= nonce.most {
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

    /// Part of a batch's transaction. Answers whether more nonces are due.
    pub(super) fn expire(&mut self, plan: ExpiryPlan) -> Result<bool, SqliteFault> {
        let gone = self.forget_ended(plan.now, i64::try_from(plan.at_most).unwrap_or(i64::MAX))?;
        Ok(gone > 0 && gone == plan.at_most)
    }

    fn forget_ended(&mut self, now: Timestamp, at_most: i64) -> Result<u64, SqliteFault> {
        let gone = self.connection.prepare_cached(ENDED)?.execute((now.micros(), at_most))? as u64;
        self.count -= gone;
        Ok(gone)
    }
}
