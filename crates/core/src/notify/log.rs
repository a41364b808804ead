//! Reads a task's log for one lane: what goes out next, alone, put together with what follows, or as the whole task.

use std::collections::VecDeque;
use std::sync::Arc;

use chancery_protocol::{Task, TaskEvent, TaskId, Timestamp};
use chancery_rules::push::{Bounds, Cursor, Pending, Span, SpanKind, merge, next_span};
use chancery_rules::task_state;

use super::courier::WebhookPayload;
use crate::push::{PushEvents, PushProfile, Registration};
use crate::snapshots;
use crate::{LogEntry, Store, StoreError};

const PAGE: usize = 64;

/// What goes out next.
#[derive(Debug)]
pub(super) enum Pick {
    /// Nothing up to that entry is for this lane.
    Nothing {
        to: u64,
    },
    Send(Picked),
}

#[derive(Debug)]
pub(super) struct Picked {
    /// The first entry it stands for.
    pub(super) from: u64,
    pub(super) span: Span,
    pub(super) payload: WebhookPayload,
    /// When the first entry was recorded.
    pub(super) recorded: Timestamp,
}

#[derive(Debug)]
pub(super) struct Log<'a> {
    store: &'a dyn Store,
    task: TaskId,
    /// Entries from the head on, without gaps.
    window: VecDeque<Arc<LogEntry>>,
    /// The task as it is after that entry.
    folded: Option<(u64, Task)>,
}

impl<'a> Log<'a> {
    pub(super) fn new(store: &'a dyn Store, task: TaskId) -> Self {
        Self { store, task, window: VecDeque::new(), folded: None }
    }

    pub(super) async fn pick(
        &mut self,
        registration: &Registration,
        cursor: &Cursor,
        bounds: &Bounds,
    ) -> Result<Pick, StoreError> {
        self.fill(cursor, bounds).await?;
        // Only what was looked at can be passed over. What the log has no more is nobody's to tell.
        let nothing = Pick::Nothing { to: self.window.back().map_or(cursor.tail, |entry| entry.seq) };
        let span = match cursor.span {
            // Whoever had the lane and has gone may have sent the first entry that is for it, whatever stands at its head.
            Some(span) if span.kind == SpanKind::Single => {
                match self.meant(registration, cursor).find(|entry| entry.seq >= span.to) {
                    Some(entry) => Span::single(entry.seq),
                    None => return Ok(nothing),
                }
            }
            Some(span) => span,
            None => {
                let pending: Vec<&Arc<LogEntry>> = self.meant(registration, cursor).collect();
                let pending = pending.iter().map(|entry| Pending::of(entry.seq, &entry.event));
                match next_span(bounds, cursor.tail, pending) {
                    Some(span) => span,
                    None => return Ok(nothing),
                }
            }
        };
        // Entries before it are for others, and are passed with it.
        let first = self.meant(registration, cursor).next().or(self.window.front()).cloned();
        let Some(first) = first else { return Ok(nothing) };
        let Some(payload) = self.payload(registration, first.seq, span).await? else { return Ok(nothing) };
        Ok(Pick::Send(Picked { from: first.seq, span, payload, recorded: first.at }))
    }

    /// As many entries as have to be looked at.
    async fn fill(&mut self, cursor: &Cursor, bounds: &Bounds) -> Result<(), StoreError> {
        while self.window.front().is_some_and(|entry| entry.seq < cursor.head) {
            self.window.pop_front();
        }
        if self.window.front().is_some_and(|entry| entry.seq > cursor.head) {
            self.window.clear();
        }
        let mut bytes: u64 = self.window.iter().map(|entry| task_state::weight(&entry.event)).sum();
        loop {
            let last = self.window.back().map_or(cursor.head.saturating_sub(1), |entry| entry.seq);
            let enough = bytes > bounds.backlog_bytes || (bounds.preserve && !self.window.is_empty());
            let fixed = cursor.span.is_some_and(|span| span.kind == SpanKind::Merged && last < span.to);
            if last >= cursor.tail || (enough && !fixed) {
                return Ok(());
            }
            let left = usize::try_from(cursor.tail - last).unwrap_or(PAGE).min(PAGE);
            let page = self.store.entries(&self.task, last, left).await?;
            if page.is_empty() {
                return Ok(());
            }
            bytes += page.iter().map(|entry| task_state::weight(&entry.event)).sum::<u64>();
            self.window.extend(page);
        }
    }

