//! What a reader of a task's events holds: a cursor into the log, woken when there is more. It never polls.

use std::sync::Arc;

use chancery_protocol::{ArtifactId, ContextId, Dialect, Error, TaskEvent, TaskId, TaskState};
use chancery_rules::task_state;
use futures::FutureExt as _;
use tokio::sync::watch;

use crate::LogEntry;
use crate::answering::{AnswerPermit, COUNTED_FROM};
use crate::find::internal;
use crate::live::{LiveTask, Visible};
use crate::restored_parts::{restored_entry, restored_events};
use crate::service::ChanceryInner;
use crate::streams::StreamPermit;

/// The weight of the events that a reader is given at once, unless a single one weighs more. What a reader does not take is held
/// for it, so that it is little; a page of small events is still one write.
const BATCH_BYTES: u64 = 64 * 1024;

/// When a stream is over, beside the end of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Only the end of the task.
    Terminal,
    /// Also the end of the turn that began after this entry, or its first interrupted state. At an auth-required of an agent that
    /// goes on the stream stays open (1.0 §7.6.1).
    TurnOver(u64),
}

/// A run of events in order, never empty, or the reason why there are no more.
#[derive(Debug)]
pub enum NextEvents {
    /// The next events, in order.
    Events(Vec<Arc<LogEntry>>),
    /// The task ended, or the turn this stream was for.
    Done,
    /// The node is shutting down; the reader can resume after the last event it saw.
    ShuttingDown,
}

/// The events of one task for one reader: a cursor into the log of the task.
#[derive(Debug)]
pub struct Subscription {
    inner: Arc<ChanceryInner>,
    live: Arc<LiveTask>,
    visible: watch::Receiver<Visible>,
    /// The last entry the reader has.
    cursor: u64,
    /// The task as it was at the cursor is shown before anything else. It is made on demand: a waiting reader
    /// holds no snapshot of the task.
    snapshot: bool,
    until: Until,
    /// Wait for the agent's first word, because it may be a message instead of a task.
    undecided: bool,
    /// The reader takes references to large parts.
    references: bool,
    /// The reader's protocol marks the status that a stream ends with.
    marks_end: bool,
    /// The status that the stream ends with, once that is known.
    ends_with: Option<u64>,
    /// The auth-required that was handed out last, if the stream stayed open there and no other status followed.
    open_at: Option<Arc<LogEntry>>,
    /// Room for the events handed out last.
    room: Option<AnswerPermit>,
    permit: StreamPermit,
}

impl Subscription {
    pub(crate) fn new(inner: Arc<ChanceryInner>, live: Arc<LiveTask>, cursor: u64, until: Until, permit: StreamPermit) -> Self {
        let visible = live.watch();
        let (undecided, references, snapshot, marks_end) = (false, false, false, false);
        let (ends_with, open_at, room) = (None, None, None);
        Self { inner, live, visible, cursor, snapshot, until, undecided, references, marks_end, ends_with, open_at, room, permit }
    }

    /// For a protocol that marks the status a stream ends with: an auth-required after which the agent said nothing more is handed
    /// out once more at the end.
    pub(crate) fn marking_end(mut self, marks_end: bool) -> Self {
        self.marks_end = marks_end;
        self
    }

