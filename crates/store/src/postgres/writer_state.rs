//! What the writer knows beside its session: the end of the record, open tasks, counts, and what a transaction leaves for its end.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_core::{Chain, RecordLines};
use chancery_protocol::{TaskId, Timestamp};
use deadpool_postgres::ClientWrapper;
use foldhash::fast::RandomState;

use super::cluster::{WakeupNews, WakeupOutbox};
use super::columns;
use super::ended_counts::EndedChanges;
use super::fault::PostgresFault;
use super::fence::WriterIdentity;
use super::sweep::SweepPosition;

/// An open task without webhooks that was made or continued here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenTaskHint {
    pub(super) num: i64,
    pub(super) seq: u64,
}

/// The number of open tasks at which all of them are forgotten and collected again.
const MOST_OPEN_TASKS: usize = 100_000;

/// How many task numbers a value of the sequence stands for.
const NUMBERS_IN_BLOCK: i64 = 1000;

/// The writer's memory.
#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) identity: WriterIdentity,
    pub(super) session: Option<Arc<ClientWrapper>>,
    /// The end of the record, if one is kept.
    pub(super) chain: Option<Box<dyn Chain>>,
    /// What the writes of the transaction leave for the record, in their order, until they are linked together.
    lines: RecordLines,
    pub(super) ended: EndedChanges,
    /// A hint that saves a look at the task's row. Each use checks the row again, in the statement that writes it.
    open_tasks: HashMap<TaskId, OpenTaskHint, RandomState>,
    /// How many nonces are kept, as of the transaction that runs.
    pub(super) nonces: u64,
    pub(super) sweep: SweepPosition,
    /// The next number for a task, and the first that is not this node's.
    numbers: (i64, i64),
    /// What the transaction that runs has for other nodes.
    pub(super) news: WakeupNews,
    /// Where that goes once the transaction is durable, in a cluster.
    pub(super) wakeups: Option<Arc<WakeupOutbox>>,
    /// Whether this node has left its cluster: it makes and takes no task any more.
    pub(super) has_left: bool,
}

impl WriterState {
    pub(super) fn new(identity: WriterIdentity, chain: Option<Box<dyn Chain>>, nonces: u64) -> Self {
        Self {
            identity,
            session: None,
            chain,
            lines: RecordLines::default(),
            ended: EndedChanges::default(),
            open_tasks: HashMap::default(),
            nonces,
            sweep: SweepPosition::default(),
            numbers: (0, 0),
            news: WakeupNews::default(),
            wakeups: None,
            has_left: false,
        }
    }

    pub(super) fn session(&self) -> Result<Arc<ClientWrapper>, PostgresFault> {
        self.session.clone().ok_or_else(|| PostgresFault::away("the writer has no session"))
    }

    /// In the order of the commits: only writes that were made come here.
    pub(super) fn add_to_record(&mut self, lines: &RecordLines) {
        self.lines.0.extend_from_slice(&lines.0);
    }

    /// Links what was added to the end of the record.
    pub(super) fn link(&mut self) {
        if !self.lines.0.is_empty() {
            self.chain.iter_mut().for_each(|chain| chain.add(&self.lines));
            self.lines.0.clear();
        }
    }

    /// Signs the record up to here, if one is kept.
    pub(super) fn sign(&mut self, at: Timestamp) {
        self.link();
        self.chain.iter_mut().for_each(|chain| chain.sign(at));
    }

    /// The transaction is durable.
    pub(super) fn committed(&mut self) {
        self.chain.iter_mut().for_each(|chain| chain.written());
        self.ended.forget();
        self.lines.0.clear();
        let news = std::mem::take(&mut self.news);
        if let Some(wakeups) = &self.wakeups {
            wakeups.add(news);
        }
    }

    /// The transaction failed: everything is what it was before it.
    pub(super) fn undone(&mut self, nonces_before: u64) {
        self.chain.iter_mut().for_each(|chain| chain.undo());
        self.ended.forget();
        self.lines.0.clear();
        self.news = WakeupNews::default();
        self.nonces = nonces_before;
    }

    pub(super) fn open_task(&self, task: &TaskId) -> Option<OpenTaskHint> {
        self.open_tasks.get(task).copied()
    }

    /// Keeps a hint, or drops it.
    pub(super) fn set_open(&mut self, task: &TaskId, open: Option<OpenTaskHint>) {
        let Some(open) = open else {
            self.open_tasks.remove(task);
            return;
        };
        if self.open_tasks.len() >= MOST_OPEN_TASKS {
            self.open_tasks.clear();
        }
        self.open_tasks.insert(task.clone(), open);
    }

    /// Sees to it that so many numbers for tasks are at hand. Numbers of a transaction that fails are not used again.
    pub(super) async fn reserve_numbers(&mut self, count: usize) -> Result<(), PostgresFault> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.numbers.1 - self.numbers.0 < count {
            let first = columns::number(&*self.session()?, "SELECT nextval('task_numbers')", &[]).await?;
            self.numbers = (first, first + NUMBERS_IN_BLOCK);
        }
        Ok(())
    }

    pub(super) fn next_number(&mut self) -> i64 {
        let number = self.numbers.0;
        self.numbers.0 += 1;
        number
    }
}
