//! Renews the lease of this node, and starts the loops of a node that shares its store.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Error;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::membership::Membership;
use crate::find::internal;
use crate::service::{Chancery, ChanceryInner};
use crate::tracker::LoopNeed;
use crate::{LeaseRenewal, StoreError, StoreTrouble};

/// So many renewals in a lease.
const RENEWALS: u32 = 10;

/// A renewal without an answer is given up after this part of a lease, and sent again.
const ANSWERED_WITHIN: u32 = 3;

impl Chancery {
    /// Fires when the lease of this node has ended and another node is its successor. The node then answers calls with
    /// UNAVAILABLE, its streams are closed, and its turns are dropped without a trace: their tasks go on at the successor. To go on, drop
    /// the control plane, join the store again and build another one. None if the store is for one node.
    pub fn taken_over(&self) -> Option<CancellationToken> {
        self.0.cluster.as_ref().map(Membership::lost)
    }
}

impl ChanceryInner {
    /// Renews the lease for the first time, reads what a start has to know, and starts the loops.
    pub(crate) async fn join(self: &Arc<Self>, member: &Membership) -> Result<(), Error> {
        self.renew(member).await.map_err(internal)?;
        self.restore_counts().await?;
        let inner = || Arc::clone(self);
        self.loops.start("lease", LoopNeed::Vital, inner().keep_lease());
        self.loops.start("wake-ups", LoopNeed::Vital, inner().follow_others());
        self.loops.start("succession", LoopNeed::Vital, inner().succeed_others());
        self.loops.start("forwarded calls", LoopNeed::Vital, inner().answer_others());
        Ok(())
    }

    async fn keep_lease(self: Arc<Self>) {
        let Some(member) = &self.cluster else { return };
        let mut times = interval(member.port.lease() / RENEWALS);
        // After a pause of the process one renewal is enough.
        times.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = member.ended() => return,
                _ = times.tick() => {}
            }
            if let Err(fault) = self.renew(member).await {
                tracing::warn!(error = &fault as &dyn std::error::Error, "cannot renew the lease of this node");
            }
        }
    }

    async fn renew(&self, member: &Membership) -> Result<(), StoreError> {
        let sent = self.clock.elapsed();
        let within = member.port.lease() / ANSWERED_WITHIN;
        match timeout(within, member.port.renew()).await {
            Ok(Ok(LeaseRenewal::Renewed(news))) => {
                member.set_renewed(sent);
                if news.missed_wakeups {
                    member.missed.notify_one();
                }
                if news.has_forwarded_calls {
                    member.received.notify_one();
                }
                member.news.send_replace(news);
                Ok(())
            }
            Ok(Ok(LeaseRenewal::TakenOver { by })) => {
                if member.lose(by) {
                    tracing::error!(node = %member.port.this_node(), successor = %by, "another node has succeeded this one and has its tasks");
                    self.abandon();
                }
                Ok(())
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(late(within)),
        }
    }
}

fn late(within: Duration) -> StoreError {
    StoreError::new(format!("no answer within {} ms", within.as_millis())).of_trouble(StoreTrouble::Unavailable)
}
