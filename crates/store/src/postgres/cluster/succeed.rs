//! A node becomes the successor of one whose lease has ended: it ends the other's sessions and closes its writers.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::join::{cluster_id, session_name};
use super::{ClusterMember, WakeupNews, forwarded};
use crate::postgres::columns::{self, DatabaseSession};
use crate::postgres::fault::{FaultScope, PostgresFault};
use crate::postgres::fence::TAKEOVER_ATTEMPTS;
use crate::postgres::flight::BEGIN;

/// Both rows are locked, in the order of their numbers: of two nodes that succeed each other, or a third, one is first.
const BOTH: &str = "SELECT node, successor, gone OR exclusive, lease_until < now(), since <= now() - make_interval(secs => $3)
     FROM nodes WHERE node IN ($1, $2) ORDER BY node FOR UPDATE";

/// With the node come those that it had succeeded itself. Its own statement, so that it sees what the locks waited for.
const CLAIM: &str = "UPDATE nodes SET successor = $1 WHERE node = $2 OR successor = $2";

/// Answers whether this node is the successor.
pub(super) async fn claim(session: &ClientWrapper, me: i64, expired: i64, lease: Duration) -> Result<bool, PostgresFault> {
    session.batch_execute(BEGIN).await?;
    let claimed = claim_within(session, me, expired, lease).await;
    session.batch_execute(if matches!(claimed, Ok(true)) { "COMMIT" } else { "ROLLBACK" }).await?;
    claimed
}

async fn claim_within(session: &ClientWrapper, me: i64, expired: i64, lease: Duration) -> Result<bool, PostgresFault> {
    let rows = session.rows(BOTH, &[&me, &expired, &lease.as_secs_f64()]).await?;
    let rows = columns::each(rows, NodeLease::of)?;
    let find = |node: i64| rows.iter().find(|row| row.node == node);
    let (Some(own), Some(other)) = (find(me), find(expired)) else { return Ok(false) };
    let is_live = own.successor.is_none() && !own.cannot_be_succeeded && !own.is_over && own.is_mature;
    if !is_live || me == expired {
        return Ok(false);
    }
    if other.successor == Some(me) {
        return Ok(true);
    }
    if other.successor.is_some() || other.cannot_be_succeeded || !other.is_over {
        return Ok(false);
    }
    session.execute(CLAIM, &[&me, &expired]).await?;
    Ok(true)
}

/// A node's row as far as a succession depends on it.
struct NodeLease {
    node: i64,
    successor: Option<i64>,
    /// It left by itself, or has the database for itself.
    cannot_be_succeeded: bool,
    is_over: bool,
    is_mature: bool,
}

impl NodeLease {
    fn of(row: &Row) -> Result<Self, PostgresFault> {
        Ok(Self {
            node: row.try_get(0)?,
            successor: row.try_get(1)?,
            cannot_be_succeeded: row.try_get(2)?,
            is_over: row.try_get(3)?,
            is_mature: row.try_get(4)?,
        })
    }
}

/// Whether a node that this one succeeds has a writer that is not closed.
pub(super) async fn is_open<D: DatabaseSession>(db: &D, me: i64, expired: i64) -> Result<bool, PostgresFault> {
    let sql =
        "SELECT 1 FROM writers JOIN nodes ON nodes.node = writers.node WHERE nodes.node = $1 AND successor = $2 AND NOT closed";
    Ok(columns::row(db, sql, &[&expired, &me]).await?.is_some())
}

const TO_SHUT_OUT: &str = "SELECT DISTINCT nodes.node FROM nodes JOIN writers ON writers.node = nodes.node
     WHERE successor = $1 AND NOT closed ORDER BY 1";

/// Sessions of other databases, roles and clusters may have the same number in their names.
const END_SESSIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
     WHERE datname = current_database() AND usename = session_user AND application_name = $1 AND pid <> pg_backend_pid()";

impl ClusterMember {
    /// Keeps out all writes of the nodes that this one succeeds.
    pub(super) async fn shut_out(&self, session: &ClientWrapper) -> Result<(), PostgresFault> {
        let nodes = columns::each(session.rows(TO_SHUT_OUT, &[&self.identity.node]).await?, |row| Ok(row.try_get(0)?))?;
        let cluster = cluster_id(session).await?;
        for node in nodes {
            end_sessions(session, node, &cluster).await?;
            close_writers(session, node).await?;
            let moved = forwarded::mark_moved(session, node, None).await?;
            tracing::info!(node, "this node is the successor of a node whose lease has ended");
            self.outbox.add(WakeupNews::of_answers(moved));
        }
        Ok(())
    }
}

/// A process that is stopped inside a transaction holds locks that its successor needs.
async fn end_sessions(session: &ClientWrapper, node: i64, cluster: &str) -> Result<(), PostgresFault> {
    match session.rows(END_SESSIONS, &[&session_name(node, cluster)]).await {
        Err(fault) if fault.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            tracing::warn!(node, %fault, "the sessions of a node that is gone cannot be ended; the server ends them when they are idle");
            Ok(())
        }
        ended => ended.map(drop),
    }
}

/// Waits for a batch that is under way.
async fn close_writers(session: &ClientWrapper, node: i64) -> Result<(), PostgresFault> {
    let mut attempt = 1;
    loop {
        match session.execute("UPDATE writers SET closed = true WHERE node = $1 AND NOT closed", &[&node]).await {
            Err(fault) if fault.scope() == FaultScope::TryAgain && attempt < TAKEOVER_ATTEMPTS => attempt += 1,
            closed => return closed.map(drop),
        }
    }
}
