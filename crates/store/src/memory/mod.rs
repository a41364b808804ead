//! Tasks in the memory of this process: gone when it ends.

mod append;
mod decisions;
mod find;
mod index;
mod list;
mod names;
mod outbox;
mod record;
mod shard;
mod spent;
mod sweep;
mod trees;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Decision, ExpiryPlan, Freeze, FreezeScope, Governed, KeptKeys, Keyed, LedgerRow, LedgerSnapshot, Link,
    ListCursor, ListFilter, LogEntry, Names, NonceVerdict, Record, RecordLines, RecordNote, RecordedWrite, Scribe, Spend,
    SpentNonce, Store, StoreError, Stored, SweepPlan, TaskListing, TaskSnapshot, TreeCost,
};
use chancery_identity::credentials::{NonceDenied, NonceMemory, NonceUse};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};

use self::decisions::Decisions;
use self::index::Indexes;
use self::names::NamesInUse;
use self::record::MemoryRecord;
use self::shard::Shard;
use self::spent::Spent;
use crate::plain_ids;

/// Enough that appends to different tasks seldom meet, few enough to lock them all for a sweep.
const SHARDS: usize = 32;

/// Where several locks are held, `names` is taken first, then shards by index, then one of the others.
#[derive(Debug, Default)]
pub struct MemoryStore {
    shards: [Mutex<Shard>; SHARDS],
    names: Mutex<NamesInUse>,
    nonces: NonceMemory,
    made_ever: AtomicU64,
    indexes: Indexes,
    past: Mutex<Spent>,
    decisions: Mutex<Decisions>,
    freezes: Mutex<BTreeMap<FreezeScope, Freeze>>,
    outbox: Mutex<outbox::OutboxState>,
    /// What each write adds to, if a record is kept.
    record: Option<Arc<MemoryRecord>>,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a record that each write adds to.
    pub fn recording(scribe: Arc<dyn Scribe>) -> Self {
        Self { record: Some(Arc::new(MemoryRecord::new(scribe))), ..Self::default() }
    }

    /// What happens, in the words of the record, if one is kept.
    fn lines(&self, what: RecordedWrite<'_>) -> Option<(&MemoryRecord, RecordLines)> {
        self.record.as_deref().map(|record| (record, record.write(what)))
    }

    fn note(&self, note: Option<&RecordNote>) {
        if let Some((record, lines)) = note.and_then(|note| self.lines(RecordedWrite::Note(note))) {
            record.add(&lines);
        }
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, Shard> {
        locked(&self.shards[shard_of(id)])
    }
}

/// The last characters of the ids we make are random, so they alone spread tasks evenly.
fn shard_of(id: &str) -> usize {
    let tail = id.as_bytes().iter().rev().take(4);
    tail.fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte))) % SHARDS
}

/// No operation here can stop half-way in a state that would mislead the next one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        append::append(self, append)
    }

    async fn withdraw(&self, task: &TaskId, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let gone = sweep::withdraw(self, task);
        self.note(note.as_ref().filter(|_| gone));
        Ok(gone)
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        Ok(find::find(self, owner, id, names))
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        Ok(locked(&self.names).keyed(owner, key, now))
    }

    async fn kept_keys(&self) -> Result<Vec<KeptKeys>, StoreError> {
        Ok(locked(&self.names).kept_keys())
    }

    async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, StoreError> {
        Ok(list::owners_named(self, name))
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        Ok(self.shard(id).get(id).map(|kept| kept.stored()))
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        Ok(self.shard(task.as_str()).get(task.as_str()).and_then(|kept| kept.link.clone()))
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        Ok(find::context_link(self, owner, agent, context))
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        Ok(self.shard(task.as_str()).get(task.as_str()).map(|kept| kept.entries(after, limit)).unwrap_or_default())
    }

    async fn keep_snapshot(&self, snapshot: TaskSnapshot) -> Result<(), StoreError> {
        let id = snapshot.task.id.clone();
        if let Some(kept) = self.shard(id.as_str()).get_mut(id.as_str()) {
            kept.keep_snapshot(snapshot);
        }
        Ok(())
    }

    async fn snapshot(&self, task: &TaskId, artifacts: bool) -> Result<Option<TaskSnapshot>, StoreError> {
        Ok(find::snapshot(self, task, artifacts))
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<TaskListing, StoreError> {
        Ok(list::list(self, filter, after, limit))
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        Ok(find::unfinished(self))
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        Ok(trees::governed(self, task))
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        Ok(trees::tree(self, root))
    }

    async fn tree_page(&self, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        Ok(trees::tree_page(self, root, after, limit))
    }

    async fn tree_costs(&self, root: &TaskId) -> Result<Vec<TreeCost>, StoreError> {
        Ok(trees::tree_costs(self, root))
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        Ok(trees::roots(self, trace))
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<LedgerSnapshot, StoreError> {
        Ok(trees::ledger(self, settled_since))
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        trees::settle(self, task, spend)
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        plain_ids::check_decision(&decision)?;
        if let Some((record, lines)) = self.lines(RecordedWrite::Decision(&decision)) {
            record.add(&lines);
        }
        locked(&self.decisions).keep(decision);
        Ok(())
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        Ok(locked(&self.decisions).by_id(id))
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        Ok(locked(&self.decisions).of_task(task))
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        Ok(locked(&self.decisions).newest(limit))
    }

    async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, StoreError> {
        Ok(locked(&self.decisions).before(id, limit))
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        Ok(locked(&self.freezes).values().cloned().collect())
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        plain_ids::check_freeze(&freeze)?;
        if let Some((record, lines)) = self.lines(RecordedWrite::Freeze(&freeze)) {
            record.add(&lines);
        }
        locked(&self.freezes).insert(freeze.scope.clone(), freeze);
        Ok(())
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let thawed = locked(&self.freezes).remove(scope).is_some();
        self.note(note.as_ref().filter(|_| thawed));
        Ok(thawed)
    }

    fn record(&self) -> Option<Arc<dyn Record>> {
        self.record.clone().map(|record| record as Arc<dyn Record>)
    }

    async fn sweep(&self, plan: SweepPlan) -> Result<u64, StoreError> {
        Ok(sweep::sweep(self, plan))
    }

    async fn spend_nonce(&self, SpentNonce { nonce, until, now, most }: SpentNonce) -> Result<NonceVerdict, StoreError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self.nonces.use_once(NonceUse { nonce, until, now, most }) {
            Ok(()) => Ok(NonceVerdict::Fresh),
            Err(NonceDenied::Replayed) => Ok(NonceVerdict::Replayed),
            Err(NonceDenied::Full) => Ok(NonceVerdict::Full),
            Err(NonceDenied::Unavailable(fault)) => Err(StoreError::new(fault)),
        }
    }

    async fn expire(&self, plan: ExpiryPlan) -> Result<bool, StoreError> {
        let more_keys = locked(&self.names).expire(plan);
        Ok(self.nonces.expire(plan.now, plan.at_most) || more_keys)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self, _patience: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}
