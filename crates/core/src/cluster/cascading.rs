//! Cancels the tasks below a cancelled one that other nodes work on, or that wait for their caller.

use std::collections::HashSet;
use std::sync::Arc;

use chancery_protocol::{Error, ErrorKind, TaskId};
use futures::future::join_all;

use crate::find::internal;
use crate::service::ChanceryInner;
use crate::{CascadeOutcome, Cascaded, LedgerRow};

impl ChanceryInner {
    /// The deepest first, each level at once, and the task itself if `with_it` is set. What was cancelled already is left out.
    pub(crate) async fn cascade_shared(
        self: &Arc<Self>,
        task: &TaskId,
        done: &[Cascaded],
        with_it: bool,
    ) -> Result<Vec<Cascaded>, Error> {
        let Some(governed) = self.store.governed(task).await.map_err(internal)? else { return Ok(Vec::new()) };
        let rows = self.store.tree(&governed.kinship.root).await.map_err(internal)?;
        let mut open = open_below(rows, task, with_it);
        open.retain(|row| done.iter().all(|done| done.task != row.task));
        let mut cascaded = Vec::new();
        while let Some(deepest) = open.iter().map(|row| row.governed.kinship.depth).max() {
            let (level, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(|row| row.governed.kinship.depth == deepest);
            cascaded.extend(join_all(level.iter().map(|row| self.cancel_row(row))).await);
            open = rest;
        }
        Ok(cascaded)
    }

    async fn cancel_row(self: &Arc<Self>, row: &LedgerRow) -> Cascaded {
        let cancelling = Box::pin(self.cancel_by_id(&row.task));
        let (outcome, reason) = match tokio::time::timeout(self.limits.load().cascade(), cancelling).await {
            Ok(Ok(reason)) if reason.is_some() => (CascadeOutcome::Unreachable, reason),
            Ok(Ok(_)) => (CascadeOutcome::Cancelled, None),
            Ok(Err(error)) if error.kind == ErrorKind::TaskNotCancelable => (CascadeOutcome::AlreadyDone, None),
            Ok(Err(error)) => (CascadeOutcome::Refused, Some(error.message.into_owned())),
            Err(_) => (CascadeOutcome::Unreachable, Some("it did not end in time".to_owned())),
        };
        Cascaded { task: row.task.clone(), agent: row.agent.clone(), depth: row.governed.kinship.depth, outcome, reason }
    }

    /// Returns why it is unknown whether a remote agent stopped too.
    pub(crate) async fn cancel_by_id(self: &Arc<Self>, task: &TaskId) -> Result<Option<String>, Error> {
        let stored = self.store.find_any(task.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)?;
        if stored.progress.state.is_terminal() {
            return Err(crate::cancel::not_cancelable(stored.progress.state));
        }
        let live = self.open(stored).await?;
        let cascaded = Box::pin(self.cancel_anywhere(&live, "cascade".into())).await?;
        Ok(cascaded.into_iter().find(|left| left.task == *task).and_then(|left| left.reason))
    }
}

/// The tasks below one that have not ended. Parents come before their children.
fn open_below(rows: Vec<LedgerRow>, task: &TaskId, with_it: bool) -> Vec<LedgerRow> {
    let mut below = HashSet::from([task.clone()]);
    let mut found = Vec::new();
    for row in rows {
        if row.governed.kinship.parent.as_ref().is_some_and(|parent| below.contains(parent)) {
            below.insert(row.task.clone());
            found.push(row);
        } else if with_it && row.task == *task {
            found.push(row);
        }
    }
    found.retain(|row| !row.state.is_terminal());
    found
}
