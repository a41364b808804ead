//! The port `Cluster`: this node as one of several that share the database.

mod forwarded;
mod inbox;
mod join;
mod lease;
mod leave;
mod listener;
mod message;
mod news;
mod outbox;
mod ownership;
mod refusals;
mod succeed;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    CallAnswer, Cluster, ForwardedCall, ForwardedCallNumber, ForwardedCallState, LeaseRenewal, NodeNumber, ReceivedCall,
    StoreError, Stored, TaskHolder, Wakeup, spawn_watched,
};
use chancery_protocol::TaskId;
use tokio::task::JoinHandle;

use self::inbox::WakeupInbox;
use self::join::JoinedCluster;
pub(super) use self::join::join;
use self::lease::LeaseSession;
pub(super) use self::news::WakeupNews;
pub(super) use self::outbox::WakeupOutbox;
pub(super) use self::ownership::tell_watchers;
pub(super) use self::refusals::{call_withdrawn, has_left, held_elsewhere};
use super::connection::DatabaseConnector;
use super::fault::PostgresFault;
use super::fence::WriterIdentity;
use super::health::WriterHealth;
use super::readers::{PostgresReaders, read};
use super::requests::WriteRequests;

/// This node among those that share the database. It does not keep the store open.
#[derive(Debug)]
pub(super) struct ClusterMember {
    identity: WriterIdentity,
    connector: DatabaseConnector,
    requests: WriteRequests,
    readers: PostgresReaders,
    health: Arc<WriterHealth>,
    lease: LeaseSession,
    inbox: Arc<WakeupInbox>,
    outbox: Arc<WakeupOutbox>,
    /// The tasks that send and hear wake-ups.
    loops: Mutex<Vec<JoinHandle<()>>>,
}

/// How long the store waits at its end until the last wake-ups are sent and its writer's row is closed.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl ClusterMember {
    /// Starts the tasks that send and hear wake-ups.
    pub(super) fn start(
        joined: JoinedCluster,
        connector: DatabaseConnector,
        requests: WriteRequests,
        readers: PostgresReaders,
        outbox: Arc<WakeupOutbox>,
    ) -> Arc<Self> {
        let JoinedCluster { identity, channel, .. } = joined;
        let inbox = Arc::new(WakeupInbox::new(identity.node));
        let sending = outbox::send(Arc::clone(&outbox), connector.clone(), channel.clone(), identity.node);
        let hearing = listener::listen(Arc::clone(&inbox), connector.clone(), channel, identity.node);
        let loops = vec![spawn_watched("store-wake-up", sending), spawn_watched("store-listen", hearing)];
        let lease = LeaseSession::new(connector.clone());
        let health = Arc::clone(&requests.health);
        Arc::new(Self { identity, connector, requests, readers, health, lease, inbox, outbox, loops: Mutex::new(loops) })
    }

    /// The store closes: its writer has written all that it will.
    pub(super) async fn close(&self, patience: Duration) {
        let ending = async {
            self.outbox.until_sent().await;
            if let Err(fault) = self.lease.close_writer(&self.identity).await {
                tracing::warn!(%fault, "the writer's row of this node stays open until its lease ends");
            }
        };
        drop(tokio::time::timeout(patience.min(LAST_WORDS), ending).await);
        self.stop();
    }

    /// Ends what runs for this node. A flow that waits for a wake-up hears that the store is closed.
    pub(super) fn stop(&self) {
        let loops = std::mem::take(&mut *self.loops.lock().unwrap_or_else(PoisonError::into_inner));
        loops.into_iter().for_each(|task| task.abort());
        self.inbox.close();
    }
}

impl Drop for ClusterMember {
    fn drop(&mut self) {
        self.stop();
    }
}

#[async_trait]
impl Cluster for ClusterMember {
    fn this_node(&self) -> NodeNumber {
        NodeNumber(self.identity.node)
    }

    fn lease(&self) -> Duration {
        self.connector.options().lease()
    }

    async fn renew(&self) -> Result<LeaseRenewal, StoreError> {
        let what = "renewing the lease";
        if self.health.hangs_for(self.lease()) {
            let hangs = PostgresFault::away("the writer has had no answer for as long as the lease, so the lease is not renewed");
            return Err(hangs.while_doing(what));
        }
        let renewal = self.lease.renew(&self.identity, &self.inbox).await.map_err(|fault| fault.while_doing(what))?;
        if matches!(renewal, LeaseRenewal::TakenOver { .. }) {
            self.health.note(&PostgresFault::Succeeded);
        }
        Ok(renewal)
    }

