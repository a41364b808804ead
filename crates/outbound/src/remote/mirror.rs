//! The state of a task at a remote agent, so that repeated events change nothing and no event is lost.

mod artifacts;
mod echo;
mod history;
mod pieces;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_core::task_state;
use chancery_protocol::{
    ArtifactChunk, ArtifactId, ContextId, Message, MessageId, Role, StatusChange, Task, TaskEvent, TaskId, TaskState, TaskStatus,
    Unknown, control_character,
};
use chancery_wire::TaskNames;
use chancery_wire::tolerant::{Leniencies, Leniency};

pub(super) use self::artifacts::join_texts;
use self::artifacts::without_large_parts;
use self::echo::without_echo;
use self::pieces::MessagePieces;
use crate::new_message_id;

/// Why what a peer said cannot be taken for news of the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Strange {
    #[error("the agent spoke of another task")]
    OtherTask { expected: TaskId, heard: TaskId },
    #[error("the agent named no task")]
    NoTask,
    #[error("the agent gave {0} an id of {1} bytes, more than {ID_BYTES}")]
    LongId(&'static str, usize),
    #[error("the agent gave {0} an id with the control character U+{1:04X}")]
    ControlInId(&'static str, u32),
}

/// The longest id of a remote agent. Ids are kept whole in the log, in lists and in the record, where an
/// entry has to fit into a line of a bundle.
const ID_BYTES: usize = 1024;

fn check_id(what: &'static str, id: &str) -> Result<(), Strange> {
    if id.len() > ID_BYTES {
        return Err(Strange::LongId(what, id.len()));
    }
    control_character(id).map_or(Ok(()), |control| Err(Strange::ControlInId(what, u32::from(control))))
}

#[derive(Debug)]
pub(super) struct Mirror {
    task: Option<TaskId>,
    context: Option<ContextId>,
    /// The first answer to a message may name another task than the one it went on with: some frameworks make one a turn.
    may_rename: bool,
    /// The task as it was forwarded.
    seen: Task,
    /// Ids of messages that were forwarded, as the peer gave them.
    said: BTreeSet<MessageId>,
    /// The message that the agent says in pieces, as far as it was heard.
    pieces: Option<MessagePieces>,
    /// Artifacts whose last chunk was forwarded.
    closed: BTreeSet<ArtifactId>,
    /// Artifacts that began in this turn, with an event.
    begun: Vec<ArtifactId>,
    /// The agent has said something in this turn that a caller can read.
    has_content: bool,
    leniencies: Leniencies,
}

impl Mirror {
    /// `task` is the node's own, with all that was forwarded before.
    pub(super) fn of(task: &Task, at_peer: Option<TaskId>, context: Option<ContextId>) -> Self {
        let words = task.history.iter().chain(task.status.message.iter());
        let said = words.map(|message| message.message_id.clone()).collect();
        Self {
            may_rename: at_peer.is_some(),
            task: at_peer,
            context,
            seen: task.clone(),
            said,
            pieces: None,
            closed: BTreeSet::new(),
            begun: Vec::new(),
            has_content: false,
            leniencies: Leniencies::new(),
        }
    }

    /// The names of the task at the peer, as far as they are known.
    pub(super) fn names(&self) -> (Option<TaskId>, Option<ContextId>) {
        (self.task.clone(), self.context.clone())
    }

    pub(super) fn has_task(&self) -> bool {
        self.task.is_some()
    }

    /// Whether the agent has said anything in this turn that a caller can read.
    pub(super) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Whether the agent has named a task, and said nothing else of it.
    pub(super) fn is_only_accepted(&self) -> bool {
        self.task.is_some() && self.seen.status.state == TaskState::Submitted
    }

    /// The deviations seen since they were last taken.
    pub(super) fn take_leniencies(&mut self) -> Leniencies {
        std::mem::take(&mut self.leniencies)
    }

    /// The news in what was heard: nothing, if it was known.
    pub(super) fn apply(&mut self, face: Option<&TaskNames>, event: TaskEvent) -> Result<Vec<TaskEvent>, Strange> {
        if let Some(face) = face
            && !matches!(event, TaskEvent::Created(_) | TaskEvent::Replied(_))
        {
            self.identify(&face.task_id, &face.context_id)?;
        }
        let news = match event {
            TaskEvent::Created(task) => {
                self.identify(&task.id, &task.context_id)?;
                // What an unfinished task shows of its conversation comes again with its end, if it was not said by then.
                let state = task.status.state;
                if state.is_terminal() || state.is_interrupted() { self.whole(&task) } else { self.compare(&task) }
            }
            TaskEvent::Status(change) => {
                let mut news = change.status.message.as_ref().map_or_else(Vec::new, |words| self.whole_before(words));
                news.push(TaskEvent::Status(change));
                news
            }
            TaskEvent::Artifact(chunk) => self.piece(chunk),
            // What callers say is ours to record.
            TaskEvent::Said(_) => Vec::new(),
            TaskEvent::Replied(mut message) => {
                // The conversation goes on under the agent's name for it. The task that it names may be known to nobody.
                if let Some(context) = message.context_id.as_ref().filter(|context| !context.as_str().is_empty()) {
                    check_id("a context", context.as_str())?;
                    self.context = Some(context.clone());
                }
                if message.task_id.is_some() {
                    Arc::make_mut(&mut message).task_id = None;
                }
                vec![TaskEvent::Replied(message)]
            }
        };
        self.noted(news)
    }

    /// The news in a picture of the whole task, with what its history has.
    pub(super) fn apply_picture(&mut self, task: &Task) -> Result<Vec<TaskEvent>, Strange> {
        self.identify(&task.id, &task.context_id)?;
        let news = self.whole(task);
        self.noted(news)
    }

    /// The same for the first event of a stream, which in the original is the status as it was: the state we know is no news
    /// there, also one in which a turn ends.
    pub(super) fn apply_first(&mut self, face: Option<&TaskNames>, event: TaskEvent) -> Result<Vec<TaskEvent>, Strange> {
        match &event {
            TaskEvent::Status(change) if self.says_nothing_new(change) => {
                face.map_or(Ok(()), |face| self.identify(&face.task_id, &face.context_id)).map(|()| Vec::new())
            }
            _ => self.apply(face, event),
        }
    }

    /// Learns the names of a task before any of its events is forwarded.
    pub(super) fn identify(&mut self, task: &TaskId, context: &ContextId) -> Result<(), Strange> {
        if task.as_str().is_empty() {
            return Err(Strange::NoTask);
        }
        check_id("a task", task.as_str())?;
        check_id("a context", context.as_str())?;
        match &self.task {
            Some(expected) if expected != task && !self.may_rename => {
                return Err(Strange::OtherTask { expected: expected.clone(), heard: task.clone() });
            }
            _ => self.task = Some(task.clone()),
        }
        self.may_rename = false;
        if !context.as_str().is_empty() {
            self.context = Some(context.clone());
        }
        Ok(())
    }

    fn noted(&mut self, news: Vec<TaskEvent>) -> Result<Vec<TaskEvent>, Strange> {
        let news = news.into_iter().map(without_echo).filter(|event| !self.is_empty_status(event));
        let news: Vec<_> = news.map(with_message_id).collect();
        news.iter().try_for_each(check_ids)?;
        for event in &news {
            self.note(event);
        }
        Ok(news)
    }

    /// The news of a snapshot of the task that was not forwarded yet, with its conversation.
    fn whole(&self, picture: &Task) -> Vec<TaskEvent> {
        let said = self.unheard(picture).into_iter().map(|message| as_progress(message, picture.status.timestamp));
        said.chain(self.compare(picture)).collect()
    }

    /// The same without its conversation.
    fn compare(&self, picture: &Task) -> Vec<TaskEvent> {
        let TaskStatus { state, message, .. } = &picture.status;
        let new_words = message.as_ref().is_some_and(|message| !self.knows(message));
        let status = (*state != self.seen.status.state || new_words).then(|| {
            let metadata = picture.metadata.clone();
            // A task that is known already is not told anew: what nobody here knows of it comes with its status, as its metadata.
            let unknown = Unknown::from_other(&picture.unknown);
            TaskEvent::Status(StatusChange { status: picture.status.clone(), metadata, unknown })
        });
        let made = self.unseen_artifacts(picture);
        // What a turn ends with comes last, and what it goes on with first.
        match status {
            Some(status) if *state == TaskState::Working => [status].into_iter().chain(made).collect(),
            status => made.into_iter().chain(status).collect(),
        }
    }

    /// A status that our log has no room for: submitted is how it began, and the same again without a word says nothing.
    fn is_empty_status(&self, event: &TaskEvent) -> bool {
        let TaskEvent::Status(change) = event else { return false };
        match change.status.state {
            TaskState::Submitted | TaskState::Unspecified => {
                change.status.message.as_ref().is_none_or(|message| self.knows(message))
            }
            state => state == TaskState::Working && self.says_nothing_new(change),
        }
    }

    fn says_nothing_new(&self, StatusChange { status, metadata, unknown }: &StatusChange) -> bool {
        let no_new_words = status.message.as_ref().is_none_or(|message| self.knows(message));
        let nothing_beside = metadata.is_none() && unknown.is_empty() && status.unknown.is_empty();
        status.state == self.seen.status.state && no_new_words && nothing_beside
    }

    fn note(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), .. }, .. }) => {
                self.said.insert(message.message_id.clone());
                self.has_content = true;
            }
            TaskEvent::Replied(_) => self.has_content = true,
            TaskEvent::Artifact(chunk) => {
                self.has_content |= !chunk.artifact.parts.is_empty();
                if chunk.last_chunk {
                    self.closed.insert(chunk.artifact.artifact_id.clone());
                }
            }
            _ => {}
        }
        match event {
            TaskEvent::Artifact(chunk) => {
                let artifact = Arc::new(without_large_parts(&chunk.artifact).into_owned());
                task_state::apply(&mut self.seen, &TaskEvent::Artifact(ArtifactChunk { artifact, ..chunk.clone() }));
            }
            event => task_state::apply(&mut self.seen, event),
        }
    }

    /// Whether a message was forwarded unchanged. One that repeats an id with other words replaces the
    /// earlier message.
    fn knows(&self, message: &Message) -> bool {
        if message.message_id.as_str().is_empty() {
            return self.seen.status.message.as_ref().is_some_and(|last| last.parts == message.parts);
        }
        self.said.contains(&message.message_id) && !self.has_other_words(message)
    }

    /// Whether the agent said something else under the id of this message.
    fn has_other_words(&self, message: &Message) -> bool {
        let mut words = self.seen.status.message.iter().chain(self.seen.history.iter().rev());
        let said = words.find(|said| said.role == Role::Agent && said.message_id == message.message_id);
        said.is_some_and(|said| said.parts != message.parts)
    }

    fn overlook(&mut self, leniency: Leniency) {
        self.leniencies.insert(leniency);
    }
}

