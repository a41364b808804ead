//! A wrapper around a real store that tests hook into: it delays, fails or holds back writes, and counts what is read.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Cluster, Decision, ExpiryPlan, Freeze, FreezeScope, Governed, KeptKeys, Keyed, LedgerRow, LedgerSnapshot,
    Link, ListCursor, ListFilter, LogEntry, Names, NonceVerdict, PastSpend, Record, RecordNote, Spend, SpentNonce, Store,
    StoreError, StoreTrouble, Stored, SweepPlan, TaskListing, TaskSnapshot, TreeCost, spawn_watched,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};
use futures::future::join_all;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::{Semaphore, mpsc};

/// How long an append that was answered already waits for its commit: long enough for a kill to come in between.
const GAP_BEFORE_COMMIT: Duration = Duration::from_millis(20);

/// How late writes are, and how many fail. By default none is and none does.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultPlan {
    /// An append waits up to this many turns of the scheduler, so that other tasks run in between.
    pub delay: u32,
    /// Of a thousand appends, this many fail and write nothing.
    pub faults_per_mille: u32,
}

/// How a store that is away answers appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutage {
    /// Nothing is written.
    NothingWritten,
    /// The append is in, and its answer is lost.
    AnswerLost,
}

/// Hands every call on to the store below it.
#[derive(Debug)]
pub struct HookedStore {
    inner: Arc<dyn Store>,
    plan: FaultPlan,
    dice: Mutex<SmallRng>,
    reads: AtomicU64,
    entries_read: AtomicU64,
    /// Every task that was made here.
    made: Mutex<BTreeSet<TaskId>>,
    gated: AtomicBool,
    /// One permit lets one append through while the gate is closed.
    gate: Semaphore,
    /// Appends that were answered and are still to be committed, where the store breaks its promise.
    uncommitted: Option<mpsc::UnboundedSender<Append>>,
    /// Snapshots are handed on.
    snapshots: bool,
    outage: Mutex<Option<StoreOutage>>,
    /// Appends that met the outage.
    refused: AtomicU64,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HookedStore {
    /// Wraps a store without delays or faults.
    pub fn over(store: impl Store + 'static) -> Self {
        Self::around(Arc::new(store))
    }

    /// Wraps a store. `seed` decides which appends are late and which fail.
    pub fn with_faults(store: impl Store + 'static, seed: u64, plan: FaultPlan) -> Self {
        Self { plan, dice: Mutex::new(SmallRng::seed_from_u64(seed)), ..Self::over(store) }
    }

    /// Wraps a store that the test also uses directly.
    pub fn around(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            plan: FaultPlan::default(),
            dice: Mutex::new(SmallRng::seed_from_u64(0)),
            reads: AtomicU64::new(0),
            entries_read: AtomicU64::new(0),
            made: Mutex::default(),
            gated: AtomicBool::new(false),
            gate: Semaphore::new(0),
            uncommitted: None,
            snapshots: true,
            outage: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Begins or ends an outage.
    pub fn set_outage(&self, outage: Option<StoreOutage>) {
        *guard(&self.outage) = outage;
    }

    /// Returns how many appends met an outage.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Wraps a store and answers every append before it is committed, so that a crash loses appends that were acknowledged. Appends
    /// keep their order. Tests of crashes have to notice it.
    pub fn answering_before_commit(inner: Arc<dyn Store>) -> Self {
        let (answered, uncommitted) = mpsc::unbounded_channel();
        spawn_watched("late commits", commit_late(Arc::clone(&inner), uncommitted));
        Self { uncommitted: Some(answered), ..Self::around(inner) }
    }

    /// Wraps a store and keeps no snapshot, as a node from before there were any.
    pub fn without_snapshots(inner: Arc<dyn Store>) -> Self {
        Self { snapshots: false, ..Self::around(inner) }
    }

    /// Returns how often something was read, for tests that say nothing is.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Returns how many log entries were read.
    pub fn entries_read(&self) -> u64 {
        self.entries_read.load(Ordering::SeqCst)
    }

    /// Closes the gate: from now on, every append waits for `admit`.
    pub fn close_gate(&self) {
        self.gated.store(true, Ordering::SeqCst);
    }

    /// Lets this many appends through the closed gate.
    pub fn admit(&self, appends: usize) {
        self.gate.add_permits(appends);
    }

    /// Returns every log, as it would be found after a crash at this moment. For stores in memory, which answer at once.
    pub fn logs(&self) -> Vec<(Stored, Vec<Arc<LogEntry>>)> {
        let made = guard(&self.made).clone();
        let log = |id: &TaskId| Some((self.stored(id)?, at_once(self.inner.entries(id, 0, usize::MAX))));
        made.iter().filter_map(log).collect()
    }

    /// Returns the number of a task's last stored entry. For stores in memory, which answer at once.
    pub fn last_seq(&self, id: &TaskId) -> u64 {
        self.stored(id).map_or(0, |stored| stored.progress.seq)
    }

    fn stored(&self, id: &TaskId) -> Option<Stored> {
        at_once(self.inner.find_any(id.as_str()))
    }

    /// Waits after a write: it is in the store before its caller gets the answer.
    async fn linger(&self) {
        for _ in 0..self.plan.delay {
            tokio::task::yield_now().await;
        }
    }

    fn one_read(&self) -> &dyn Store {
        self.reads.fetch_add(1, Ordering::SeqCst);
        &*self.inner
    }
}

/// Commits what was answered already, some time later and in its order.
async fn commit_late(store: Arc<dyn Store>, mut uncommitted: mpsc::UnboundedReceiver<Append>) {
    let mut batch = Vec::new();
    while uncommitted.recv_many(&mut batch, usize::MAX).await > 0 {
        tokio::time::sleep(GAP_BEFORE_COMMIT).await;
        // The callers have their answers already, so a fault has nobody to go to.
        drop(join_all(batch.drain(..).map(|append| store.append(append))).await);
    }
}

/// The answer of a store that waits for nothing.
fn at_once<T>(answer: impl Future<Output = Result<T, StoreError>>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.expect("a store in memory does not fail"),
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

#[async_trait]
impl Store for HookedStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        if self.gated.load(Ordering::SeqCst) {
            self.gate.acquire().await.expect("the gate stays").forget();
        }
        let (delay, fails) = {
            let mut dice = guard(&self.dice);
            (dice.random_range(0..=self.plan.delay), dice.random_range(0..1000) < self.plan.faults_per_mille)
        };
        for _ in 0..delay {
            tokio::task::yield_now().await;
        }
        if fails {
            return Err(StoreError::new("a fault, as asked for").of_trouble(StoreTrouble::Unavailable));
        }
        let outage = *guard(&self.outage);
        if let Some(outage) = outage {
            if outage == StoreOutage::AnswerLost {
                self.inner.append(append).await?;
            }
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::new("an outage, as asked for").of_trouble(StoreTrouble::Away));
        }
        if append.creation.is_some() {
            guard(&self.made).insert(append.task.id.clone());
        }
        if let Some(uncommitted) = &self.uncommitted {
            uncommitted.send(append).map_err(|_| StoreError::new("the commits have ended"))?;
            return Ok(Appended::Recorded);
        }
        let written = self.inner.append(append).await;
        self.linger().await;
        written
    }