    async fn succeed(&self, expired: NodeNumber) -> Result<bool, StoreError> {
        let doing = |fault: PostgresFault| fault.while_doing("taking over from a node whose lease has ended");
        let session = self.connector.open().await.map_err(doing)?;
        if !succeed::claim(&session, self.identity.node, expired.0, self.lease()).await.map_err(doing)? {
            return Ok(false);
        }
        self.shut_out(&session).await.map_err(doing)?;
        Ok(true)
    }

    async fn take_inherited(&self, expired: NodeNumber, limit: usize) -> Result<Vec<Stored>, StoreError> {
        let what = "taking over tasks";
        let doing = |fault: PostgresFault| fault.while_doing(what);
        let (me, expired) = (self.identity.node, expired.0);
        // A takeover that was broken off may have left the other's writer open.
        if read!(self.readers, what, |db| succeed::is_open(db, me, expired))? {
            let session = self.connector.open().await.map_err(doing)?;
            self.shut_out(&session).await.map_err(doing)?;
        }
        let work = self.requests.perform(what, (expired, limit), |(expired, limit), state| {
            Box::pin(ownership::take_inherited(state, *expired, *limit))
        });
        work.await
    }

    async fn take_released(&self, limit: usize) -> Result<Vec<Stored>, StoreError> {
        let work = self
            .requests
            .perform("taking released tasks", limit, |limit, state| Box::pin(ownership::take_released(state, *limit)));
        work.await
    }

    async fn holder(&self, task: &TaskId) -> Result<Option<TaskHolder>, StoreError> {
        read!(self.readers, "looking up who holds a task", |db| ownership::holder(db, self.identity.node, task))
    }

    async fn take(&self, task: &TaskId) -> Result<Option<TaskHolder>, StoreError> {
        let work = self.requests.perform("taking a task", task.clone(), |task, state| Box::pin(ownership::take(state, task)));
        work.await
    }

    async fn release(&self, task: &TaskId, to_resume: bool) -> Result<(), StoreError> {
        let work = self.requests.perform("releasing a task", (task.clone(), to_resume), |(task, to_resume), state| {
            Box::pin(ownership::release(state, task, *to_resume))
        });
        work.await
    }

    async fn watch(&self, task: &TaskId) -> Result<(), StoreError> {
        read!(self.readers, "watching a task", |db| ownership::watch(db, task))
    }

    async fn next_wakeup(&self) -> Wakeup {
        self.inbox.next().await
    }

    async fn forward(&self, call: ForwardedCall) -> Result<Option<ForwardedCallNumber>, StoreError> {
        let what = "forwarding a call";
        let number = read!(self.readers, what, |db| forwarded::next_number(db))?;
        let (from, to) = (self.identity.node, call.to.0);
        let is_left = match read!(self.readers, what, |db| forwarded::leave_call(db, number, from, &call)) {
            Ok(is_left) => is_left,
            Err(error) => {
                // It may be there, while the caller hears that it is not.
                drop(self.withdraw_forwarded(number).await);
                return Err(error);
            }
        };
        if is_left {
            self.outbox.add(WakeupNews::of_call(to));
        }
        Ok(is_left.then_some(number))
    }

    async fn forwarded(&self, number: ForwardedCallNumber) -> Result<ForwardedCallState, StoreError> {
        read!(self.readers, "looking up a forwarded call", |db| forwarded::state(db, number, self.identity.node))
    }

    async fn withdraw_forwarded(&self, number: ForwardedCallNumber) -> Result<bool, StoreError> {
        read!(self.readers, "withdrawing a forwarded call", |db| forwarded::withdraw(db, number, self.identity.node))
    }

    async fn received_calls(&self, limit: usize) -> Result<Vec<ReceivedCall>, StoreError> {
        read!(self.readers, "reading forwarded calls", |db| forwarded::received(db, self.identity.node, limit))
    }

    async fn answer(&self, answer: CallAnswer) -> Result<bool, StoreError> {
        let work = self
            .requests
            .perform("answering a forwarded call", answer, |answer, state| Box::pin(forwarded::answer(state, answer)));
        work.await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        // After the writes that are queued, in a transaction of its own.
        self.requests.tidy("leaving the cluster", (), |(), state| Box::pin(leave::leave(state))).await
    }
}
