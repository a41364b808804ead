//! The lifecycle of tasks as a state machine: what may follow what for one task id, and which repetition is harmless.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::fingerprint::{Fingerprint, Fingerprints};
use super::{A2aMessage, SwpEventMessage, SwpTaskMessage, TaskResult};
use crate::{FrameReason, Reject, SwpLimits};

/// Which end of the channel said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    Us,
    Peer,
}

/// Who may report on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speakers {
    /// Every peer that knows its id: all that the profile itself requires.
    #[default]
    Anyone,
    /// Only the party that did not give the task.
    TheOtherParty,
}

/// What an accepted message did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEffect {
    /// A handshake, which changes nothing.
    Greeted,
    /// A new task.
    Started,
    /// A task that is known already, word for word. `state` is where it is; nothing changes.
    AlreadyStarted { state: SwpTaskState },
    /// News, the so-manieth of its task, counted from 1.
    Progressed { event: u64 },
    /// The result.
    Closed,
    /// The result once more, word for word. Nothing changes.
    AlreadyClosed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwpTaskState {
    Open,
    Closed,
}

/// The tasks of one scope, in which task ids are unique: a tenant's caller, say. Messages are taken in the order they arrive.
///
/// Open tasks are never forgotten. The oldest closed task is forgotten once there are too many. A later
/// report on it then meets an unknown task, and its id may be used again.
#[derive(Debug)]
pub struct Lifecycle {
    max_open: usize,
    max_closed: usize,
    speakers: Speakers,
    tasks: HashMap<Arc<[u8]>, Record>,
    /// Closed tasks in the order they closed.
    closed: VecDeque<Arc<[u8]>>,
    fingerprints: Fingerprints,
}

#[derive(Debug)]
struct Record {
    given_by: Party,
    content: Fingerprint,
    events: u64,
    result: Option<Fingerprint>,
}

impl Record {
    fn state(&self) -> SwpTaskState {
        if self.result.is_some() { SwpTaskState::Closed } else { SwpTaskState::Open }
    }
}

impl Lifecycle {
    pub fn new(limits: &SwpLimits, speakers: Speakers) -> Self {
        Self {
            max_open: limits.max_open_tasks as usize,
            max_closed: limits.max_closed_tasks as usize,
            speakers,
            tasks: HashMap::new(),
            closed: VecDeque::new(),
            fingerprints: Fingerprints::default(),
        }
    }

    /// Takes what `from` said, or refuses it and changes nothing.
    pub fn accept(&mut self, from: Party, message: &A2aMessage) -> Result<MessageEffect, Reject> {
        match message {
            A2aMessage::Handshake(_) => Ok(MessageEffect::Greeted),
            A2aMessage::Task(task) => self.start(from, task),
            A2aMessage::Event(event) => self.progress(from, event),
            A2aMessage::Result(result) => self.close(from, result),
        }
    }

    pub fn state(&self, task_id: &[u8]) -> Option<SwpTaskState> {
        self.tasks.get(task_id).map(Record::state)
    }

    /// How many tasks have no result yet.
    pub fn open(&self) -> usize {
        self.tasks.len() - self.closed.len()
    }

    /// Forgets a task that gets no more reports here, so that it takes no place. If the task is sent again,
    /// it starts again.
    pub fn abandon(&mut self, task_id: &[u8]) {
        if self.state(task_id) == Some(SwpTaskState::Open) {
            self.tasks.remove(task_id);
        }
    }

    fn start(&mut self, from: Party, task: &SwpTaskMessage) -> Result<MessageEffect, Reject> {
        let content = self.fingerprints.of((&task.kind, &task.input));
        if let Some(known) = self.tasks.get(&task.task_id[..]) {
            let anothers = self.speakers == Speakers::TheOtherParty && known.given_by != from;
            if anothers || known.content != content {
                return Err(FrameReason::TaskConflict.into());
            }
            return Ok(MessageEffect::AlreadyStarted { state: known.state() });
        }
        if self.open() >= self.max_open {
            return Err(Reject::beyond(FrameReason::TooManyOpenTasks, self.open() as u64 + 1, self.max_open as u64));
        }
        // A copy, because a slice would keep the whole frame in memory.
        let id: Arc<[u8]> = task.task_id[..].into();
        self.tasks.insert(id, Record { given_by: from, content, events: 0, result: None });
        Ok(MessageEffect::Started)
    }

    fn progress(&mut self, from: Party, event: &SwpEventMessage) -> Result<MessageEffect, Reject> {
        let record = report(&mut self.tasks, self.speakers, from, &event.task_id)?;
        if record.result.is_some() {
            return Err(FrameReason::EventAfterResult.into());
        }
        record.events += 1;
        Ok(MessageEffect::Progressed { event: record.events })
    }

    fn close(&mut self, from: Party, result: &TaskResult) -> Result<MessageEffect, Reject> {
        let content = self.fingerprints.of((result.ok, &result.output, &result.error_message));
        let record = report(&mut self.tasks, self.speakers, from, &result.task_id)?;
        match record.result {
            Some(known) if known == content => return Ok(MessageEffect::AlreadyClosed),
            Some(_) => return Err(FrameReason::ResultConflict.into()),
            None => record.result = Some(content),
        }
        self.closed.extend(self.tasks.get_key_value(&result.task_id[..]).map(|(id, _)| Arc::clone(id)));
        while self.closed.len() > self.max_closed {
            if let Some(oldest) = self.closed.pop_front() {
                self.tasks.remove(&oldest);
            }
        }
        Ok(MessageEffect::Closed)
    }
}

/// The task that `from` reports on, if it is there and `from` may.
fn report<'a>(
    tasks: &'a mut HashMap<Arc<[u8]>, Record>,
    speakers: Speakers,
    from: Party,
    task_id: &[u8],
) -> Result<&'a mut Record, Reject> {
    let record = tasks.get_mut(task_id).ok_or(FrameReason::UnknownTask)?;
    if speakers == Speakers::TheOtherParty && record.given_by == from {
        return Err(FrameReason::WrongParty.into());
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_task_gives_its_place_back_and_a_closed_one_stays_closed() {
        let mut lifecycle = Lifecycle::new(&SwpLimits { max_open_tasks: 1, ..SwpLimits::default() }, Speakers::TheOtherParty);
        let task =
            |id: &'static str| A2aMessage::Task(SwpTaskMessage { task_id: id.into(), kind: "k".into(), input: "x".into() });
        assert_eq!(lifecycle.accept(Party::Peer, &task("1")), Ok(MessageEffect::Started));
        assert!(lifecycle.accept(Party::Peer, &task("2")).is_err());
        lifecycle.abandon(b"1");
        assert_eq!((lifecycle.open(), lifecycle.state(b"1")), (0, None));
        assert_eq!(lifecycle.accept(Party::Peer, &task("2")), Ok(MessageEffect::Started));
        let result = A2aMessage::Result(TaskResult::success("2".into(), "y".into()));
        assert_eq!(lifecycle.accept(Party::Us, &result), Ok(MessageEffect::Closed));
        lifecycle.abandon(b"2");
        assert_eq!(lifecycle.state(b"2"), Some(SwpTaskState::Closed));
    }
}
