//! The content of a large open task that is only watched: it is let go, and the store has it.
//!
//! What stays is the outline: the status, and the ids of the artifacts. A reader that is shown the whole task reads it from the
//! store while it has room for it.

use std::sync::{Arc, Weak};

use chancery_protocol::{Artifact, ArtifactId, Error, NamedTask, Task, TaskStatus, Unknown};

use super::{LiveTask, State};
use crate::find::shown;
use crate::service::ChanceryInner;

/// Smaller tasks stay in memory while a stream watches them.
const LET_GO_FROM: u64 = 256 * 1024;

/// Where the content of a task is.
#[derive(Debug)]
pub(super) enum TaskBody {
    /// In `State::task`.
    Here,
    /// In the store. A reader may also hold it as it was after that entry.
    Stored(Weak<Task>, u64),
}

impl State {
    pub(super) fn task_here(&self) -> Option<Arc<Task>> {
        matches!(self.body, TaskBody::Here).then(|| Arc::clone(&self.task))
    }
}

impl LiveTask {
    /// The visible task, unless only its outline is here.
    pub(crate) fn task(&self) -> Option<Arc<Task>> {
        self.task_and_seq().map(|(task, _)| task)
    }

    /// The same with its last entry.
    pub(crate) fn task_and_seq(&self) -> Option<(Arc<Task>, u64)> {
        let state = self.lock();
        let seq = state.visible.seq;
        let task = match &state.body {
            TaskBody::Here => Some(Arc::clone(&state.task)),
            TaskBody::Stored(task, of) => task.upgrade().filter(|_| *of == seq),
        };
        task.map(|task| (task, seq))
    }

    /// The artifacts in the order they were begun.
    pub(crate) fn artifact_ids(&self) -> Vec<ArtifactId> {
        self.lock().task.artifacts.iter().map(|artifact| artifact.artifact_id.clone()).collect()
    }

    /// What stays of the visible task, as a reply to a call that must be answered with something.
    pub(crate) fn outline(&self) -> NamedTask {
        let outline = outline_of(&self.lock().task);
        shown(&self.record, Arc::new(outline), None)
    }

    /// The weight of the log.
    pub(crate) fn weight(&self) -> u64 {
        self.lock().projected.bytes
    }

    /// Lets go of the content, if it is large and no turn works on the task.
    pub(crate) fn let_go(&self) {
        let mut state = self.lock();
        let is_busy = state.turn.is_some() || state.arriving > 0 || state.recording || !state.pending.is_empty();
        if is_busy || state.projected.bytes < LET_GO_FROM || !matches!(state.body, TaskBody::Here) {
            return;
        }
        let outline = Arc::new(outline_of(&state.task));
        let whole = std::mem::replace(&mut state.task, outline);
        state.body = TaskBody::Stored(Arc::downgrade(&whole), state.visible.seq);
    }

    /// Lends a task that was read as it was after entry `seq` to other readers while one of them holds it.
    fn lend(&self, task: &Arc<Task>, seq: u64) {
        if let TaskBody::Stored(lent, of) = &mut self.lock().body {
            (*lent, *of) = (Arc::downgrade(task), seq);
        }
    }

    /// Takes the content back, if it is still of the last visible entry.
    fn take_back(&self, task: &Arc<Task>, seq: u64) -> bool {
        let mut state = self.lock();
        if state.visible.seq != seq {
            return false;
        }
        state.task = Arc::clone(task);
        state.body = TaskBody::Here;
        true
    }
}

pub(super) fn outline_of(task: &Task) -> Task {
    let empty = |artifact: &Arc<Artifact>| Arc::new(Artifact::new(artifact.artifact_id.clone(), Vec::new()));
    Task {
        id: task.id.clone(),
        context_id: task.context_id.clone(),
        status: TaskStatus { message: None, ..task.status.clone() },
        artifacts: task.artifacts.iter().map(empty).collect(),
        history: Vec::new(),
        metadata: None,
        unknown: Unknown::none(),
    }
}

impl ChanceryInner {
    /// The visible task of an open one, with its last entry, from memory or from the store.
    pub(crate) async fn whole(&self, live: &LiveTask) -> Result<(Arc<Task>, u64), Error> {
        if let Some(found) = live.task_and_seq() {
            return Ok(found);
        }
        let seq = live.visible().seq;
        let task = Arc::new(self.read_at(&live.record.id, seq).await?);
        live.lend(&task, seq);
        Ok((task, seq))
    }

    /// Lets go of a task that only streams hold from now on.
    pub(crate) fn let_go_if_watched(&self, live: &LiveTask) {
        if live.weight() >= LET_GO_FROM && self.streams.is_watched(&live.record.id) {
            live.let_go();
        }
    }

    /// Brings the content back for a turn, which changes it.
    pub(crate) async fn bring_back(&self, live: &LiveTask) -> Result<Arc<Task>, Error> {
        if let Some(task) = live.lock().task_here() {
            return Ok(task);
        }
        loop {
            let (task, seq) = self.whole(live).await?;
            if live.take_back(&task, seq) {
                return Ok(task);
            }
        }
    }
}