    fn meant<'s>(&'s self, registration: &'s Registration, cursor: &Cursor) -> impl Iterator<Item = &'s Arc<LogEntry>> {
        let tail = cursor.tail;
        // Whoever is answered with a message is not told of the task that never was.
        let reply_only = self.window.iter().any(|entry| matches!(entry.event, TaskEvent::Replied(_)));
        self.window.iter().take_while(move |entry| entry.seq <= tail).filter(move |entry| match &entry.event {
            TaskEvent::Said(_) => false,
            TaskEvent::Created(_) => !reply_only,
            TaskEvent::Artifact(_) => registration.events == PushEvents::All,
            TaskEvent::Status(_) | TaskEvent::Replied(_) => true,
        })
    }

    async fn payload(
        &mut self,
        registration: &Registration,
        from: u64,
        span: Span,
    ) -> Result<Option<WebhookPayload>, StoreError> {
        let whole_tasks = matches!(registration.profile, PushProfile::V03Task | PushProfile::Original);
        match span.kind {
            SpanKind::Snapshot => self.whole(span.to).await.map(Some),
            _ if whole_tasks => self.whole(span.to).await.map(Some),
            SpanKind::Single => {
                let Some(entry) = self.window.iter().find(|entry| entry.seq == span.to).cloned() else { return Ok(None) };
                let settles = |event: &TaskEvent| match event {
                    TaskEvent::Status(change) => change.status.state.is_terminal() || change.status.state.is_interrupted(),
                    _ => false,
                };
                if registration.profile == PushProfile::NeuralPost && settles(&entry.event) {
                    return self.whole(span.to).await.map(Some);
                }
                Ok(Some(WebhookPayload::Event(entry)))
            }
            SpanKind::Merged => {
                let mut pieces = self.window.iter().filter(|entry| (from..=span.to).contains(&entry.seq));
                let chunks = pieces.clone().filter_map(|entry| match &entry.event {
                    TaskEvent::Artifact(chunk) => Some(chunk),
                    _ => None,
                });
                let at = pieces.next_back().map(|entry| entry.at).unwrap_or_default();
                match merge(chunks) {
                    Some(merged) => Ok(Some(WebhookPayload::Event(Arc::new(LogEntry {
                        seq: span.to,
                        at,
                        event: TaskEvent::Artifact(merged),
                    })))),
                    None => self.whole(span.to).await.map(Some),
                }
            }
        }
    }

    /// The task after `to`, or the message that came in its place.
    pub(super) async fn whole(&mut self, to: u64) -> Result<WebhookPayload, StoreError> {
        let (mut seq, mut task) = match self.folded.take() {
            Some((seq, task)) if seq <= to => (seq, Some(task)),
            _ => {
                let snapshot = snapshots::latest(self.store, &self.task, to, true).await;
                snapshot.map_or((0, None), |(seq, task)| (seq, Some(task)))
            }
        };
        while seq < to {
            let left = usize::try_from(to - seq).unwrap_or(PAGE).min(4 * PAGE);
            let page = self.store.entries(&self.task, seq, left).await?;
            let Some(last) = page.last() else { break };
            seq = last.seq;
            for entry in page {
                if matches!(entry.event, TaskEvent::Replied(_)) {
                    return Ok(WebhookPayload::Event(entry));
                }
                match (&mut task, &entry.event) {
                    (Some(task), event) => task_state::apply(task, event),
                    (None, TaskEvent::Created(created)) => task = Some(Task::clone(created)),
                    (None, _) => {}
                }
            }
        }
        let task = task.ok_or_else(|| StoreError::new("the log of a task with a webhook has no beginning"))?;
        let payload = WebhookPayload::Task(Arc::new(task.clone()));
        self.folded = Some((seq, task));
        Ok(payload)
    }
}
