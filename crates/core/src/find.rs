//! Finds a caller's task and reads it, from memory when something is going on with it and from the log otherwise.

use std::sync::Arc;

use chancery_protocol::{CallContext, Error, ErrorKind, Shown, Task, TaskEvent, TaskId, Version};
use chancery_rules::task_state;

use crate::agents::Agent;
use crate::live::LiveTask;
use crate::service::Inner;
use crate::{LogEntry, Names, Progress, StoreError, Stored, TaskRecord};

/// Only the older protocol lets clients name tasks, so only its callers can find them that way.
pub(crate) fn names(context: &CallContext) -> Names {
    if context.version == Version::V1_0 { Names::Server } else { Names::ServerOrClient }
}

impl Inner {
    /// A task of the caller's at this agent. Everything else is "not found", in the same words.
    pub(crate) async fn find(&self, context: &CallContext, agent: &Agent, id: &TaskId) -> Result<Stored, Error> {
        let names = names(context);
        let found = match self.open.get(id) {
            Some(live) if live.record.owner == context.caller => Some(live.stored()),
            // Also when somebody else's task goes by this id: the caller may have given it to one of its own.
            _ => self.store.find(&context.caller, id.as_str(), names).await.map_err(internal)?,
        };
        found.filter(|stored| stored.task.agent == agent.name && !stored.progress.message_only).ok_or_else(Error::task_not_found)
    }

    /// The task with room for what is going on with it.
    pub(crate) async fn open(self: &Arc<Self>, stored: Stored) -> Result<Arc<LiveTask>, Error> {
        loop {
            if let Some(live) = self.open.get(&stored.task.id) {
                return Ok(live);
            }
            let (task, progress) = self.read(&stored).await?;
            let node = self.govern.trees.get(&stored.task.id);
            let live = self.open.add(LiveTask::loaded(Arc::clone(&stored.task), Arc::new(task), progress, node));
            // Between our read and our entry in the list another flow may have opened, moved and left the task. Once
            // listed, every move goes through us, so one more look settles it.
            let now = self.store.find_any(stored.task.id.as_str()).await.map_err(internal)?.ok_or_else(Error::task_not_found)?;
            if live.visible().seq >= now.progress.seq {
                return Ok(live);
            }
            live.break_off(None);
            self.open.drop_stale(&live);
        }
    }

    /// The task as it is now, without keeping it.
    pub(crate) async fn current(&self, stored: &Stored) -> Result<Arc<Task>, Error> {
        match self.open.get(&stored.task.id) {
            Some(live) => Ok(live.task()),
            None => self.read(stored).await.map(|(task, _)| Arc::new(task)),
        }
    }

    /// Folds the log. It may have grown since `stored` was read: what the entries say is what counts.
    async fn read(&self, stored: &Stored) -> Result<(Task, Progress), Error> {
        let entries = self.entries(&stored.task.id, 0, usize::MAX).await?;
        let last = entries.last().ok_or_else(Error::task_not_found)?.seq;
        let task = task_state::fold(entries.iter().map(|entry| &entry.event)).ok_or_else(Error::task_not_found)?;
        let later = entries.iter().filter(|entry| entry.seq > stored.progress.seq);
        let progress = Progress {
            state: task.status.state,
            status_at: task.status.timestamp.unwrap_or(stored.progress.status_at),
            seq: last,
            bytes: stored.progress.bytes + later.map(|entry| task_state::weight(&entry.event)).sum::<u64>(),
            message_only: entries.iter().any(|entry| matches!(entry.event, TaskEvent::Replied(_))),
        };
        Ok((task, progress))
    }

    pub(crate) async fn entries(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        self.store.entries(task, after, limit).await.map_err(internal)
    }
}

/// A task as a caller sees it, with at most `history_length` messages of history.
pub(crate) fn shown(record: &TaskRecord, mut task: Arc<Task>, history_length: Option<i32>) -> Shown {
    if let Some(length) = history_length.and_then(|length| usize::try_from(length).ok())
        && task.history.len() > length
    {
        let task = Arc::make_mut(&mut task);
        task.history.drain(..task.history.len() - length);
    }
    Shown { task, dialect: record.dialect, client_task_id: record.client_task_id.clone() }
}

/// The caller learns that it was us and a reference; the log has the whole story.
pub(crate) fn internal(fault: StoreError) -> Error {
    let reference = crate::ids::fresh_id();
    tracing::error!(reference = &*reference, error = &fault as &dyn std::error::Error, "the store failed");
    Error::new(ErrorKind::Internal, format!("internal error, reference {reference}")).with_fact("reference", reference)
}
