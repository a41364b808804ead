//! The port `Store`, by the files of this folder.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Cluster, Decision, ExpiryPlan, Freeze, FreezeScope, Governed, KeptKeys, Keyed, LedgerRow, LedgerSnapshot,
    Link, ListCursor, ListFilter, LogEntry, Names, NonceVerdict, PastSpend, Record, RecordNote, RecordedWrite, Spend, SpentNonce,
    Store, StoreError, Stored, SweepPlan, TaskListing, TaskSnapshot, TreeCost,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};
use tokio::time::Instant;

use super::append::EncodedAppend;
use super::entries::{self, MOST_ENTRIES};
use super::health::HealthAdvice;
use super::readers::read;
use super::requests::{QueuedWrite, WriteRequest};
use super::{PostgresStore, decisions, fault, find, freezes, keys, ledger, links, list, nonces, snapshots, spent, sweep, trees};
use crate::rows::decisions::EncodedDecision;
use crate::rows::snapshots::SnapshotRow;
use crate::{numbering, plain_ids};

/// A check waits no longer than this for an answer, regardless of the patience of calls.
const CHECK_PATIENCE: Duration = Duration::from_secs(1);

#[async_trait]
impl Store for PostgresStore {
    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let lines = self.lines(RecordedWrite::Append(&append));
        self.requests.append(Box::new(EncodedAppend::new(append, lines)?)).await
    }

    async fn withdraw(&self, task: &TaskId, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let asked = (task.clone(), self.noted(note.as_ref()));
        let work = self.requests.perform("taking a task back", asked, |(task, lines), state| {
            Box::pin(async move {
                let gone = sweep::withdraw(state, task).await?;
                if gone {
                    state.add_to_record(lines);
                }
                Ok(gone)
            })
        });
        work.await
    }

    async fn find(&self, owner: &Caller, id: &str, names: Names) -> Result<Option<Stored>, StoreError> {
        read!(self.readers, "looking up a task", |db| find::find(db, owner, id, names))
    }

    async fn keyed(&self, owner: &Caller, key: &str, now: Timestamp) -> Result<Option<Keyed>, StoreError> {
        read!(self.readers, "looking up a key", |db| keys::look_up(db, owner, key, now))
    }

    async fn kept_keys(&self) -> Result<Vec<KeptKeys>, StoreError> {
        read!(self.readers, "counting keys", |db| keys::kept(db))
    }

    async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, StoreError> {
        read!(self.readers, "looking up owners", |db| list::owners_named(db, name))
    }

    async fn find_any(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        read!(self.readers, "looking up a task", |db| find::find_any(db, id))
    }

    async fn link(&self, task: &TaskId) -> Result<Option<Link>, StoreError> {
        read!(self.readers, "looking up a link", |db| links::of_task(db, task))
    }

    async fn context_link(&self, owner: &Caller, agent: &AgentName, context: &ContextId) -> Result<Option<Link>, StoreError> {
        read!(self.readers, "looking up a conversation's link", |db| links::of_context(db, owner, agent, context))
    }

    async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        self.entries_within(task, after, limit, u64::MAX).await
    }

    async fn entries_within(
        &self,
        task: &TaskId,
        after: u64,
        limit: usize,
        bytes: u64,
    ) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        read!(self.readers, "reading a log", |db| entries::read(db, task.as_str(), after, limit, bytes))
    }

    async fn entries_of(&self, tasks: &[(TaskId, u64)], bytes: u64) -> Result<Vec<Vec<Arc<LogEntry>>>, StoreError> {
        read!(self.readers, "reading several logs", |db| entries::read_several(db, tasks, bytes))
    }

    async fn keep_snapshot(&self, snapshot: TaskSnapshot) -> Result<(), StoreError> {
        let row = SnapshotRow::new(&snapshot, MOST_ENTRIES)?;
        let work = self.requests.perform("keeping a snapshot", row, |row, state| {
            Box::pin(async move { snapshots::keep(&*state.session()?, row).await })
        });
        work.await
    }

    async fn snapshot(&self, task: &TaskId, artifacts: bool) -> Result<Option<TaskSnapshot>, StoreError> {
        read!(self.readers, "reading a snapshot", |db| snapshots::of_task(db, task, artifacts))
    }

    async fn list(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<TaskListing, StoreError> {
        read!(self.readers, "listing tasks", |db| list::list(db, filter, after, limit))
    }

    async fn list_page(&self, filter: &ListFilter, after: Option<&ListCursor>, limit: usize) -> Result<Vec<Stored>, StoreError> {
        read!(self.readers, "listing tasks", |db| list::list_page(db, filter, after, limit))
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        read!(self.readers, "looking for unfinished tasks", |db| find::unfinished(db))
    }

    async fn governed(&self, task: &TaskId) -> Result<Option<Governed>, StoreError> {
        read!(self.readers, "looking up how a task is governed", |db| trees::governed(db, task))
    }

    async fn tree(&self, root: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        read!(self.readers, "reading a tree", |db| trees::tree(db, root))
    }

    async fn tree_page(&self, root: &TaskId, after: Option<&TaskId>, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        read!(self.readers, "reading a tree", |db| trees::tree_page(db, root, after, limit))
    }

    async fn tree_costs(&self, root: &TaskId) -> Result<Vec<TreeCost>, StoreError> {
        read!(self.readers, "adding up a tree", |db| trees::tree_costs(db, root))
    }

    async fn roots(&self, trace: TraceId) -> Result<Vec<TaskId>, StoreError> {
        read!(self.readers, "looking up a trace", |db| trees::roots(db, trace))
    }

    async fn ledger(&self, settled_since: Timestamp) -> Result<LedgerSnapshot, StoreError> {
        read!(self.readers, "reading the ledger", |db| trees::ledger(db, settled_since))
    }

    async fn spent(&self, since: Timestamp, trees: bool) -> Result<Vec<PastSpend>, StoreError> {
        read!(self.readers, "adding up costs", |db| spent::all_since(db, since, trees))
    }

    async fn settle(&self, task: &TaskId, spend: Spend) -> Result<(), StoreError> {
        let work = self.requests.perform("settling what a task cost", (task.clone(), spend), |(task, spend), state| {
            Box::pin(async move { ledger::settle(&*state.session()?, task, spend).await })
        });
        if work.await? { Ok(()) } else { Err(numbering::not_counted(task)) }
    }

    async fn decide(&self, decision: Arc<Decision>) -> Result<(), StoreError> {
        plain_ids::check_decision(&decision)?;
        let lines = self.lines(RecordedWrite::Decision(&decision));
        let asked = (EncodedDecision::new(decision)?, lines);
        let work = self.requests.perform("keeping a decision", asked, |(encoded, lines), state| {
            Box::pin(async move {
                decisions::keep(&*state.session()?, encoded).await?;
                state.add_to_record(lines);
                Ok(())
            })
        });
        work.await
    }

    async fn decision(&self, id: &str) -> Result<Option<Decision>, StoreError> {
        read!(self.readers, "looking up a decision", |db| decisions::by_id(db, id))
    }

    async fn decisions_of(&self, task: &TaskId) -> Result<Vec<Decision>, StoreError> {
        read!(self.readers, "reading a task's decisions", |db| decisions::of_task(db, task))
    }

    async fn decisions(&self, limit: usize) -> Result<Vec<Decision>, StoreError> {
        read!(self.readers, "reading decisions", |db| decisions::newest(db, limit))
    }

    async fn decisions_before(&self, id: &str, limit: usize) -> Result<Vec<Decision>, StoreError> {
        read!(self.readers, "reading decisions", |db| decisions::before(db, id, limit))
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        read!(self.readers, "reading what is frozen", |db| freezes::list(db))
    }

    async fn freeze(&self, freeze: Freeze) -> Result<(), StoreError> {
        plain_ids::check_freeze(&freeze)?;
        let lines = self.lines(RecordedWrite::Freeze(&freeze));
        let work = self.requests.perform("freezing", (freeze, lines), |(freeze, lines), state| {
            Box::pin(async move {
                freezes::keep(&*state.session()?, freeze).await?;
                state.add_to_record(lines);
                Ok(())
            })
        });
        work.await
    }

    async fn thaw(&self, scope: &FreezeScope, note: Option<RecordNote>) -> Result<bool, StoreError> {
        let asked = (scope.clone(), self.noted(note.as_ref()));
        let work = self.requests.perform("thawing", asked, |(scope, lines), state| {
            Box::pin(async move {
                let thawed = freezes::remove(&*state.session()?, scope).await?;
                if thawed {
                    state.add_to_record(lines);
                }
                Ok(thawed)
            })
        });
        work.await
    }

    fn record(&self) -> Option<Arc<dyn Record>> {
        self.record.clone().map(|record| record as Arc<dyn Record>)
    }

    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        self.member.clone().map(|member| member as Arc<dyn Cluster>)
    }

    async fn sweep(&self, plan: SweepPlan) -> Result<u64, StoreError> {
        self.requests.tidy("forgetting old tasks", plan, |plan, state| Box::pin(sweep::sweep(state, *plan))).await
    }

    async fn spend_nonce(&self, nonce: SpentNonce) -> Result<NonceVerdict, StoreError> {
        self.requests.spend(nonce).await
    }

    async fn expire(&self, plan: ExpiryPlan) -> Result<bool, StoreError> {
        let work = self.requests.tidy("forgetting what has expired", plan, |plan, state| {
            Box::pin(async move {
                let session = state.session()?;
                let more_keys = keys::expire(&*session, *plan).await?;
                let (gone, more_nonces) = nonces::expire(&*session, *plan).await?;
                state.nonces = state.nonces.saturating_sub(gone);
                Ok(more_keys || more_nonces)
            })
        });
        work.await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.look_at_fence(CHECK_PATIENCE).await?;
        if self.requests.queue.upgrade().is_none_or(|queue| queue.is_closed()) {
            return Err(fault::closed());
        }
        match self.health.advice() {
            HealthAdvice::Fine => Ok(()),
            // A batch that only counts its writer's row up.
            HealthAdvice::TryWrite => self.requests.perform("a trial write", (), |(), _| Box::pin(async { Ok(()) })).await,
            HealthAdvice::Unwell(reason) => Err(reason),
        }
    }

    async fn close(&self, patience: Duration) -> Result<(), StoreError> {
        let Some(open) = self.take_open() else { return Ok(()) };
        let ending = async {
            drop(open.queue.send(QueuedWrite { request: WriteRequest::Close, until: Instant::now() + patience }).await);
            drop(open.queue);
            let written = open.task.await;
            if let Some(lease) = open.lease {
                lease.end(patience).await;
            }
            if let Some(member) = &self.member {
                member.close(patience).await;
            }
            written
        };
        let ended = tokio::time::timeout(patience, ending).await;
        self.readers.close();
        self.member.iter().for_each(|member| member.stop());
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(StoreError::caused_by("waiting for the store's writer failed", error)),
            Err(late) => Err(StoreError::caused_by("the store did not finish writing in time", late)),
        }
    }
}