/// A message of the agent as a status of a task that goes on.
pub(super) fn as_progress(message: Arc<Message>, timestamp: Option<chancery_protocol::Timestamp>) -> TaskEvent {
    let status = TaskStatus { state: TaskState::Working, message: Some(message), timestamp, unknown: Unknown::none() };
    TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() })
}

/// Words that came without an id get one, because later versions want one. A status that only opens the task and has words says
/// them as progress: our log begins with submitted and never goes back to it.
fn with_message_id(mut event: TaskEvent) -> TaskEvent {
    let words = match &mut event {
        TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), state, .. }, .. }) => {
            if let TaskState::Submitted | TaskState::Unspecified = state {
                *state = TaskState::Working;
            }
            message
        }
        TaskEvent::Replied(message) => message,
        _ => return event,
    };
    if words.message_id.as_str().is_empty() {
        Arc::make_mut(words).message_id = new_message_id().into();
    }
    event
}

fn check_ids(event: &TaskEvent) -> Result<(), Strange> {
    match event {
        TaskEvent::Status(change) => match &change.status.message {
            Some(message) => check_id("a message", message.message_id.as_str()),
            None => Ok(()),
        },
        TaskEvent::Said(message) | TaskEvent::Replied(message) => check_id("a message", message.message_id.as_str()),
        TaskEvent::Artifact(chunk) => check_id("an artifact", chunk.artifact.artifact_id.as_str()),
        TaskEvent::Created(_) => Ok(()),
    }
}
