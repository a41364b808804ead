//! A task that something is going on with: updates that wait for the store, and what is already visible.
//!
//! Two pictures of the task are kept. The *projected* head says which update may come next and runs ahead of the
//! store. The *visible* task changes only after the store has said that an update is durable.

mod account;
mod body;
mod holder;
mod not_taken;
mod tail;
mod turns;
mod visible;
mod withdraw;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use chancery_protocol::{Error, Message, Task, TaskEvent, Timestamp};
use chancery_rules::budget::Amount;
use chancery_rules::task_state::{self, TaskHead};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::account::Admission;
use self::body::TaskBody;
pub(crate) use self::not_taken::NotTaken;
use self::not_taken::limit_reached;
use self::tail::Tail;
pub(crate) use self::turns::{AfterTurn, QueuedTurn, TurnOrigin};
pub(crate) use self::visible::{ShownTask, Visible};
use self::withdraw::Withdrawal;
use crate::cluster::received::AnswerToMessage;
use crate::govern::allot::{Allotment, TurnStop};
use crate::govern::node::TreeNode;
use crate::govern::report::CostReport;
use crate::limits::TaskLimits;
use crate::memory_looks::MemoryLooks;
use crate::open_tasks::OpenTasks;
use crate::{CallAnswer, Decision, Link, LogEntry, Progress, RecordNote, Spend, Stored, TaskRecord};

#[derive(Debug)]
pub(crate) struct LiveTask {
    pub(crate) record: Arc<TaskRecord>,
    state: Mutex<State>,
    list: Weak<OpenTasks>,
    /// Its place in its tree. Tasks from before governance have none.
    node: OnceLock<Arc<TreeNode>>,
    /// Whether webhooks receive its events.
    told: AtomicBool,
    /// The entry of its last snapshot, or 0.
    pub(crate) snapshot_seq: AtomicU64,
    /// Another node may work on it, and this one has not asked for wake-ups about it yet.
    unwatched: AtomicBool,
}

impl Drop for LiveTask {
    fn drop(&mut self) {
        if let Some(list) = self.list.upgrade() {
            list.forget(&self.record.id);
        }
    }
}

#[derive(Debug)]
struct State {
    visible: Visible,
    /// Wakes readers. Most tasks end before anyone waits for them.
    watchers: Option<watch::Sender<Visible>>,
    head: TaskHead,
    projected: Progress,
    pending: Vec<Arc<LogEntry>>,
    /// Goes to the store with the next entries.
    link: Option<Link>,
    /// The agent did not take the first message, and the task was taken back.
    refusal: Option<Error>,
    withdrawal: Withdrawal,
    recording: bool,
    task: Arc<Task>,
    body: TaskBody,
    tail: Tail,
    turn: Option<CancellationToken>,
    /// The last entry that ended a turn before the running one.
    settled_before: u64,
    /// The entry that the running turn ends with, if its runner has said so.
    last_word: Option<u64>,
    /// The agent's own error to the last cancel, if it refused.
    cancel_refusal: Option<Error>,
    /// The agent answered a cancel with the task as it is.
    cancel_answered: bool,
    /// What the running turn was given.
    allotment: Option<Box<Allotment>>,
    /// What the agent says the task cost so far.
    report: CostReport,
    /// Why the running turn is being stopped, beside being cancelled.
    stop: Option<TurnStop>,
    /// Why it is unknown whether the agent stopped when the task was cancelled.
    unconfirmed: Option<String>,
    /// What the task cost, as it goes to the store with the next entries.
    spend: Option<Spend>,
    /// What all its turns that are over cost.
    spent: Option<Spend>,
    /// Goes to the store with the next entries.
    decision: Option<Arc<Decision>>,
    /// For the record, with the next entries.
    notes: Vec<RecordNote>,
    /// The answer to a message that another node forwarded. Goes to the store with the message.
    answers: Option<CallAnswer>,
    /// What its agent looked at in shared memory.
    memory_looks: MemoryLooks,
    /// What is held for the messages in `arriving`.
    promised: Amount,
    queued: VecDeque<QueuedTurn>,
    /// Messages that were taken and have not begun their turn or joined the line yet.
    arriving: usize,
    /// Another node may work on it: its entries are read from the store.
    following: bool,
    /// Calls that need the task to be held by this node until they are done.
    holds: usize,
}

/// What waits for the store.
#[derive(Debug)]
pub(crate) struct ToRecord {
    pub(crate) progress: Progress,
    pub(crate) entries: Vec<Arc<LogEntry>>,
    pub(crate) link: Option<Link>,
    pub(crate) spend: Option<Spend>,
    pub(crate) decision: Option<Arc<Decision>>,
    pub(crate) notes: Vec<RecordNote>,
    pub(crate) answers: Option<CallAnswer>,
}

impl LiveTask {
    /// A task just made, whose creation is already durable.
    pub(crate) fn created(
        record: Arc<TaskRecord>,
        entry: Arc<LogEntry>,
        task: Arc<Task>,
        progress: Progress,
        node: Arc<TreeNode>,
    ) -> Self {
        Self::new(record, task, progress, Tail::of(entry), Some(node))
    }

