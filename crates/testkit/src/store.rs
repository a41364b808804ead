//! A store in memory whose weather a test makes: how long it takes, when it fails, and what it was asked.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Decision, Freeze, FreezeScope, Governed, Keyed, Ledger, LedgerRow, Link, ListCursor, ListFilter, Listed,
    LogEntry, Names, Note, PastSpend, Spend, Store, StoreError, Stored, SweepPlan, TaskRecord,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, TaskState, Timestamp, TraceId};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// What goes on around the store. The default is a calm day.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// An append waits up to this many turns of the scheduler, so that others get in between.
    pub delay: u32,
    /// Of a thousand appends, this many fail and write nothing.
    pub faults_per_mille: u32,
}

#[derive(Debug)]
pub struct FakeStore {
    rows: Mutex<Rows>,
    weather: Weather,
    dice: Mutex<SmallRng>,
    reads: AtomicU64,
}

/// The task a key made, the digest of what was asked, and when the key expires.
type Known = (TaskId, [u8; 32], Timestamp);

#[derive(Debug, Default)]
struct Rows {
    tasks: BTreeMap<TaskId, (Stored, Vec<Arc<LogEntry>>)>,
    keys: HashMap<(Caller, Arc<str>), Known>,
    links: BTreeMap<TaskId, Link>,
    governed: BTreeMap<TaskId, Governed>,
    past: Vec<PastSpend>,
    decisions: Vec<Arc<Decision>>,
    freezes: BTreeMap<FreezeScope, Freeze>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeStore {
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self { rows: Mutex::default(), weather, dice: Mutex::new(SmallRng::seed_from_u64(seed)), reads: AtomicU64::new(0) }
    }

    /// How often something was read, for tests that say nothing is.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Every log, as it would be found after a crash at this moment.
    pub fn logs(&self) -> Vec<(Stored, Vec<Arc<LogEntry>>)> {
        guard(&self.rows).tasks.values().cloned().collect()
    }

    /// The number of a task's last stored entry.
    pub fn last_seq(&self, id: &TaskId) -> u64 {
        guard(&self.rows).tasks.get(id).map_or(0, |(stored, _)| stored.progress.seq)
    }

    /// What was written is there before whoever wrote it is told so.
    async fn linger(&self) {
        for _ in 0..self.weather.delay {
            tokio::task::yield_now().await;
        }
    }

    fn read(&self) -> MutexGuard<'_, Rows> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        guard(&self.rows)
    }
}

impl Rows {
    fn by_client_id(&self, task: &TaskRecord) -> Option<TaskId> {
        let name = task.client_task_id.as_ref()?;
        let same = |stored: &Stored| stored.task.owner == task.owner && stored.task.client_task_id.as_ref() == Some(name);
        self.tasks.values().find(|(stored, _)| same(stored)).map(|(stored, _)| stored.task.id.clone())
    }

    fn rows(&self, wanted: impl Fn(&LedgerRow) -> bool) -> Vec<LedgerRow> {
        let row = |(stored, _): &(Stored, Vec<Arc<LogEntry>>)| {
            let Stored { task, progress } = stored;
            Some(LedgerRow {
                task: task.id.clone(),
                context_id: task.context_id.clone(),
                agent: task.agent.clone(),
                owner: task.owner.clone(),
                dialect: task.dialect,
                created_at: task.created_at,
                state: progress.state,
                status_at: progress.status_at,
                link: self.links.get(&task.id).cloned(),
                governed: self.governed.get(&task.id)?.clone(),
            })
        };
        // Ids are made in the order of time.
        self.tasks.values().filter_map(row).filter(wanted).collect()
    }

