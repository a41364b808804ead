//! What a reader of a task's events holds: a cursor into the log, woken when there is more. It never polls.

use std::sync::Arc;

use chancery_protocol::{ArtifactId, ContextId, Dialect, Error, TaskEvent, TaskId};
use tokio::sync::watch;

use crate::LogEntry;
use crate::live::{LiveTask, Visible};
use crate::service::Inner;
use crate::streams::StreamPermit;
use crate::whole::{whole_entry, whole_events};

/// When a stream is over, beside the end of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Only the end of the task.
    Terminal,
    /// Also the end of the turn that began after this entry, or its first interrupted state.
    Settled(u64),
    /// The same, but at an auth-required of an agent that goes on the stream stays open (1.0 §7.6.1).
    TurnOver(u64),
}

/// A run of events in order, never empty, or the reason why there are no more.
#[derive(Debug)]
pub enum Next {
    Events(Vec<Arc<LogEntry>>),
    /// The task ended, or the turn this stream was for.
    Done,
    /// The node is shutting down; the reader can resume after the last event it saw.
    ShuttingDown,
}

#[derive(Debug)]
pub struct Subscription {
    inner: Arc<Inner>,
    live: Arc<LiveTask>,
    visible: watch::Receiver<Visible>,
    /// The last entry the reader has.
    cursor: u64,
    /// Shown before anything else, without moving the cursor.
    first: Option<Arc<LogEntry>>,
    until: Until,
    /// Wait for the agent's first word, because it may be a message instead of a task.
    undecided: bool,
    /// The reader takes references to large parts.
    references: bool,
    _permit: StreamPermit,
}

impl Subscription {
    pub(crate) fn new(inner: Arc<Inner>, live: Arc<LiveTask>, cursor: u64, until: Until, permit: StreamPermit) -> Self {
        let visible = live.watch();
        Self { inner, live, visible, cursor, first: None, until, undecided: false, references: false, _permit: permit }
    }

    pub(crate) fn with_first(mut self, entry: LogEntry) -> Self {
        self.first = Some(Arc::new(entry));
        self
    }

    /// For a reader that takes references to large parts instead of the parts.
    pub(crate) fn with_references(mut self, references: bool) -> Self {
        self.references = references;
        self
    }

    pub(crate) fn undecided(mut self, undecided: bool) -> Self {
        self.undecided = undecided;
        self
    }

    pub fn task_id(&self) -> &TaskId {
        &self.live.record.id
    }

    pub fn context_id(&self) -> &ContextId {
        &self.live.record.context_id
    }

    pub fn client_task_id(&self) -> Option<&Arc<str>> {
        self.live.record.client_task_id.as_ref()
    }

    /// The task's artifacts in the order they were begun. Those of events already handed out are among them.
    pub fn artifacts(&self) -> Vec<ArtifactId> {
        self.live.task().artifacts.iter().map(|artifact| artifact.artifact_id.clone()).collect()
    }

    /// The dialect of the call that made the task.
    pub fn dialect(&self) -> Dialect {
        self.live.record.dialect
    }

    /// The last event handed out.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Waits for events. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Next, Error> {
        if let Some(mut first) = self.first.clone() {
            if let Some(desk) = self.inner.desk_of_parts().filter(|_| !self.references) {
                first = Box::pin(whole_entry(desk, &self.live.record.id, &first, desk.most_at_once())).await?;
            }
            self.first = None;
            return Ok(Next::Events(vec![first]));
        }
        loop {
            // Mark before looking, so that what comes while we look wakes us again.
            let visible = *self.visible.borrow_and_update();
            let waiting = self.undecided && !visible.is_decided();
            if visible.broken
                && self.cursor == 0
                && let Some(refusal) = self.live.refusal()
            {
                return Err(refusal);
            }
            if visible.seq > self.cursor && !waiting {
                let events = self.read().await?;
                // Visible, but in the log no more: retention has forgotten the task under a reader that fell behind.
                if events.is_empty() {
                    return Err(Error::task_not_found());
                }
                return Ok(Next::Events(events));
            }
            if visible.broken {
                return Err(self.live.broken());
            }
            if self.is_over(visible) {
                if self.live.is_told() {
                    Box::pin(self.inner.first_attempts(&self.live)).await;
                }
                return Ok(Next::Done);
            }
            tokio::select! {
                biased;
                changed = self.visible.changed() => {
                    if changed.is_err() {
                        return Ok(Next::Done);
                    }
                }
                () = self.inner.shutdown.cancelled() => return Ok(Next::ShuttingDown),
            }
        }
    }

    fn is_over(&self, visible: Visible) -> bool {
        match self.until {
            Until::Terminal => visible.terminal,
            Until::Settled(after) => visible.terminal || visible.settled > after,
            Until::TurnOver(after) => visible.terminal || (visible.settled > after && !visible.authorizing),
        }
    }

    /// From memory when the reader keeps up, from the log when it does not.
    async fn read(&mut self) -> Result<Vec<Arc<LogEntry>>, Error> {
        let limit = self.inner.limits.load().stream_buffer_events;
        let mut events = match self.live.tail_after(self.cursor, limit) {
            Some(events) => events,
            None => self.inner.entries(&self.live.record.id, self.cursor, limit).await?,
        };
        if let Some(desk) = self.inner.desk_of_parts().filter(|_| !self.references) {
            events = whole_events(desk, &self.live.record.id, events).await?;
        }
        if let Some(last) = events.last() {
            self.cursor = last.seq;
        }
        if std::mem::take(&mut self.undecided) && events.iter().any(|entry| matches!(entry.event, TaskEvent::Replied(_))) {
            events.retain(|entry| !matches!(entry.event, TaskEvent::Created(_)));
        }
        Ok(events)
    }
}
