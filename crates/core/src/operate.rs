//! What the operator may see and do: every caller's tasks, not only one's own.

use std::sync::Arc;

use chancery_protocol::{CallAccount, Caller, Error, NamedTask};

use crate::cancel::not_cancelable;
use crate::find::{internal, shown};
use crate::publish::{Subscription, Until};
use crate::service::Chancery;
use crate::{Cascaded, ListCursor, ListFilter, LogEntry, Stored};

impl Chancery {
    /// A page of the tasks of all callers that match the filter, newest status first.
    pub async fn operator_page(
        &self,
        filter: &ListFilter,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<Stored>, Error> {
        self.0.store.list_page(filter, after, limit).await.map_err(internal)
    }

    /// The same page, and how many tasks match in all.
    pub async fn operator_list(
        &self,
        filter: &ListFilter,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<(Vec<Stored>, u64), Error> {
        let listed = self.0.store.list(filter, after, limit).await.map_err(internal)?;
        Ok((listed.tasks, listed.total))
    }

    /// The owners of tasks that have this name, of any tenant.
    pub async fn owners_named(&self, name: &str) -> Result<Vec<Caller>, Error> {
        self.0.store.owners_named(name).await.map_err(internal)
    }

    /// Returns a task of any owner.
    pub async fn operator_get(&self, id: &str) -> Result<(Stored, NamedTask), Error> {
        let stored = self.operator_find(id).await?;
        let task = self.0.current(&stored).await?;
        let shown = shown(&stored.task, task, None);
        Ok((stored, shown))
    }

    /// Returns entries of the log of a task of any owner.
    pub async fn operator_entries(&self, id: &str, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        let stored = self.operator_find(id).await?;
        self.0.entries(&stored.task.id, after, limit).await
    }

    /// Cancels a task after all its subtasks, the deepest first. Returns the task, and the outcome of those
    /// below; of the task itself only if its agent may continue.
    pub async fn operator_cancel(&self, id: &str) -> Result<(NamedTask, Vec<Cascaded>), Error> {
        let stored = self.operator_find(id).await?;
        if stored.progress.state.is_terminal() {
            return Err(not_cancelable(stored.progress.state));
        }
        let live = self.0.open(stored).await?;
        let cascaded = self.0.cancel_anywhere(&live, "operator".into()).await?;
        let (task, _) = self.0.whole(&live).await?;
        Ok((shown(&live.record, task, None), cascaded))
    }

    /// Every entry of a task's log after `after`, as it comes, until the task ends.
    pub async fn operator_watch(&self, id: &str, after: u64) -> Result<Subscription, Error> {
        let stored = self.operator_find(id).await?;
        let operator = CallAccount::Caller(Caller::new("", "operator"));
        let permit = self.0.streams.enter(&operator, &stored.task.id, &self.0.limits.load())?;
        let live = self.0.open(stored).await?;
        live.let_go();
        Ok(Subscription::new(Arc::clone(&self.0), live, after, Until::Terminal, permit).with_references(true))
    }

    async fn operator_find(&self, id: &str) -> Result<Stored, Error> {
        self.0.store.find_any(id).await.map_err(internal)?.ok_or_else(Error::task_not_found)
    }
}
