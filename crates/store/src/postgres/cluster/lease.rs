//! Leases by the time of the database, renewed on a session of their own, and what a node learns with each renewal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chancery_core::{LeaseNews, LeaseRenewal, NodeNumber};
use deadpool_postgres::ClientWrapper;
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;

use super::forwarded;
use super::inbox::{ToldBatches, WakeupInbox};
use crate::postgres::columns::{self, DatabaseSession};
use crate::postgres::connection::DatabaseConnector;
use crate::postgres::fault::{FaultScope, PostgresFault};
use crate::postgres::fence::WriterIdentity;

/// A renewal waits no longer for its answer than this part of a lease, or a second if that is longer.
const RENEWALS_IN_LEASE: u32 = 3;
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);

/// With one renewal of so many, forwarded calls of long ago are deleted.
const CLEANS_EACH: u64 = 64;

/// The session of a node's lease.
#[derive(Debug)]
pub(super) struct LeaseSession {
    connector: DatabaseConnector,
    session: Mutex<Option<ClientWrapper>>,
    renewals: AtomicU64,
}

/// A renewal after the end of the lease is one, as long as there is no successor.
const RENEW: &str = "UPDATE nodes SET since = CASE WHEN lease_until < now() THEN now() ELSE since END,
                                     lease_until = now() + make_interval(secs => $3)
     WHERE node = $1 AND life = $2::text::uuid AND successor IS NULL AND NOT gone
     RETURNING since <= now() - make_interval(secs => $3)";

const NEWS: &str = "SELECT
     ARRAY(SELECT node FROM nodes WHERE NOT exclusive AND NOT gone AND successor IS NULL AND lease_until < now() AND node <> $1
           ORDER BY node),
     ARRAY(SELECT node FROM nodes WHERE successor = $1
           AND (EXISTS (SELECT 1 FROM tasks WHERE tasks.node = nodes.node)
                OR EXISTS (SELECT 1 FROM writers WHERE writers.node = nodes.node AND NOT closed)) ORDER BY node),
     EXISTS (SELECT 1 FROM tasks WHERE released),
     EXISTS (SELECT 1 FROM forwarded_calls WHERE to_node = $1 AND state = 1)";

/// The node that has what this one held; the newest other one if that is forgotten.
const TAKEN_OVER: &str = "SELECT coalesce((SELECT successor FROM nodes WHERE node = $1),
                                         (SELECT max(node) FROM nodes WHERE node <> $1), 0)";

/// The last batches of other nodes with entries of watched tasks. Rows that are closed count.
const TOLD: &str = "SELECT node, max(told) FROM writers WHERE told > 0 AND node <> $1 GROUP BY node";

pub(super) async fn told_batches<D: DatabaseSession>(db: &D, node: i64) -> Result<ToldBatches, PostgresFault> {
    let told = columns::each(db.rows(TOLD, &[&node]).await?, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
    Ok(told.into_iter().collect())
}

/// What the database answered to a renewal.
enum RenewalAnswer {
    Renewed(LeaseNews, ToldBatches),
    TakenOver(i64),
}

impl LeaseSession {
    pub(super) fn new(connector: DatabaseConnector) -> Self {
        Self { connector, session: Mutex::default(), renewals: AtomicU64::default() }
    }

    pub(super) async fn renew(&self, identity: &WriterIdentity, inbox: &WakeupInbox) -> Result<LeaseRenewal, PostgresFault> {
        let lease = self.connector.options().lease();
        let patience = (lease / RENEWALS_IN_LEASE).max(SHORTEST_PATIENCE);
        let answer = tokio::time::timeout(patience, self.ask(identity, lease)).await;
        let answer = answer.unwrap_or_else(|_| Err(PostgresFault::away("it did not answer in time")))?;
        Ok(match answer {
            RenewalAnswer::TakenOver(by) => LeaseRenewal::TakenOver { by: NodeNumber(by) },
            RenewalAnswer::Renewed(news, told) => {
                LeaseRenewal::Renewed(LeaseNews { missed_wakeups: inbox.compare(told), ..news })
            }
        })
    }

    /// On the session that is open, or on a new one if that turns out to be broken.
    async fn ask(&self, identity: &WriterIdentity, lease: Duration) -> Result<RenewalAnswer, PostgresFault> {
        let mut place = self.session.lock().await;
        let mut may_be_broken = true;
        loop {
            let session = match place.take().filter(|session| !session.is_closed()) {
                Some(session) => session,
                None => {
                    may_be_broken = false;
                    self.connector.open().await?
                }
            };
            let answer = self.ask_on(&session, identity, lease).await;
            match answer {
                Err(fault) if fault.scope() == FaultScope::Connection => {
                    if !may_be_broken {
                        return Err(fault);
                    }
                }
                answer => {
                    *place = Some(session);
                    return answer;
                }
            }
        }
    }

    async fn ask_on(
        &self,
        session: &ClientWrapper,
        identity: &WriterIdentity,
        lease: Duration,
    ) -> Result<RenewalAnswer, PostgresFault> {
        let node = identity.node;
        let seconds = lease.as_secs_f64();
        let values: [&(dyn ToSql + Sync); 3] = [&node, &identity.life, &seconds];
        let news_values: [&(dyn ToSql + Sync); 1] = [&node];
        // In one flight, in this order.
        let (renewed, news, told) = futures::try_join!(
            columns::row(session, RENEW, &values),
            columns::row(session, NEWS, &news_values),
            told_batches(session, node),
        )?;
        let Some(renewed) = renewed else {
            return Ok(RenewalAnswer::TakenOver(columns::number(session, TAKEN_OVER, &[&node]).await?));
        };
        let is_mature: bool = renewed.try_get(0)?;
        let news = news.ok_or_else(|| PostgresFault::unreadable("no answer to what is new"))?;
        let numbers = |all: Vec<i64>| all.into_iter().map(NodeNumber).collect();
        if self.renewals.fetch_add(1, Ordering::Relaxed) % CLEANS_EACH == CLEANS_EACH - 1 {
            forwarded::forget_old(session).await?;
        }
        let news = LeaseNews {
            expired: if is_mature { numbers(news.try_get(0)?) } else { Vec::new() },
            inherited: numbers(news.try_get(1)?),
            has_released_tasks: news.try_get(2)?,
            missed_wakeups: false,
            has_forwarded_calls: news.try_get(3)?,
        };
        Ok(RenewalAnswer::Renewed(news, told))
    }

    /// The last thing that a node does: the database refuses its writes from then on.
    pub(super) async fn close_writer(&self, identity: &WriterIdentity) -> Result<(), PostgresFault> {
        let session = match self.session.lock().await.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => self.connector.open().await?,
        };
        let sql = "UPDATE writers SET closed = true WHERE node = $1 AND life = $2::text::uuid";
        session.execute(sql, &[&identity.node, &identity.life]).await?;
        Ok(())
    }
}
