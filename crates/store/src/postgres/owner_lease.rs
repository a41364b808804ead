//! The lease of a node that has the database for itself. It keeps out members of a cluster alone: the fence does the rest.

use std::time::Duration;

use chancery_core::spawn_watched;
use deadpool_postgres::ClientWrapper;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::columns::DatabaseSession;
use super::connection::DatabaseConnector;
use super::fault::PostgresFault;
use super::fence::WriterIdentity;

/// So often the lease is renewed in its time.
const RENEWALS_IN_LEASE: u32 = 3;

/// How long the end of a store waits for the end of its lease.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Renews the lease until it is ended or dropped.
#[derive(Debug)]
pub(super) struct OwnerLease {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

const SET: &str = "UPDATE nodes SET lease_until = now() + make_interval(secs => $3)
     WHERE node = $1 AND life = $2::text::uuid AND successor IS NULL";

impl OwnerLease {
    pub(super) fn start(connector: DatabaseConnector, identity: WriterIdentity) -> Self {
        let (end, ended) = oneshot::channel();
        Self { end, task: spawn_watched("store-lease", renew(connector, identity, ended)) }
    }

    /// Lets other nodes join at once.
    pub(super) async fn end(self, patience: Duration) {
        drop(self.end);
        drop(tokio::time::timeout(patience.min(LAST_WORDS), self.task).await);
    }
}

async fn renew(connector: DatabaseConnector, identity: WriterIdentity, mut ended: oneshot::Receiver<()>) {
    let lease = connector.options().lease();
    let mut session = None;
    loop {
        let is_over = tokio::time::timeout(lease / RENEWALS_IN_LEASE, &mut ended).await.is_ok();
        let until = if is_over { Duration::ZERO } else { lease };
        let set = tokio::time::timeout(lease, set(&mut session, &connector, &identity, until)).await;
        if let Ok(Err(fault)) = set {
            tracing::debug!(%fault, "the lease of this database could not be renewed");
        }
        if is_over {
            return;
        }
    }
}

async fn set(
    place: &mut Option<ClientWrapper>,
    connector: &DatabaseConnector,
    identity: &WriterIdentity,
    lease: Duration,
) -> Result<(), PostgresFault> {
    let session = match place.take().filter(|session| !session.is_closed()) {
        Some(session) => session,
        None => connector.open().await?,
    };
    session.execute(SET, &[&identity.node, &identity.life, &lease.as_secs_f64()]).await?;
    *place = Some(session);
    Ok(())
}
