//! A task that something is going on with: updates that wait for the store, and what is already visible.
//!
//! Two pictures of the task are kept. The *projected* head says which update may come next and runs ahead of the
//! store. The *visible* task changes only after the store has said that an update is durable.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chancery_protocol::{
    Error, ErrorKind, Message, MessageId, Metadata, Role, StatusChange, Task, TaskEvent, TaskState, TaskStatus, Timestamp,
    TraceId,
};
use chancery_rules::budget::Caps;
use chancery_rules::task_state::{self, Head, Refusal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::govern::allot::{Allotment, Closed, Stop};
use crate::govern::announce::announce;
use crate::govern::report::Report;
use crate::govern::trees::Node;
use crate::ids::fresh_id;
use crate::limits::TaskLimits;
use crate::open_tasks::OpenTasks;
use crate::{Decision, Link, LogEntry, Progress, Spend, Stored, TaskRecord};

#[derive(Debug)]
pub(crate) struct LiveTask {
    pub(crate) record: Arc<TaskRecord>,
    state: Mutex<State>,
    visible: watch::Sender<Visible>,
    list: Weak<OpenTasks>,
    /// Its place in its tree. Tasks from before anybody was governed have none.
    pub(crate) node: Option<Arc<Node>>,
}

impl Drop for LiveTask {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.forget(&self.record.id);
        }
    }
}

/// How far a task is, for those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Visible {
    pub(crate) seq: u64,
    /// The last entry that ended a turn: the task is then done or waits for its caller.
    pub(crate) settled: u64,
    pub(crate) terminal: bool,
    /// The agent answered with a message; there is no task to show.
    pub(crate) message_only: bool,
    /// The store refused; what is visible is still true, but nothing more will come from here.
    pub(crate) broken: bool,
}

#[derive(Debug)]
struct State {
    head: Head,
    projected: Progress,
    pending: Vec<Arc<LogEntry>>,
    /// Goes to the store with the next entries.
    link: Option<Link>,
    recording: bool,
    task: Arc<Task>,
    tail: VecDeque<Arc<LogEntry>>,
    turn: Option<CancellationToken>,
    /// What the running turn was given.
    allotment: Option<Box<Allotment>>,
    /// What the agent says the task cost so far.
    report: Report,
    /// Why the running turn is being stopped, beside being cancelled.
    stop: Option<Stop>,
    /// What the task cost, as it goes to the store with the next entries.
    spend: Option<Spend>,
    /// What all its turns that are over cost.
    spent: Option<Spend>,
    /// Goes to the store with the next entries.
    decision: Option<Arc<Decision>>,
    queued: VecDeque<Said>,
    /// Messages that were taken and have not begun their turn or joined the line yet.
    arriving: usize,
}

/// What follows a turn.
#[derive(Debug)]
pub(crate) enum AfterTurn {
    Nothing,
    /// The next message in line, whose turn has begun.
    Next(Said, CancellationToken),
    /// The task was cancelled and has not ended yet.
    Cancel,
}

/// A message with what came beside it.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) message: Arc<Message>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) trace: TraceId,
    pub(crate) extensions: Vec<String>,
    pub(crate) place: Place,
    /// Who was chosen to do the work.
    pub(crate) selected: Option<Arc<str>>,
    /// What its turn was given.
    pub(crate) allotment: Option<Box<Allotment>>,
    /// Hop tokens of other nodes that came with it.
    pub(crate) brought: Option<Arc<str>>,
}

/// What waits for the store.
#[derive(Debug)]
pub(crate) struct ToRecord {
    pub(crate) progress: Progress,
    pub(crate) entries: Vec<Arc<LogEntry>>,
    pub(crate) link: Option<Link>,
    pub(crate) spend: Option<Spend>,
    pub(crate) decision: Option<Arc<Decision>>,
}

/// Where a message stands: what of it can have happened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It makes a task in a conversation of its own.
    OpensAll,
    /// It makes a task in a conversation its caller names.
    OpensTask,
    GoesOn,
}

/// Why an update was not taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NotTaken {
    Refused(Refusal),
    TooManyEvents(u64),
    TooManyBytes(u64),
    Broken,
}

impl From<NotTaken> for Error {
    fn from(reason: NotTaken) -> Self {
        match reason {
            NotTaken::Refused(Refusal::Ended(state)) => {
                Error::new(ErrorKind::UnsupportedOperation, format!("the task has ended ({})", state.name()))
            }
            NotTaken::Refused(refusal) => Error::new(ErrorKind::InvalidAgentResponse, format!("{refusal:?}")),
            NotTaken::TooManyEvents(limit) => limit_reached("limits.task_events", limit),
            NotTaken::TooManyBytes(limit) => limit_reached("limits.task_bytes", limit),
            NotTaken::Broken => Error::new(ErrorKind::Internal, "the task's log could not be written"),
        }
    }
}