    fn write(&mut self, append: Append) -> Result<Appended, StoreError> {
        if let Some(creation) = append.creation {
            if let Some(asked) = creation.idempotency {
                let key = (append.task.owner.clone(), Arc::clone(&asked.key));
                if let Some((task, fingerprint, _)) = self.keys.get(&key) {
                    return Ok(Appended::KeyKnown { task: task.clone(), fingerprint: *fingerprint });
                }
                self.keys.insert(key, (append.task.id.clone(), asked.fingerprint, asked.expires_at));
            }
            if let Some(task) = self.by_client_id(&append.task) {
                return Ok(Appended::ClientIdKnown { task });
            }
            self.governed.extend(append.governed.map(|governed| (append.task.id.clone(), *governed)));
            let stored = Stored { task: Arc::clone(&append.task), progress: append.progress };
            self.tasks.insert(append.task.id.clone(), (stored, append.entries));
            return Ok(Appended::Recorded);
        }
        let (stored, log) = self.tasks.get_mut(&append.task.id).ok_or_else(|| StoreError::new("no such task"))?;
        if append.entries.first().is_none_or(|entry| entry.seq != stored.progress.seq + 1) {
            return Err(StoreError::new("entries do not follow what is stored"));
        }
        stored.progress = append.progress;
        log.extend(append.entries);
        self.links.extend(append.link.map(|link| (append.task.id.clone(), link)));
        self.decisions.extend(append.decision);
        if let Some(spend) = append.spend {
            self.settle(&append.task.id, spend);
        }
        Ok(Appended::Recorded)
    }

    fn settle(&mut self, task: &TaskId, spend: Spend) {
        let (Some(governed), Some((stored, _))) = (self.governed.get_mut(task), self.tasks.get(task)) else { return };
        if spend.is_of_later_turn_than(&governed.spend) {
            self.past.extend(PastSpend::of_last_turn(&stored.task.owner, &stored.task.agent, governed));
        }
        governed.spend = spend.in_place_of(&governed.spend);
    }
}