    /// For a stream that opens with the task.
    pub(crate) fn with_snapshot(mut self) -> Self {
        self.snapshot = true;
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

    /// Returns the id of the task.
    pub fn task_id(&self) -> &TaskId {
        &self.live.record.id
    }

    /// Returns the context of the task.
    pub fn context_id(&self) -> &ContextId {
        &self.live.record.context_id
    }

    /// Returns the name that the client gave the task, in the original protocol.
    pub fn client_task_id(&self) -> Option<&Arc<str>> {
        self.live.record.client_task_id.as_ref()
    }

    /// The task's artifacts in the order they were begun. Those of events already handed out are among them.
    pub fn artifacts(&self) -> Vec<ArtifactId> {
        self.live.artifact_ids()
    }

    /// The dialect of the call that made the task.
    pub fn dialect(&self) -> Dialect {
        self.live.record.dialect
    }

    /// The last event handed out.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Whether the stream goes on after this event, though its state would otherwise end it: the agent is auth-required and its turn
    /// has not ended.
    pub fn stays_open_at(&self, entry: &LogEntry) -> bool {
        matches!(self.until, Until::TurnOver(_)) && asks_for_authorization(&entry.event) && self.ends_with != Some(entry.seq)
    }

    /// Whether events come with references to large parts.
    pub fn takes_references(&self) -> bool {
        self.references
    }

    /// Room for the events handed out last, until their bytes are written. Nothing where they are few bytes.
    pub fn take_permit(&mut self) -> Option<AnswerPermit> {
        self.room.take()
    }

    /// Waits for events. A reader whose caller has too much unread waits until some of it is read. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Result<NextEvents, Error> {
        self.room = None;
        if self.snapshot {
            let first = Box::pin(self.read_snapshot()).await?;
            self.snapshot = false;
            return Ok(NextEvents::Events(vec![first]));
        }
        if self.live.is_unwatched() {
            Box::pin(self.inner.watch_from_now(&self.live)).await?;
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
                self.note_end(&events);
                return Ok(NextEvents::Events(events));
            }
            if visible.broken {
                return Err(self.live.broken());
            }
            if self.is_over(visible) {
                if let Some(last) = self.open_at.take().filter(|_| self.marks_end) {
                    self.ends_with = Some(last.seq);
                    return Ok(NextEvents::Events(vec![last]));
                }
                if self.live.has_webhooks() {
                    Box::pin(self.inner.first_attempts(&self.live)).await;
                }
                return Ok(NextEvents::Done);
            }
            tokio::select! {
                biased;
                changed = self.visible.changed() => {
                    if changed.is_err() {
                        return Ok(NextEvents::Done);
                    }
                }
                () = self.inner.shutdown.cancelled() => return Ok(NextEvents::ShuttingDown),
            }
        }
    }

    fn is_over(&self, visible: Visible) -> bool {
        match self.until {
            Until::Terminal => visible.terminal,
            Until::TurnOver(after) => visible.terminal || (visible.settled > after && !visible.authorizing),
        }
    }

    /// Notes which of the events the stream ends with, and where it stays open.
    fn note_end(&mut self, events: &[Arc<LogEntry>]) {
        let visible = *self.visible.borrow();
        self.ends_with = self.is_over(visible).then_some(visible.settled);
        let status = events.iter().rev().find(|entry| matches!(entry.event, TaskEvent::Status(_) | TaskEvent::Replied(_)));
        if let Some(entry) = status {
            self.open_at = self.stays_open_at(entry).then(|| Arc::clone(entry));
        }
    }

    /// From memory when the reader keeps up, from the log when it does not: so many events as make a batch, and at least one.
    async fn read(&mut self) -> Result<Vec<Arc<LogEntry>>, Error> {
        let limit = self.inner.limits.load().stream_buffer_events;
        let mut events = match self.live.tail_after(self.cursor, limit, BATCH_BYTES) {
            Some(events) => events,
            None => Box::pin(self.read_log(limit)).await?,
        };
        let bytes = weight_of(&events);
        if bytes > COUNTED_FROM && self.reserve(bytes).now_or_never().is_none() {
            // Nothing is held while others of this account are read: what is waited for is read again.
            drop(events);
            Box::pin(self.reserve(bytes)).await;
            events = Box::pin(self.read_again(limit)).await?;
        }
        if let Some(part_store) = self.inner.offloading_part_store().filter(|_| !self.references) {
            events = restored_events(part_store, &self.live.record.id, events).await?;
            if let Some(room) = &mut self.room {
                room.set(weight_of(&events));
            }
        }
        if let Some(last) = events.last() {
            self.cursor = last.seq;
        }
        if std::mem::take(&mut self.undecided) && events.iter().any(|entry| matches!(entry.event, TaskEvent::Replied(_))) {
            events.retain(|entry| !matches!(entry.event, TaskEvent::Created(_)));
        }
        Ok(events)
    }

    /// Of those that are behind, few read at the same time, and only while there is room for what they read.
    async fn read_log(&mut self, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        self.reserve(BATCH_BYTES).await;
        let _turn = self.inner.log_reads.acquire().await;
        let read = self.inner.store.entries_within(&self.live.record.id, self.cursor, limit, BATCH_BYTES).await;
        self.room = None;
        read.map_err(internal)
    }

    /// Reads the next events with the room that they have.
    async fn read_again(&mut self, limit: usize) -> Result<Vec<Arc<LogEntry>>, Error> {
        let events = match self.live.tail_after(self.cursor, limit, BATCH_BYTES) {
            Some(events) => events,
            None => {
                let read = self.inner.store.entries_within(&self.live.record.id, self.cursor, limit, BATCH_BYTES).await;
                read.map_err(internal)?
            }
        };
        if let Some(room) = &mut self.room {
            room.set(weight_of(&events));
        }
        Ok(events)
    }

    async fn read_snapshot(&mut self) -> Result<Arc<LogEntry>, Error> {
        let bytes = self.live.weight();
        if bytes > COUNTED_FROM {
            self.reserve(bytes).await;
        }
        let first = Arc::new(self.inner.snapshot(&self.live, self.cursor).await?);
        match self.inner.offloading_part_store().filter(|_| !self.references) {
            Some(part_store) => restored_entry(part_store, &self.live.record.id, &first, part_store.max_restored_bytes()).await,
            None => Ok(first),
        }
    }

    async fn reserve(&mut self, bytes: u64) {
        let limits = self.inner.limits.load_full();
        self.room = Some(self.inner.answering.wait(self.permit.account(), bytes, &limits).await);
    }
}

fn weight_of(events: &[Arc<LogEntry>]) -> u64 {
    events.iter().map(|entry| task_state::weight(&entry.event)).sum()
}

fn asks_for_authorization(event: &TaskEvent) -> bool {
    matches!(event, TaskEvent::Status(change) if change.status.state == TaskState::AuthRequired)
}