    /// A task read back from the store.
    pub(crate) fn loaded(record: Arc<TaskRecord>, task: Arc<Task>, progress: Progress, node: Option<Arc<TreeNode>>) -> Self {
        Self::new(record, task, progress, Tail::default(), node)
    }

    fn new(record: Arc<TaskRecord>, task: Arc<Task>, progress: Progress, tail: Tail, node: Option<Arc<TreeNode>>) -> Self {
        let settled = if progress.state.is_terminal() || progress.state.is_interrupted() { progress.seq } else { 0 };
        let visible = Visible {
            seq: progress.seq,
            settled,
            terminal: progress.state.is_terminal(),
            message_only: progress.message_only,
            ..Visible::default()
        };
        let state = State {
            visible,
            watchers: None,
            head: TaskHead::of(&task),
            projected: progress,
            pending: Vec::new(),
            link: None,
            refusal: None,
            withdrawal: Withdrawal::default(),
            recording: false,
            task,
            body: TaskBody::Here,
            tail,
            turn: None,
            settled_before: settled,
            last_word: None,
            cancel_refusal: None,
            cancel_answered: false,
            allotment: None,
            report: CostReport::default(),
            stop: None,
            unconfirmed: None,
            spend: None,
            spent: None,
            decision: None,
            notes: Vec::new(),
            answers: None,
            memory_looks: MemoryLooks::default(),
            promised: Amount::default(),
            queued: VecDeque::new(),
            arriving: 0,
            following: false,
            holds: 0,
        };
        Self {
            record,
            state: Mutex::new(state),
            list: Weak::new(),
            node: node.map(OnceLock::from).unwrap_or_default(),
            told: false.into(),
            snapshot_seq: 0.into(),
            unwatched: false.into(),
        }
    }

    /// Leaves that list when the last holder lets go.
    pub(crate) fn listed_in(mut self, list: &Arc<OpenTasks>) -> Self {
        self.list = Arc::downgrade(list);
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).tail.count_in(list.tail_bytes());
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock; if it ever did, the state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store says of the task, without asking it.
    pub(crate) fn stored(&self) -> Stored {
        let state = self.lock();
        let progress = Progress {
            state: state.task.status.state,
            status_at: state.task.status.timestamp.unwrap_or(state.projected.status_at),
            seq: state.visible.seq,
            bytes: state.projected.bytes,
            message_only: state.visible.message_only,
        };
        Stored { task: Arc::clone(&self.record), progress }
    }

    /// Takes a follow-up message, whose turn is to be begun next, if there is room for it in the line. If another node forwarded it,
    /// the answer goes to the store with it.
    pub(crate) fn take_message(
        &self,
        message: Arc<Message>,
        admitted: Option<Admission>,
        at: Timestamp,
        limits: &TaskLimits,
        answer: Option<&dyn AnswerToMessage>,
    ) -> Result<u64, Error> {
        let mut state = self.lock();
        let room = limits.task_messages_queued + usize::from(state.turn.is_none());
        if state.queued.len() + state.arriving >= room {
            return Err(limit_reached("limits.task_messages_queued", limits.task_messages_queued as u64));
        }
        let seq = self.take_into(&mut state, TaskEvent::Said(message), at, limits)?;
        state.arriving += 1;
        state.answers = answer.map(|answer| answer.of(seq)).or(state.answers.take());
        if let Some(admission) = admitted {
            state.promise(admission);
        }
        Ok(seq)
    }

    /// Takes an update if it may follow what was taken before. It is not visible yet.
    pub(crate) fn take(&self, event: TaskEvent, at: Timestamp, limits: &TaskLimits) -> Result<u64, NotTaken> {
        self.take_into(&mut self.lock(), event, at, limits)
    }

    fn take_into(&self, state: &mut State, event: TaskEvent, at: Timestamp, limits: &TaskLimits) -> Result<u64, NotTaken> {
        if state.visible.broken || state.following {
            return Err(NotTaken::Broken);
        }
        let event = state.with_stop_reason(event, &self.record);
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

    /// Notes with whom the task goes on. It is kept together with the next update.
    pub(crate) fn set_link(&self, link: Link) {
        if let Some(node) = self.node() {
            node.set_link(&link);
        }
        self.lock().link = Some(link);
    }

    pub(crate) fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// Makes the calling flow the recorder, if there is something to record and no other flow records.
    pub(crate) fn start_recording(&self) -> bool {
        let mut state = self.lock();
        if state.recording || (state.pending.is_empty() && state.spend.is_none()) {
            return false;
        }
        state.recording = true;
        true
    }

    /// What waits for the store, or the end of the recording.
    pub(crate) fn next_to_record(&self) -> Option<ToRecord> {
        let mut state = self.lock();
        if state.pending.is_empty() && state.spend.is_none() {
            state.recording = false;
            return None;
        }
        Some(ToRecord {
            progress: state.projected,
            entries: std::mem::take(&mut state.pending),
            link: state.link.take(),
            spend: state.spend.take(),
            decision: state.decision.take(),
            notes: std::mem::take(&mut state.notes),
            answers: state.answers.take(),
        })
    }

    /// Notes that the task has webhooks.
    pub(crate) fn mark_webhooks(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_webhooks(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}
