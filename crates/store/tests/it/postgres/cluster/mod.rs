//! Several nodes share a database: leases, who holds a task, wake-ups and forwarded calls.

mod doubt;
mod forwarded;
mod holders;
mod join;
mod lease;
mod lossy_proxy;
mod shared_tables;
mod succession;
mod wakeups;
mod zombie;

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Cluster, LeaseNews, LeaseRenewal, NodeNumber, Store, StoreError, StoreTrouble, Wakeup};
use chancery_store::{PostgresOptions, PostgresStore};

use crate::server::TestDatabase;

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(TestDatabase::make).await.unwrap()
}

/// A node for a test, with its port to the others.
struct Node {
    store: Arc<PostgresStore>,
    cluster: Arc<dyn Cluster>,
}

impl Node {
    async fn join(url: String, lease: Duration) -> Self {
        let options = PostgresOptions { lease_ms: lease.as_millis() as u64, ..PostgresOptions::at(url) };
        Self::join_with(options).await
    }

    async fn join_with(options: PostgresOptions) -> Self {
        let store = Arc::new(PostgresStore::join(options).await.unwrap());
        let cluster = store.cluster().expect("a member has a cluster");
        // From here on it hears the others.
        assert_eq!(cluster.next_wakeup().await, Wakeup::Missed);
        Self { store, cluster }
    }

    fn number(&self) -> NodeNumber {
        self.cluster.this_node()
    }

    /// Renews the lease, which nobody has taken over.
    async fn renew(&self) -> LeaseNews {
        match self.cluster.renew().await.unwrap() {
            LeaseRenewal::Renewed(news) => news,
            LeaseRenewal::TakenOver { by } => panic!("node {} was taken over by {by}", self.number()),
        }
    }

    /// Renews until the news are as they are waited for.
    async fn renew_until(&self, is_there: impl Fn(&LeaseNews) -> bool) -> LeaseNews {
        loop {
            let news = self.renew().await;
            if is_there(&news) {
                return news;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Becomes the successor as soon as the other's lease has ended.
    async fn succeed(&self, other: NodeNumber) {
        loop {
            self.renew_until(|news| news.expired.contains(&other)).await;
            // On a busy machine this node may be late itself by now.
            if self.cluster.succeed(other).await.unwrap() {
                return;
            }
        }
    }
}

/// Long enough for a test on a busy machine, short enough to wait for its end.
const SHORT_LEASE: Duration = Duration::from_millis(800);

/// No test waits for its end.
const LONG_LEASE: Duration = Duration::from_mins(10);

fn is_held_elsewhere(error: &StoreError) -> bool {
    error.trouble == StoreTrouble::HeldElsewhere
}