    async fn withdraw(&self, task: &TaskId, note: Option<RecordNote>) -> Result<bool, StoreError> {
        self.inner.withdraw(task, note).await
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        self.one_read().find(owner, id, names).await
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        self.one_read().keyed(owner, key, now).await
    }

    async fn kept_keys(&self) -> Result<Vec<KeptKeys>, StoreError> {
        self.one_read().kept_keys().await
    }

    async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, StoreError> {
        self.one_read().owners_named(name).await
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        self.one_read().find_any(id).await
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        self.one_read().link(task).await
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        self.one_read().context_link(owner, agent, context).await
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let entries = self.one_read().entries(task, after, limit).await?;
        self.entries_read.fetch_add(entries.len() as u64, Ordering::SeqCst);
        Ok(entries)
    }

    async fn entries_within(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let entries = self.one_read().entries_within(task, after, limit, bytes).await?;
        self.entries_read.fetch_add(entries.len() as u64, Ordering::SeqCst);
        Ok(entries)
    }

    async fn entries_of(&self, tasks: &[(TaskId, u64)], bytes: u64) -> Result<Vec<Vec<Arc<LogEntry>>>, StoreError> {
        let read = self.one_read().entries_of(tasks, bytes).await?;
        self.entries_read.fetch_add(read.iter().map(|entries| entries.len() as u64).sum(), Ordering::SeqCst);
        Ok(read)
    }

    async fn keep_snapshot(&self, snapshot: TaskSnapshot) -> Result<(), StoreError> {
        if self.snapshots { self.inner.keep_snapshot(snapshot).await } else { Ok(()) }
    }

    async fn snapshot(&self, task: &TaskId, artifacts: bool) -> Result<Option<TaskSnapshot>, StoreError> {
        self.one_read().snapshot(task, artifacts).await
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<TaskListing, StoreError> {
        self.one_read().list(filter, after, limit).await
    }

    async fn list_page(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Vec<Stored>, StoreError> {
        self.one_read().list_page(filter, after, limit).await
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        self.one_read().unfinished().await
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        self.one_read().governed(task).await
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        self.one_read().tree(root).await
    }

    async fn tree_page(&self, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        self.one_read().tree_page(root, after, limit).await
    }

    async fn tree_costs(&self, root: &TaskId) -> Result<Vec<TreeCost>, StoreError> {
        self.one_read().tree_costs(root).await
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        self.one_read().roots(trace).await
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<LedgerSnapshot, StoreError> {
        self.one_read().ledger(settled_since).await
    }

    async fn spent(&self, since: Timestamp, trees: bool) -> Result<Vec<PastSpend>, StoreError> {
        self.one_read().spent(since, trees).await
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        self.inner.settle(task, spend).await
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        self.inner.decide(decision).await
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        self.one_read().decision(id).await
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        self.one_read().decisions_of(task).await
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        self.one_read().decisions(limit).await
    }

    async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, StoreError> {
        self.one_read().decisions_before(id, limit).await
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        self.one_read().freezes().await
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        let frozen = self.inner.freeze(freeze).await;
        self.linger().await;
        frozen
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let thawed = self.inner.thaw(scope, note).await;
        self.linger().await;
        thawed
    }

    async fn sweep(&self, plan: SweepPlan) -> Result<u64, StoreError> {
        self.inner.sweep(plan).await
    }

    async fn spend_nonce(&self, nonce: SpentNonce) -> Result<NonceVerdict, StoreError> {
        self.inner.spend_nonce(nonce).await
    }

    async fn expire(&self, plan: ExpiryPlan) -> Result<bool, StoreError> {
        self.inner.expire(plan).await
    }

    fn record(&self) -> Option<Arc<dyn Record>> {
        self.inner.record()
    }

    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        self.inner.cluster()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }

    async fn close(&self, patience: Duration) -> Result<(), StoreError> {
        self.inner.close(patience).await
    }
}
