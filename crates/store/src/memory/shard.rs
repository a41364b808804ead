//! A part of the tasks, with those that may be forgotten in the order in which they will be.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chancery_core::{Append, Governed, Link, LogEntry, Progress, StoreError, Stored, TaskRecord, TaskSnapshot};
use chancery_protocol::{TaskId, Timestamp};
use foldhash::fast::RandomState;

use super::index::Made;
use crate::numbering;

/// The memory of a log entry besides its content.
const ENTRY_BYTES: u64 = size_of::<LogEntry>() as u64 + 128;
/// The memory of a task besides its log: its row, its names, its places in the indexes, and what governance holds of it.
const TASK_BYTES: u64 = 2048;

#[derive(Debug)]
pub(super) struct StoredTask {
    pub(super) task: Arc<TaskRecord>,
    pub(super) progress: Progress,
    pub(super) made: Made,
    /// The idempotency key it was made under, to free it when the task is taken back.
    pub(super) key: Option<Arc<str>>,
    pub(super) link: Option<Link>,
    pub(super) governed: Option<Box<Governed>>,
    /// How many webhooks receive its events.
    pub(super) lanes: u32,
    pub(super) snapshot: Option<TaskSnapshot>,
    /// Entry `n` is at `n - 1`.
    log: Vec<Arc<LogEntry>>,
}

impl StoredTask {
    /// The memory that the task uses: the content of its log, and an estimate of the structures around it.
    pub(super) fn held_bytes(&self) -> u64 {
        let entries = self.progress.seq.saturating_mul(ENTRY_BYTES);
        self.progress.bytes.saturating_add(entries).saturating_add(TASK_BYTES)
    }

    pub(super) fn stored(&self) -> Stored {
        Stored { task: Arc::clone(&self.task), progress: self.progress }
    }

    pub(super) fn keep_snapshot(&mut self, snapshot: TaskSnapshot) {
        let is_newer = self.snapshot.as_ref().is_none_or(|kept| kept.seq < snapshot.seq);
        if is_newer && snapshot.seq <= self.progress.seq {
            self.snapshot = Some(snapshot);
        }
    }

    pub(super) fn entries(&self, after: u64, limit: usize) -> Vec<Arc<LogEntry>> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        self.log.iter().skip(after).take(limit).cloned().collect()
    }
}

/// Place of a finished task in the order of forgetting: oldest status first, ties by id.
pub(super) type Departure = (Timestamp, TaskId);

#[derive(Debug, Default)]
pub(super) struct Shard {
    tasks: HashMap<TaskId, StoredTask, RandomState>,
    /// Sorted. Time moves on, so a new one nearly always belongs at the end.
    finished: VecDeque<Departure>,
    /// The memory of the finished tasks.
    finished_bytes: u64,
}

impl Shard {
    pub(super) fn get(&self, id: &str) -> Option<&StoredTask> {
        self.tasks.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut StoredTask> {
        self.tasks.get_mut(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StoredTask> {
        self.tasks.values()
    }

    pub(super) fn make(&mut self, append: Append, made: Made) -> Result<&mut StoredTask, StoreError> {
        let Append {
            task,
            creation,
            progress,
            entries,
            link,
            mut governed,
            spend,
            decision: _,
            register: _,
            notes: _,
            answers: _,
        } = append;
        let id = task.id.clone();
        if self.tasks.contains_key(&id) {
            return Err(numbering::made_twice(&task));
        }
        if let (Some(governed), Some(spend)) = (&mut governed, spend) {
            governed.spend = spend;
        }
        let key = creation.and_then(|creation| creation.idempotency).map(|idempotency| idempotency.key);
        let kept = StoredTask { task, progress, made, key, log: entries, link, governed, lanes: 0, snapshot: None };
        if numbering::is_finished(&progress) {
            self.enqueue((progress.status_at, id.clone()));
            self.finished_bytes += kept.held_bytes();
        }
        Ok(self.tasks.entry(id).or_insert(kept))
    }

    pub(super) fn extend(&mut self, append: Append, follows: u64) -> Result<&mut StoredTask, StoreError> {
        let id = &append.task.id;
        let Some(kept) = self.tasks.get_mut(id) else {
            return Err(numbering::unknown(&append.task));
        };
        if kept.progress.seq != follows {
            return Err(numbering::out_of_turn(&append.task, kept.progress.seq, follows));
        }
        let bytes_before = kept.held_bytes();
        let before = std::mem::replace(&mut kept.progress, append.progress);
        let bytes = kept.held_bytes();
        kept.log.extend(append.entries);
        kept.link = append.link.or(kept.link.take());

        if numbering::is_finished(&before) {
            self.dequeue(&(before.status_at, id.clone()), bytes_before);
        }
        if numbering::is_finished(&append.progress) {
            self.enqueue((append.progress.status_at, id.clone()));
            self.finished_bytes += bytes;
        }
        self.tasks.get_mut(id).ok_or_else(|| numbering::unknown(&append.task))
    }

    pub(super) fn finished(&self) -> &VecDeque<Departure> {
        &self.finished
    }

    /// The memory of the finished tasks.
    pub(super) fn finished_bytes(&self) -> u64 {
        self.finished_bytes
    }

    /// Takes out a finished task by its place in the order of forgetting.
    pub(super) fn forget(&mut self, place: usize) -> Option<StoredTask> {
        let gone = self.finished.remove(place).and_then(|(_, id)| self.tasks.remove(&id))?;
        self.finished_bytes -= gone.held_bytes();
        Some(gone)
    }

    /// Takes out a task whose log holds nothing but its beginning.
    pub(super) fn withdraw(&mut self, id: &TaskId) -> Option<StoredTask> {
        let kept = self.tasks.get(id).filter(|kept| kept.progress.seq == 1)?;
        let (progress, bytes) = (kept.progress, kept.held_bytes());
        if numbering::is_finished(&progress) {
            self.dequeue(&(progress.status_at, id.clone()), bytes);
        }
        self.tasks.remove(id)
    }

    fn enqueue(&mut self, departure: Departure) {
        match self.finished.back() {
            Some(last) if *last > departure => {
                let place = self.finished.partition_point(|other| *other < departure);
                self.finished.insert(place, departure);
            }
            _ => self.finished.push_back(departure),
        }
    }

    /// Takes a task of this size out of the order of forgetting.
    fn dequeue(&mut self, departure: &Departure, bytes: u64) {
        if let Ok(place) = self.finished.binary_search(departure) {
            self.finished.remove(place);
            self.finished_bytes -= bytes;
        }
    }
}
