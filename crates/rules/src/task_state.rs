//! How a task moves: which events may follow which, and what a task is after them.

use std::collections::HashSet;
use std::sync::Arc;

use chancery_protocol::{
    Artifact, ArtifactChunk, ArtifactId, Message, Metadata, Part, PartContent, Role, Task, TaskEvent, TaskState,
};

/// Why an event may not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRefusal {
    /// The task has ended; nothing follows.
    Ended(TaskState),
    /// States a task is never moved to: unspecified, or back to submitted.
    NotAState(TaskState),
    /// A piece for an artifact that was never started.
    UnknownArtifact(ArtifactId),
    /// A log starts with its creation and has only one.
    OutOfPlace,
}

/// What must be known of a task to judge its next event. Much smaller than the task.
#[derive(Clone, Debug)]
pub struct TaskHead {
    pub state: TaskState,
    artifacts: HashSet<ArtifactId>,
}

impl TaskHead {
    pub fn of(task: &Task) -> Self {
        Self { state: task.status.state, artifacts: task.artifacts.iter().map(|artifact| artifact.artifact_id.clone()).collect() }
    }

    /// Judges an event and, if it may follow, moves on.
    pub fn advance(&mut self, event: &TaskEvent) -> Result<(), EventRefusal> {
        if self.state.is_terminal() {
            return Err(EventRefusal::Ended(self.state));
        }
        match event {
            TaskEvent::Created(_) => Err(EventRefusal::OutOfPlace),
            TaskEvent::Said(_) => Ok(()),
            TaskEvent::Replied(_) => {
                self.state = TaskState::Completed;
                Ok(())
            }
            TaskEvent::Status(change) => match change.status.state {
                state @ (TaskState::Unspecified | TaskState::Submitted) => Err(EventRefusal::NotAState(state)),
                state => {
                    self.state = state;
                    Ok(())
                }
            },
            TaskEvent::Artifact(chunk) => {
                let id = &chunk.artifact.artifact_id;
                if chunk.append && !self.artifacts.contains(id) {
                    return Err(EventRefusal::UnknownArtifact(id.clone()));
                }
                if !chunk.append {
                    self.artifacts.insert(id.clone());
                }
                Ok(())
            }
        }
    }
}

/// Applies an event that was accepted. A task is nothing but its events applied in order.
pub fn apply(task: &mut Task, event: &TaskEvent) {
    match event {
        TaskEvent::Created(created) => *task = (**created).clone(),
        TaskEvent::Said(message) => {
            keep_what_was_said(task);
            task.history.push(Arc::clone(message));
        }
        TaskEvent::Replied(_) => task.status.state = TaskState::Completed,
        TaskEvent::Status(change) => {
            // A message that repeats an id replaces what was said under it: some agents let one message grow, also over
            // statuses without words.
            if let Some(new) = &change.status.message {
                let repeats = |said: &Message| said.message_id == new.message_id && !said.message_id.as_str().is_empty();
                let was_last = task.status.message.take_if(|said| repeats(said)).is_some() || task.status.message.is_some();
                if !was_last && task.history.last().is_some_and(|said| said.role == Role::Agent && repeats(said)) {
                    task.history.pop();
                }
            }
            keep_what_was_said(task);
            task.status = change.status.clone();
            if let Some(metadata) = &change.metadata {
                task.metadata = Some(merged(task.metadata.as_ref(), metadata));
            }
            task.unknown.extend(&change.unknown);
        }
        TaskEvent::Artifact(chunk) => apply_chunk(&mut task.artifacts, chunk),
    }
}

/// What the agent said with its status stays part of the conversation, before what comes next.
fn keep_what_was_said(task: &mut Task) {
    task.history.extend(task.status.message.take());
}

fn apply_chunk(artifacts: &mut Vec<Arc<Artifact>>, chunk: &ArtifactChunk) {
    let known = artifacts.iter_mut().find(|artifact| artifact.artifact_id == chunk.artifact.artifact_id);
    match known {
        None => artifacts.push(Arc::clone(&chunk.artifact)),
        Some(artifact) if !chunk.append => *artifact = Arc::clone(&chunk.artifact),
        Some(artifact) => {
            let whole = Arc::make_mut(artifact);
            whole.parts.extend(chunk.artifact.parts.iter().cloned());
            if let Some(metadata) = &chunk.artifact.metadata {
                whole.metadata = Some(merged(whole.metadata.as_ref(), metadata));
            }
            whole.unknown.extend(&chunk.artifact.unknown);
        }
    }
}

fn merged(old: Option<&Metadata>, new: &Metadata) -> Metadata {
    old.map_or_else(|| new.clone(), |old| old.merged(new))
}

/// The whole task, from its log.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a TaskEvent>) -> Option<Task> {
    let mut events = events.into_iter();
    let TaskEvent::Created(created) = events.next()? else { return None };
    let mut task = (**created).clone();
    for event in events {
        apply(&mut task, event);
    }
    Some(task)
}

/// Bytes an event counts for against the limit on a task's size: its content, and a little for the entry itself.
pub fn weight(event: &TaskEvent) -> u64 {
    const ENTRY: usize = 64;
    let content = match event {
        TaskEvent::Created(task) => {
            task.unknown.weight() + task.history.iter().map(|message| message_weight(message)).sum::<usize>()
        }
        TaskEvent::Said(message) | TaskEvent::Replied(message) => message_weight(message),
        TaskEvent::Status(change) => {
            let said = change.status.message.as_deref().map_or(0, message_weight);
            said + metadata_weight(change.metadata.as_ref()) + change.unknown.weight() + change.status.unknown.weight()
        }
        TaskEvent::Artifact(chunk) => {
            let artifact = &chunk.artifact;
            let content = parts_weight(&artifact.parts) + metadata_weight(artifact.metadata.as_ref());
            content + artifact.unknown.weight() + chunk.unknown.weight()
        }
    };
    (ENTRY + content) as u64
}

/// Bytes a task counts for in an answer: the same measure, for what is shown of it.
pub fn task_weight(task: &Task) -> u64 {
    const TASK: usize = 64;
    let said = task.history.iter().chain(&task.status.message).map(|message| message_weight(message)).sum::<usize>();
    let artifact = |artifact: &Arc<Artifact>| {
        parts_weight(&artifact.parts) + metadata_weight(artifact.metadata.as_ref()) + artifact.unknown.weight()
    };
    let made = task.artifacts.iter().map(artifact).sum::<usize>();
    (TASK + said + made + metadata_weight(task.metadata.as_ref()) + task.unknown.weight()) as u64
}

fn message_weight(message: &Message) -> usize {
    parts_weight(&message.parts) + metadata_weight(message.metadata.as_ref()) + message.unknown.weight()
}

fn parts_weight(parts: &[Part]) -> usize {
    let weigh = |part: &Part| {
        let content = match &part.content {
            PartContent::Text(text) | PartContent::Url(text) => text.len(),
            PartContent::Raw(bytes) => bytes.len(),
            PartContent::Data(json) => json.text().len(),
        };
        content + metadata_weight(part.metadata.as_ref()) + part.unknown.weight()
    };
    parts.iter().map(weigh).sum()
}

fn metadata_weight(metadata: Option<&Metadata>) -> usize {
    metadata.map_or(0, |metadata| metadata.text().len())
}
