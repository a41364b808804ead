//! A store that takes every task and keeps none: the doors' tests look at what the doors do, and never at a task again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Append, Appended, Decision, ExpiryPlan, Freeze, FreezeScope, Governed, Keyed, LedgerRow, LedgerSnapshot, Link, ListCursor,
    ListFilter, LogEntry, Names, NonceVerdict, RecordNote, Spend, SpentNonce, Store, StoreError, Stored, SweepPlan, TaskListing,
};
use chancery_protocol::{AgentName, Caller, ContextId, TaskId, Timestamp, TraceId};

#[derive(Debug)]
pub(crate) struct ForgetfulStore;

#[async_trait]
impl Store for ForgetfulStore {
    async fn append(&self, _: Append) -> Result<Appended, StoreError> {
        Ok(Appended::Recorded)
    }

    async fn withdraw(&self, _: &TaskId, _: Option<RecordNote>) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn find(&self, _: &Caller, _: &str, _: Names) -> Result<Option<Stored>, StoreError> {
        Ok(None)
    }

    async fn keyed(&self, _: &Caller, _: &str, _: Timestamp) -> Result<Option<Keyed>, StoreError> {
        Ok(None)
    }

    async fn find_any(&self, _: &str) -> Result<Option<Stored>, StoreError> {
        Ok(None)
    }

    async fn link(&self, _: &TaskId) -> Result<Option<Link>, StoreError> {
        Ok(None)
    }

    async fn context_link(&self, _: &Caller, _: &AgentName, _: &ContextId) -> Result<Option<Link>, StoreError> {
        Ok(None)
    }

    async fn entries(&self, _: &TaskId, _: u64, _: usize) -> Result<Vec<Arc<LogEntry>>, StoreError> {
        Ok(Vec::new())
    }

    async fn list(&self, _: &ListFilter, _: Option<&ListCursor>, _: usize) -> Result<TaskListing, StoreError> {
        Ok(TaskListing { tasks: Vec::new(), total: 0 })
    }

    async fn unfinished(&self) -> Result<Vec<Stored>, StoreError> {
        Ok(Vec::new())
    }

    async fn governed(&self, _: &TaskId) -> Result<Option<Governed>, StoreError> {
        Ok(None)
    }

    async fn tree(&self, _: &TaskId) -> Result<Vec<LedgerRow>, StoreError> {
        Ok(Vec::new())
    }

    async fn roots(&self, _: TraceId) -> Result<Vec<TaskId>, StoreError> {
        Ok(Vec::new())
    }

    async fn ledger(&self, _: Timestamp) -> Result<LedgerSnapshot, StoreError> {
        Ok(LedgerSnapshot::default())
    }

    async fn settle(&self, _: &TaskId, _: Spend) -> Result<(), StoreError> {
        Ok(())
    }

    async fn decide(&self, _: Arc<Decision>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn decision(&self, _: &str) -> Result<Option<Decision>, StoreError> {
        Ok(None)
    }

    async fn decisions_of(&self, _: &TaskId) -> Result<Vec<Decision>, StoreError> {
        Ok(Vec::new())
    }

    async fn decisions(&self, _: usize) -> Result<Vec<Decision>, StoreError> {
        Ok(Vec::new())
    }

    async fn freezes(&self) -> Result<Vec<Freeze>, StoreError> {
        Ok(Vec::new())
    }

    async fn freeze(&self, _: Freeze) -> Result<(), StoreError> {
        Ok(())
    }

    async fn thaw(&self, _: &FreezeScope, _: Option<RecordNote>) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn sweep(&self, _: SweepPlan) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn spend_nonce(&self, _: SpentNonce) -> Result<NonceVerdict, StoreError> {
        Ok(NonceVerdict::Fresh)
    }

    async fn expire(&self, _: ExpiryPlan) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}
