//! The fence: a row for each writer, which every batch counts up and which a later owner of the database closes.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use uuid::Uuid;

use super::columns::{self, Columns as _, DatabaseSession};
use super::ended_counts;
use super::fault::{FaultScope, PostgresFault};
use super::flight::BEGIN;

/// The one writer of a node.
pub(super) const PLAIN_WRITER: i64 = 0;

/// Whose row the fence is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WriterIdentity {
    pub(super) node: i64,
    /// Random for each start, as text.
    pub(super) life: String,
    pub(super) writer: i64,
    /// Whether it is one of several nodes that share the database.
    pub(super) is_member: bool,
}

/// A writer's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceRow {
    /// The number of the last batch that is in.
    pub(super) batch: i64,
    pub(super) closed: bool,
}

impl FenceRow {
    /// What the row says about a batch whose answer is lost.
    pub(super) fn verdict(row: Option<Self>, sent: i64) -> FenceVerdict {
        match row {
            // A row that is closed still says whether the last batch before that was in.
            Some(Self { batch, .. }) if batch == sent => FenceVerdict::In,
            None | Some(Self { closed: true, .. }) => FenceVerdict::Refused(PostgresFault::Fenced),
            Some(Self { batch, .. }) if batch == sent - 1 => FenceVerdict::Out,
            Some(Self { batch, .. }) => {
                let words = format!("batch {} was confirmed, and the newest it has is {batch}", sent - 1);
                FenceVerdict::Refused(PostgresFault::LostCommits(words.into()))
            }
        }
    }
}

/// Whether a batch is in.
#[derive(Debug)]
pub(super) enum FenceVerdict {
    In,
    Out,
    /// The database refuses it and all later ones.
    Refused(PostgresFault),
}

/// How often a takeover waits for a batch that is under way before the start fails. A session that is stopped inside a batch is
/// ended by the server meanwhile.
pub(super) const TAKEOVER_ATTEMPTS: usize = 5;