#[async_trait]
impl Store for FakeStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let (delay, fails) = {
            let mut dice = guard(&self.dice);
            (dice.random_range(0..=self.weather.delay), dice.random_range(0..1000) < self.weather.faults_per_mille)
        };
        for _ in 0..delay {
            tokio::task::yield_now().await;
        }
        if fails {
            return Err(StoreError::new("a fault, as asked for"));
        }
        let written = guard(&self.rows).write(append);
        self.linger().await;
        written
    }

    async fn withdraw(&self, task: &TaskId, _note: Option<Note>) -> Result<bool, StoreError> {
        let mut rows = guard(&self.rows);
        if rows.tasks.get(task).is_none_or(|(stored, _)| stored.progress.seq != 1) {
            return Ok(false);
        }
        rows.tasks.remove(task);
        rows.keys.retain(|_, (made, _, _)| made != task);
        Ok(true)
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        let rows = self.read();
        let named = |stored: &Stored| {
            let by_client = names == Names::ServerOrClient && stored.task.client_task_id.as_deref() == Some(id);
            stored.task.owner == *owner && (stored.task.id.as_str() == id || by_client)
        };
        Ok(rows.tasks.values().map(|(stored, _)| stored).find(|stored| named(stored)).cloned())
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        let rows = self.read();
        let known = rows.keys.get(&(owner.clone(), key.into())).filter(|(_, _, expires_at)| *expires_at > now);
        Ok(known.map(|(task, fingerprint, _)| Keyed { task: task.clone(), fingerprint: *fingerprint }))
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        Ok(self.read().tasks.get(id).map(|(stored, _)| stored.clone()))
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        Ok(self.read().links.get(task).cloned())
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        let rows = self.read();
        let of_context = |task: &TaskRecord| task.owner == *owner && task.agent == *agent && task.context_id == *context;
        let tasks = rows.tasks.values().map(|(stored, _)| &stored.task).filter(|task| of_context(task));
        let linked = tasks.filter_map(|task| Some((&task.id, rows.links.get(&task.id)?)));
        Ok(linked.max_by_key(|(id, _)| (*id).clone()).map(|(_, link)| link.clone()))
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        let rows = self.read();
        let log = rows.tasks.get(task).map(|(_, log)| log.as_slice()).unwrap_or_default();
        Ok(log.iter().filter(|entry| entry.seq > after).take(limit).cloned().collect())
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Listed, StoreError> {
        let rows = self.read();
        let place = |stored: &Stored| (stored.progress.status_at, stored.task.id.clone());
        let matches = |stored: &&Stored| {
            filter.owner.as_ref().is_none_or(|owner| stored.task.owner == *owner)
                && filter.agent.as_ref().is_none_or(|agent| stored.task.agent == *agent)
                && filter.context_id.as_ref().is_none_or(|context| stored.task.context_id == *context)
                && filter.state.is_none_or(|state| stored.progress.state == state)
                && filter.status_at_or_after.is_none_or(|time| stored.progress.status_at >= time)
                && !stored.progress.message_only
        };
        let mut all: Vec<Stored> = rows.tasks.values().map(|(stored, _)| stored).filter(matches).cloned().collect();
        let total = all.len() as u64;
        all.sort_by_key(|stored| std::cmp::Reverse(place(stored)));
        let rest =
            all.into_iter().filter(|stored| after.is_none_or(|cursor| place(stored) < (cursor.status_at, cursor.id.clone())));
        Ok(Listed { tasks: rest.take(limit).collect(), total })
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        let going_on = |stored: &&Stored| matches!(stored.progress.state, TaskState::Submitted | TaskState::Working);
        Ok(self.read().tasks.values().map(|(stored, _)| stored).filter(going_on).cloned().collect())
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        Ok(self.read().governed.get(task).cloned())
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        Ok(self.read().rows(|row| row.governed.kinship.root == *root))
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        let roots = self.read().rows(|row| row.governed.kinship.trace == trace && row.governed.kinship.parent.is_none());
        Ok(roots.into_iter().map(|row| row.task).collect())
    }

    /// Everything: more than is asked for does no harm to a start.
    async fn ledger(&self, _settled_since: Timestamp) -> Result<Ledger, StoreError> {
        let rows = self.read();
        Ok(Ledger { tasks: rows.rows(|_| true), past: rows.past.clone() })
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        guard(&self.rows).settle(task, spend);
        Ok(())
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        guard(&self.rows).decisions.push(decision);
        Ok(())
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        Ok(self.read().decisions.iter().find(|decision| *decision.id == *id).map(|decision| Decision::clone(decision)))
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        let of_task = |decision: &&Arc<Decision>| decision.task.as_ref() == Some(task);
        Ok(self.read().decisions.iter().filter(of_task).map(|decision| Decision::clone(decision)).collect())
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        Ok(self.read().decisions.iter().rev().take(limit).map(|decision| Decision::clone(decision)).collect())
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        Ok(self.read().freezes.values().cloned().collect())
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        guard(&self.rows).freezes.insert(freeze.scope.clone(), freeze);
        self.linger().await;
        Ok(())
    }

    async fn thaw(&self, scope: &FreezeScope, _note: Option<Note>) -> Result<bool, StoreError> {
        let thawed = guard(&self.rows).freezes.remove(scope).is_some();
        self.linger().await;
        Ok(thawed)
    }

    async fn sweep(&self, plan: SweepPlan, now: Timestamp) -> Result<u64, StoreError> {
        let mut rows = guard(&self.rows);
        rows.keys.retain(|_, (_, _, expires_at)| *expires_at > now);
        let mut ended: Vec<_> =
            rows.tasks.values().map(|(stored, _)| stored).filter(|stored| stored.progress.state.is_terminal()).collect();
        ended.sort_by_key(|stored| (stored.progress.status_at, stored.task.id.clone()));
        let excess = plan.keep_at_most.map_or(0, |keep| ended.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX)));
        let goes = |(place, stored): &(usize, &Stored)| {
            *place < excess || plan.older_than.is_some_and(|time| stored.progress.status_at < time)
        };
        let gone: Vec<TaskId> = ended.into_iter().enumerate().filter(goes).map(|(_, stored)| stored.task.id.clone()).collect();
        let gone: Vec<TaskId> = gone.into_iter().take(usize::try_from(plan.at_most).unwrap_or(usize::MAX)).collect();
        for id in &gone {
            rows.tasks.remove(id);
        }
        Ok(gone.len() as u64)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self, _patience: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}
