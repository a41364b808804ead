//! A node joins those that share the database: it gets a number and a lease, opens its writer, and closes nobody's.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;

use crate::postgres::columns::{self, Columns as _, DatabaseSession};
use crate::postgres::fault::{FaultScope, PostgresFault};
use crate::postgres::fence::{self, PLAIN_WRITER, TAKEOVER_ATTEMPTS, WriterIdentity};
use crate::postgres::flight::BEGIN;
use crate::postgres::outbox;

/// What a node knows after it has joined.
#[derive(Debug)]
pub(in crate::postgres) struct JoinedCluster {
    pub(in crate::postgres) identity: WriterIdentity,
    /// The name of this node's sessions in the server's list.
    pub(in crate::postgres) session_name: String,
    /// The channel of wake-ups.
    pub(super) channel: String,
}

/// So many characters of the cluster's id are in names: PostgreSQL cuts names at 63 bytes.
const ID_IN_NAMES: usize = 13;

/// The name of a member's sessions. Its successor ends them by this name.
pub(super) fn session_name(node: i64, cluster: &str) -> String {
    format!("chancery node {node} of {}", &cluster[..ID_IN_NAMES.min(cluster.len())])
}

pub(in crate::postgres) async fn join(session: &ClientWrapper, lease: Duration) -> Result<JoinedCluster, PostgresFault> {
    let mut attempt = 1;
    loop {
        session.batch_execute(BEGIN).await?;
        let joined = join_within(session, lease).await;
        session.batch_execute(if joined.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        match joined {
            Err(fault) if fault.scope() == FaultScope::TryAgain && attempt < TAKEOVER_ATTEMPTS => attempt += 1,
            joined => return joined,
        }
    }
}

async fn join_within(session: &ClientWrapper, lease: Duration) -> Result<JoinedCluster, PostgresFault> {
    fence::lock_starts(session).await?;
    refuse_beside_owner(session).await?;
    refuse_other_role(session).await?;
    close_former_owner(session).await?;
    forget_nodes(session).await?;
    let (node, life) = fence::new_life(session).await?;
    let made = "INSERT INTO nodes (node, life, version, role, exclusive, lease_until)
                VALUES ($1, $2::text::uuid, $3, session_user::text, false, now() + make_interval(secs => $4))";
    session.execute(made, &[&node, &life, &env!("CARGO_PKG_VERSION"), &lease.as_secs_f64()]).await?;
    fence::open_writer(session, node, &life).await?;
    let cluster = cluster_id(session).await?;
    let channel = format!("chancery_{}", cluster.replace('-', "_"));
    let identity = WriterIdentity { node, life, writer: PLAIN_WRITER, is_member: true };
    Ok(JoinedCluster { identity, session_name: session_name(node, &cluster), channel })
}

pub(super) async fn cluster_id<D: DatabaseSession>(db: &D) -> Result<String, PostgresFault> {
    let id = columns::row(db, "SELECT id::text FROM cluster", &[]).await?;
    Ok(id.ok_or_else(|| PostgresFault::unreadable("a cluster without an id"))?.try_get(0)?)
}

/// A node that has the database for itself renews a lease too, so that this can be seen.
const LIVE_OWNER: &str = "SELECT node, extract(epoch FROM lease_until - now())::float8 FROM nodes
     WHERE exclusive AND lease_until >= now()
       AND EXISTS (SELECT 1 FROM writers WHERE writers.node = nodes.node AND NOT closed)";

async fn refuse_beside_owner(session: &ClientWrapper) -> Result<(), PostgresFault> {
    let Some(owner) = columns::row(session, LIVE_OWNER, &[]).await? else { return Ok(()) };
    let (node, seconds): (i64, f64) = (owner.try_get(0)?, owner.try_get(1)?);
    Err(PostgresFault::in_use(format!(
        "node {node} has this database for itself, with a lease of {seconds:.0} s: stop that node, or let it join the others"
    )))
}

/// A successor may only end sessions of its own role.
async fn refuse_other_role(session: &ClientWrapper) -> Result<(), PostgresFault> {
    let sql = "SELECT node, role, session_user::text FROM nodes
               WHERE NOT exclusive AND NOT gone AND successor IS NULL AND lease_until >= now() AND role <> session_user::text LIMIT 1";
    let Some(other) = columns::row(session, sql, &[]).await? else { return Ok(()) };
    let (node, theirs, own): (i64, _, _) = (other.try_get(0)?, other.text(1)?, other.text(2)?);
    Err(PostgresFault::in_use(format!(
        "node {node} uses the role {theirs} and this one {own}: give all nodes of a cluster one role, so that one can end the sessions \
         of another that is gone"
    )))
}

/// A node that had the database for itself, and whose lease is over: its turns are for any member to go on with.
async fn close_former_owner(session: &ClientWrapper) -> Result<(), PostgresFault> {
    let close = "UPDATE writers SET closed = true WHERE NOT closed AND node IN (SELECT node FROM nodes WHERE exclusive)";
    if session.execute(close, &[]).await? == 0 {
        return Ok(());
    }
    session.execute("UPDATE nodes SET gone = true WHERE exclusive", &[]).await?;
    // The index has open tasks alone, so the statement names both conditions.
    let release = "UPDATE tasks SET released = true WHERE stage < 3 AND stage = 1 AND node IS NULL AND NOT released";
    session.execute(release, &[]).await?;
    outbox::release_leases(session).await
}

/// Nodes that ended a day ago and of which nothing is left. Until then their rows say whether their last batches were written.
async fn forget_nodes(session: &ClientWrapper) -> Result<(), PostgresFault> {
    let old = "SELECT node FROM nodes WHERE lease_until < now() - interval '1 day' AND (gone OR successor IS NOT NULL)
               AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.node = nodes.node)
               AND NOT EXISTS (SELECT 1 FROM writers WHERE writers.node = nodes.node AND NOT closed)";
    session.execute(&format!("DELETE FROM writers WHERE node IN ({old})"), &[]).await?;
    session.execute(&format!("DELETE FROM nodes WHERE node IN ({old})"), &[]).await?;
    Ok(())
}