fn limit_reached(name: &'static str, limit: u64) -> Error {
    Error::new(ErrorKind::LimitReached, format!("the task has reached {name} = {limit}")).with_fact("limit", name)
}

impl State {
    fn begin(&mut self, mut said: Said) -> (Said, CancellationToken) {
        let token = CancellationToken::new();
        self.turn = Some(token.clone());
        self.stop = None;
        self.allotment = said.allotment.take();
        (said, token)
    }

    fn halt(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
        if let Some(turn) = &self.turn {
            turn.cancel();
        }
    }

    /// What the turn was given is settled and given back. Answers whether its caller wants to be told.
    fn settle(&mut self, at: Timestamp) -> Option<(Closed, bool)> {
        let allotment = self.allotment.take()?;
        let announced = allotment.announced;
        let closed = allotment.close(&self.report, at);
        self.spend = Some(closed.spend);
        self.spent = Some(closed.spend);
        Some((closed, announced))
    }

    /// An agent that was told to stop says that it was cancelled; the task's caller learns what for.
    fn told_why(&self, event: TaskEvent, record: &TaskRecord) -> TaskEvent {
        match (event, &self.stop) {
            (TaskEvent::Status(change), Some(stop)) if change.status.state == TaskState::Canceled => {
                let message = Message {
                    context_id: Some(record.context_id.clone()),
                    task_id: Some(record.id.clone()),
                    ..Message::text(Role::Agent, MessageId::new(fresh_id()), stop.reason())
                };
                let status = TaskStatus { state: TaskState::Failed, message: Some(Arc::new(message)), ..change.status };
                TaskEvent::Status(StatusChange { status, metadata: change.metadata })
            }
            (event, _) => event,
        }
    }
}

impl LiveTask {
    /// A task just made, whose creation is already durable.
    pub(crate) fn created(
        record: Arc<TaskRecord>,
        entry: Arc<LogEntry>,
        task: Arc<Task>,
        progress: Progress,
        node: Arc<Node>,
    ) -> Self {
        Self::new(record, task, progress, VecDeque::from([entry]), Some(node))
    }

    /// A task read back from the store.
    pub(crate) fn loaded(record: Arc<TaskRecord>, task: Arc<Task>, progress: Progress, node: Option<Arc<Node>>) -> Self {
        Self::new(record, task, progress, VecDeque::new(), node)
    }

    fn new(
        record: Arc<TaskRecord>,
        task: Arc<Task>,
        progress: Progress,
        tail: VecDeque<Arc<LogEntry>>,
        node: Option<Arc<Node>>,
    ) -> Self {
        let settled = if progress.state.is_terminal() || progress.state.is_interrupted() { progress.seq } else { 0 };
        let visible = Visible {
            seq: progress.seq,
            settled,
            terminal: progress.state.is_terminal(),
            message_only: progress.message_only,
            broken: false,
        };
        let state = State {
            head: Head::of(&task),
            projected: progress,
            pending: Vec::new(),
            link: None,
            recording: false,
            task,
            tail,
            turn: None,
            allotment: None,
            report: Report::default(),
            stop: None,
            spend: None,
            spent: None,
            decision: None,
            queued: VecDeque::new(),
            arriving: 0,
        };
        Self { record, state: Mutex::new(state), visible: watch::Sender::new(visible), list: Weak::new(), node }
    }