/// Joins as the only node: takes a number, closes the writers of all others, and opens its own. From then on the database
/// refuses what they send. It waits for a batch that is under way.
pub(super) async fn take_over(session: &ClientWrapper, lease: Duration) -> Result<WriterIdentity, PostgresFault> {
    let mut attempt = 1;
    loop {
        session.batch_execute(BEGIN).await?;
        let taken = take_over_within(session, lease).await;
        session.batch_execute(if taken.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        match taken {
            Err(fault) if fault.scope() == FaultScope::TryAgain && attempt < TAKEOVER_ATTEMPTS => attempt += 1,
            taken => return taken,
        }
    }
}

async fn take_over_within(session: &ClientWrapper, lease: Duration) -> Result<WriterIdentity, PostgresFault> {
    // One start after the other.
    lock_starts(session).await?;
    refuse_beside_members(session).await?;
    let (node, life) = new_life(session).await?;
    // Rows that were closed before are of no use to anyone: their nodes had a whole start to read them.
    session.execute("DELETE FROM writers WHERE closed", &[]).await?;
    session.execute("DELETE FROM nodes WHERE node NOT IN (SELECT node FROM writers)", &[]).await?;
    session.execute("UPDATE writers SET closed = true", &[]).await?;
    // Members whose leases are over find out that they have to join again. What they held is this node's now.
    session.execute("UPDATE nodes SET successor = $1 WHERE successor IS NULL AND NOT gone", &[&node]).await?;
    session.execute("UPDATE tasks SET node = NULL WHERE node IS NOT NULL", &[]).await?;
    session.execute("UPDATE tasks SET released = false WHERE released", &[]).await?;
    session.execute("DELETE FROM forwarded_calls", &[]).await?;
    let made = "INSERT INTO nodes (node, life, version, role, exclusive, lease_until)
                VALUES ($1, $2::text::uuid, $3, session_user::text, true, now() + make_interval(secs => $4))";
    session.execute(made, &[&node, &life, &env!("CARGO_PKG_VERSION"), &lease.as_secs_f64()]).await?;
    open_writer(session, node, &life).await?;
    ended_counts::gather(session, node).await?;
    Ok(WriterIdentity { node, life, writer: PLAIN_WRITER, is_member: false })
}

/// One start after the other, until the transaction ends.
pub(super) async fn lock_starts(session: &ClientWrapper) -> Result<(), PostgresFault> {
    session.rows("SELECT pg_advisory_xact_lock(hashtext('chancery take over'))", &[]).await?;
    Ok(())
}

/// The number of this start, and its random name.
pub(super) async fn new_life(session: &ClientWrapper) -> Result<(i64, String), PostgresFault> {
    let node = columns::number(session, "SELECT nextval('node_numbers')", &[]).await?;
    Ok((node, Uuid::now_v7().to_string()))
}

pub(super) async fn open_writer(session: &ClientWrapper, node: i64, life: &String) -> Result<(), PostgresFault> {
    let opened = "INSERT INTO writers (node, life, writer, batch, closed) VALUES ($1, $2::text::uuid, $3, 0, false)";
    session.execute(opened, &[&node, life, &PLAIN_WRITER]).await?;
    Ok(())
}

const LIVE_MEMBERS: &str = "SELECT node, extract(epoch FROM lease_until - now())::float8 FROM nodes
     WHERE NOT exclusive AND NOT gone AND successor IS NULL AND lease_until >= now() ORDER BY lease_until DESC";

async fn refuse_beside_members(session: &ClientWrapper) -> Result<(), PostgresFault> {
    let members = session.rows(LIVE_MEMBERS, &[]).await?;
    let Some(last) = members.first() else { return Ok(()) };
    let (node, seconds): (i64, f64) = (last.try_get(0)?, last.try_get(1)?);
    Err(PostgresFault::in_use(format!(
        "{} nodes share this database, the last of them node {node} with a lease of {seconds:.0} s: join them, or stop them first",
        members.len()
    )))
}

const ROW: &str = "SELECT batch, closed FROM writers WHERE node = $1 AND life = $2::text::uuid AND writer = $3";

impl WriterIdentity {
    /// The node that tasks made by this writer are held by.
    pub(super) fn holder(&self) -> Option<i64> {
        self.is_member.then_some(self.node)
    }

    /// The book of the record that it writes.
    pub(super) fn book(&self) -> i64 {
        if self.is_member { self.node } else { 0 }
    }

    /// What the writer's row says about a batch, in the words that fit this node.
    pub(super) fn verdict(&self, row: Option<FenceRow>, sent: i64) -> FenceVerdict {
        match FenceRow::verdict(row, sent) {
            FenceVerdict::Refused(PostgresFault::Fenced) if self.is_member => FenceVerdict::Refused(PostgresFault::Succeeded),
            verdict => verdict,
        }
    }

    pub(super) async fn row(&self, session: &ClientWrapper) -> Result<Option<FenceRow>, PostgresFault> {
        self.read(session, ROW).await
    }

    /// The same, and holds the row until the transaction ends: a first sending that comes late has to wait, and then fails.
    pub(super) async fn locked_row(&self, session: &ClientWrapper) -> Result<Option<FenceRow>, PostgresFault> {
        self.read(session, &format!("{ROW} FOR UPDATE")).await
    }

    async fn read(&self, session: &ClientWrapper, sql: &str) -> Result<Option<FenceRow>, PostgresFault> {
        let found = columns::row(session, sql, &[&self.node, &self.life, &self.writer]).await?;
        found.map(|row| Ok(FenceRow { batch: row.count(0)?.cast_signed(), closed: row.try_get(1)? })).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_tells_a_batch_that_is_in_from_one_that_is_not_and_from_lost_commits() {
        let row = |batch, closed| Some(FenceRow { batch, closed });
        assert!(matches!(FenceRow::verdict(row(7, false), 7), FenceVerdict::In));
        assert!(matches!(FenceRow::verdict(row(7, true), 7), FenceVerdict::In), "closed after it");
        assert!(matches!(FenceRow::verdict(row(6, false), 7), FenceVerdict::Out));
        assert!(matches!(FenceRow::verdict(row(6, true), 7), FenceVerdict::Refused(PostgresFault::Fenced)));
        assert!(matches!(FenceRow::verdict(None, 7), FenceVerdict::Refused(PostgresFault::Fenced)));
        assert!(matches!(FenceRow::verdict(row(4, false), 7), FenceVerdict::Refused(PostgresFault::LostCommits(_))));
    }
}
