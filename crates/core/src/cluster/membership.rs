//! This node as one of those that share a store: its lease by its own clock, and what its loops tell each other.

use std::fmt::{self, Debug};
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chancery_protocol::TaskId;
use foldhash::fast::RandomState;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, Notify, watch};
use tokio_util::sync::CancellationToken;

use super::forwarding::WaitingCalls;
use super::received::AnsweredCalls;
use crate::{Clock, Cluster, LeaseNews, NodeNumber, Stored};

/// Tasks are made, taken and released under one of so many locks.
const LOCKS: usize = 1024;

pub(crate) struct Membership {
    pub(crate) port: Arc<dyn Cluster>,
    clock: Arc<dyn Clock>,
    /// When the last renewal that was answered was sent, by the clock's elapsed time. Nothing before the first one.
    renewed: watch::Sender<Option<Duration>>,
    pub(super) news: watch::Sender<LeaseNews>,
    locks: Box<[AsyncMutex<()>]>,
    answer_locks: Box<[AsyncMutex<()>]>,
    hasher: RandomState,
    /// Fires when wake-ups may have been lost.
    pub(super) missed: Notify,
    /// Fires when another node has forwarded a call to this one.
    pub(super) received: Notify,
    pub(super) waiting: WaitingCalls,
    pub(super) answered_calls: AnsweredCalls,
    /// Tasks that this node has taken and could not take up yet.
    pub(super) left_over: Mutex<Vec<Stored>>,
    taken_over: OnceLock<NodeNumber>,
    lost: CancellationToken,
    ended: CancellationToken,
}

impl Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("node", &self.port.this_node()).finish_non_exhaustive()
    }
}

impl Membership {
    pub(crate) fn new(port: Arc<dyn Cluster>, clock: Arc<dyn Clock>) -> Self {
        Self {
            port,
            clock,
            renewed: watch::Sender::new(None),
            news: watch::Sender::new(LeaseNews::default()),
            locks: locks(),
            answer_locks: locks(),
            hasher: RandomState::default(),
            missed: Notify::new(),
            received: Notify::new(),
            waiting: WaitingCalls::default(),
            answered_calls: AnsweredCalls::default(),
            left_over: Mutex::default(),
            taken_over: OnceLock::new(),
            lost: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    /// One flow at a time makes, takes or releases a task.
    pub(crate) async fn lock(&self, task: &TaskId) -> AsyncMutexGuard<'_, ()> {
        self.locks[self.hasher.hash_one(task) as usize % LOCKS].lock().await
    }

    /// One message that another node forwarded is recorded at a time.
    pub(crate) async fn lock_answers(&self, task: &TaskId) -> AsyncMutexGuard<'_, ()> {
        self.answer_locks[self.hasher.hash_one(task) as usize % LOCKS].lock().await
    }

    /// Notes a renewal that was answered and had been sent at `sent`.
    pub(super) fn set_renewed(&self, sent: Duration) {
        self.renewed.send_replace(Some(sent));
    }

    /// Whether the last renewal was sent less than a lease ago: no other node can be the successor then.
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_fresh_since(*self.renewed.borrow())
    }

    fn is_fresh_since(&self, sent: Option<Duration>) -> bool {
        sent.is_some_and(|sent| self.clock.elapsed().saturating_sub(sent) < self.port.lease())
    }

    /// Waits until no other node can be the successor. No turn begins before.
    pub(crate) async fn wait_until_fresh(&self) {
        if !self.is_fresh() {
            // The sender lives in `self`, so waiting cannot fail.
            let _ = self.renewed.subscribe().wait_for(|sent| self.is_fresh_since(*sent)).await;
        }
    }

    /// Another node is the successor. Answers whether that is news.
    pub(super) fn lose(&self, by: NodeNumber) -> bool {
        let is_news = self.taken_over.set(by).is_ok();
        self.lost.cancel();
        is_news
    }

    /// The node that has the tasks of this one.
    pub(crate) fn successor(&self) -> Option<NodeNumber> {
        self.taken_over.get().copied()
    }

    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Ends the loops. The lease runs out by itself, unless the node has left.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn left_over(&self) -> MutexGuard<'_, Vec<Stored>> {
        self.left_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locks() -> Box<[AsyncMutex<()>]> {
    (0..LOCKS).map(|_| AsyncMutex::new(())).collect()
}