    /// Leaves that list when the last holder lets go.
    pub(crate) fn listed_in(mut self, list: &Arc<OpenTasks>) -> Self {
        self.list = Arc::downgrade(list);
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock; if it ever did, the state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task as everybody may see it.
    pub(crate) fn task(&self) -> Arc<Task> {
        Arc::clone(&self.lock().task)
    }

    pub(crate) fn task_and_seq(&self) -> (Arc<Task>, u64) {
        let state = self.lock();
        (Arc::clone(&state.task), self.visible.borrow().seq)
    }

    /// What the store says of the task, without asking it.
    pub(crate) fn stored(&self) -> Stored {
        let state = self.lock();
        let progress = Progress {
            state: state.task.status.state,
            status_at: state.task.status.timestamp.unwrap_or(state.projected.status_at),
            seq: self.visible.borrow().seq,
            bytes: state.projected.bytes,
            message_only: self.visible.borrow().message_only,
        };
        Stored { task: Arc::clone(&self.record), progress }
    }

    pub(crate) fn message_only(&self) -> bool {
        self.visible.borrow().message_only
    }

    pub(crate) fn visible(&self) -> Visible {
        *self.visible.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Visible> {
        self.visible.subscribe()
    }

    /// Takes a follow-up message, whose turn is to be begun next, if there is room for it in the line.
    pub(crate) fn take_message(
        &self,
        message: Arc<Message>,
        decision: Option<Arc<Decision>>,
        at: Timestamp,
        limits: &TaskLimits,
    ) -> Result<u64, Error> {
        let mut state = self.lock();
        let room = limits.task_messages_queued + usize::from(state.turn.is_none());
        if state.queued.len() + state.arriving >= room {
            return Err(limit_reached("limits.task_messages_queued", limits.task_messages_queued as u64));
        }
        let seq = self.take_into(&mut state, TaskEvent::Said(message), at, limits)?;
        state.arriving += 1;
        state.decision = decision;
        Ok(seq)
    }

    /// Takes an update if it may follow what was taken before. It is not visible yet.
    pub(crate) fn take(&self, event: TaskEvent, at: Timestamp, limits: &TaskLimits) -> Result<u64, NotTaken> {
        self.take_into(&mut self.lock(), event, at, limits)
    }

    fn take_into(&self, state: &mut State, event: TaskEvent, at: Timestamp, limits: &TaskLimits) -> Result<u64, NotTaken> {
        if self.visible.borrow().broken {
            return Err(NotTaken::Broken);
        }
        let event = state.told_why(event, &self.record);
        let bytes = state.projected.bytes + task_state::weight(&event);
        // An ending always fits: a task at its limit must still be able to say how it ended.
        let ending = matches!(&event, TaskEvent::Status(change) if change.status.state.is_terminal());
        if !ending && state.projected.seq >= limits.task_events {
            return Err(NotTaken::TooManyEvents(limits.task_events));
        }
        if !ending && bytes > limits.task_bytes {
            return Err(NotTaken::TooManyBytes(limits.task_bytes));
        }
        state.head.advance(&event).map_err(NotTaken::Refused)?;
        let event = self.account(state, event, at);
        let seq = state.projected.seq + 1;
        state.projected.seq = seq;
        state.projected.bytes = bytes;
        state.projected.state = state.head.state;
        match &event {
            TaskEvent::Status(_) => state.projected.status_at = at,
            TaskEvent::Replied(_) => {
                state.projected.status_at = at;
                state.projected.message_only = true;
            }
            _ => {}
        }
        state.pending.push(Arc::new(LogEntry { seq, at, event }));
        Ok(seq)
    }

    /// What an update says of cost is weighed; one that ends the task settles what its turn was given.
    fn account(&self, state: &mut State, event: TaskEvent, at: Timestamp) -> TaskEvent {
        if let Some(report) = Report::of(&event) {
            state.report = state.report.and(report);
            if !state.head.state.is_terminal()
                && state.stop.is_none()
                && let Some(stop) = state.allotment.as_mut().and_then(|allotment| allotment.weigh(&state.report, at))
            {
                tracing::info!(task = %self.record.id, reason = stop.reason(), "a task is stopped");
                state.halt(stop);
            }
        }
        if !state.head.state.is_terminal() {
            return event;
        }
        let closed = state.settle(at);
        if let Some(node) = &self.node {
            node.end();
        }
        match (closed, &self.node) {
            (Some((closed, true)), Some(node)) => announce(event, node, &closed, &state.report),
            _ => event,
        }
    }

    /// A turn has ended and its task has not: what the turn cost is settled now.
    pub(crate) fn settle_turn(&self, at: Timestamp) -> Option<Spend> {
        let mut state = self.lock();
        state.settle(at)?;
        state.stop = None;
        state.spend.take()
    }

    /// What was set aside for the running turn, where there is a cap on it.
    pub(crate) fn granted(&self, at: Timestamp) -> Caps {
        self.lock().allotment.as_ref().map_or(Caps::NONE, |allotment| allotment.granted(at))
    }

    /// What the turns of the task that are over cost, as far as this process has seen them.
    pub(crate) fn spent(&self) -> Option<Spend> {
        self.lock().spent
    }

    /// What a turn had been given that another process began and this one ends.
    pub(crate) fn give(&self, allotment: Box<Allotment>) {
        self.lock().allotment = Some(allotment);
    }

    /// Stops the running turn for a reason its caller will read.
    pub(crate) fn halt(&self, stop: Stop) {
        self.lock().halt(stop);
    }

    /// Why the turn is being stopped.
    pub(crate) fn stopped_because(&self) -> Option<String> {
        self.lock().stop.as_ref().map(Stop::reason)
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.lock().allotment.as_ref().and_then(|allotment| allotment.time_limit())
    }

    /// Notes with whom the task goes on. It is kept together with the next update.
    pub(crate) fn set_link(&self, link: Link) {
        if let Some(node) = &self.node {
            node.set_link(&link);
        }
        self.lock().link = Some(link);
    }

    pub(crate) fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// Makes the calling flow the one that records, if there is something to record and nobody does.
    pub(crate) fn start_recording(&self) -> bool {
        let mut state = self.lock();
        if state.recording || state.pending.is_empty() {
            return false;
        }
        state.recording = true;
        true
    }

    /// What waits for the store, or the end of the recording.
    pub(crate) fn next_to_record(&self) -> Option<ToRecord> {
        let mut state = self.lock();
        if state.pending.is_empty() {
            state.recording = false;
            return None;
        }
        Some(ToRecord {
            progress: state.projected,
            entries: std::mem::take(&mut state.pending),
            link: state.link.take(),
            spend: state.spend.take(),
            decision: state.decision.take(),
        })
    }

    /// Shows entries that the store has made durable.
    pub(crate) fn show(&self, entries: &[Arc<LogEntry>], buffer: usize) -> Visible {
        let mut state = self.lock();
        let mut visible = *self.visible.borrow();
        let task = Arc::make_mut(&mut state.task);
        for entry in entries {
            task_state::apply(task, &entry.event);
            visible.seq = entry.seq;
            visible.message_only |= matches!(entry.event, TaskEvent::Replied(_));
            if let TaskEvent::Status(_) | TaskEvent::Replied(_) = entry.event {
                visible.terminal = task.status.state.is_terminal();
                if visible.terminal || task.status.state.is_interrupted() {
                    visible.settled = entry.seq;
                }
            }
        }
        state.tail.extend(entries.iter().cloned());
        let excess = state.tail.len().saturating_sub(buffer);
        state.tail.drain(..excess);
        drop(state);
        self.visible.send_replace(visible);
        visible
    }

    /// The store refused: nobody waits for what will not come.
    pub(crate) fn break_off(&self) {
        let mut state = self.lock();
        state.pending.clear();
        state.recording = false;
        if let Some(turn) = &state.turn {
            turn.cancel();
        }
        drop(state);
        self.visible.send_modify(|visible| visible.broken = true);
    }

    /// Entries after `after` that are still in memory. `None` when some of them are only in the store.
    pub(crate) fn tail_after(&self, after: u64, limit: usize) -> Option<Vec<Arc<LogEntry>>> {
        let state = self.lock();
        let visible = self.visible.borrow().seq;
        if after >= visible {
            return Some(Vec::new());
        }
        let first = state.tail.front()?.seq;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(state.tail.iter().skip(skip).take(limit).cloned().collect())
    }

    /// Begins the turn of a follow-up message that was taken.
    pub(crate) fn begin_next_turn(&self, said: Said) -> Option<(Said, CancellationToken)> {
        self.lock().arriving -= 1;
        self.begin_turn(said)
    }

    /// Begins a turn, or puts the message in line when one is running.
    pub(crate) fn begin_turn(&self, said: Said) -> Option<(Said, CancellationToken)> {
        let mut state = self.lock();
        if state.turn.is_some() {
            state.queued.push_back(said);
            return None;
        }
        Some(state.begin(said))
    }

    /// Ends a turn. A cancel that came too late for the turn to see it is seen here, under the same lock that took it.
    pub(crate) fn end_turn(&self) -> AfterTurn {
        let mut state = self.lock();
        let cancelled = state.turn.take().is_some_and(|turn| turn.is_cancelled());
        if state.head.state.is_terminal() || cancelled {
            state.queued.clear();
            return if state.head.state.is_terminal() { AfterTurn::Nothing } else { AfterTurn::Cancel };
        }
        let Some(said) = state.queued.pop_front() else { return AfterTurn::Nothing };
        let (said, token) = state.begin(said);
        AfterTurn::Next(said, token)
    }

    /// Asks the running turn to stop. `false` when none is running.
    pub(crate) fn cancel_turn(&self) -> bool {
        let state = self.lock();
        state.turn.as_ref().map(CancellationToken::cancel).is_some()
    }
}
