//! What an executor has told about its task so far, and which events its next word adds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use a2a::StreamResponse;
use chancery_core::RunError;
use chancery_protocol::{
    Artifact, ArtifactChunk, ArtifactId, ContextId, Message, MessageId, Metadata, Role, StatusChange, Task, TaskEvent, TaskId,
    TaskState, TaskStatus,
};

use crate::translate;

pub(crate) struct Story {
    task_id: TaskId,
    context_id: ContextId,
    state: TaskState,
    /// Something of this task was shown to its caller.
    begun: bool,
    artifacts: HashMap<ArtifactId, Artifact>,
    messages: HashSet<MessageId>,
    metadata: Option<Metadata>,
}

impl Story {
    /// The story up to this turn.
    pub(crate) fn of(task: &Task) -> Self {
        let said = task.history.iter().chain(&task.status.message);
        Self {
            task_id: task.id.clone(),
            context_id: task.context_id.clone(),
            state: task.status.state,
            begun: task.status.state != TaskState::Submitted,
            artifacts: task.artifacts.iter().map(|artifact| (artifact.artifact_id.clone(), (**artifact).clone())).collect(),
            messages: said.map(|message| message.message_id.clone()).collect(),
            metadata: task.metadata.clone(),
        }
    }

    /// What a word of the executor adds, in order.
    pub(crate) fn events(&mut self, word: StreamResponse) -> Result<Vec<TaskEvent>, RunError> {
        let events = match word {
            StreamResponse::Task(task) => {
                self.check(&task.id, &task.context_id)?;
                self.snapshot(task)?
            }
            StreamResponse::StatusUpdate(update) => {
                self.check(&update.task_id, &update.context_id)?;
                vec![self.status(update.status, update.metadata.map(translate::metadata_in))?]
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.check(&update.task_id, &update.context_id)?;
                vec![self.chunk(ArtifactChunk {
                    artifact: Arc::new(translate::artifact_in(update.artifact)),
                    append: update.append.unwrap_or(false),
                    last_chunk: update.last_chunk.unwrap_or(false),
                    metadata: update.metadata.map(translate::metadata_in),
                    unknown: Default::default(),
                })]
            }
            StreamResponse::Message(message) => vec![self.message(translate::message_in(message))],
        };
        self.begun |= !events.is_empty();
        Ok(events)
    }

    /// An executor that leaves an id empty means the task it was called for; one that names another is wrong.
    fn check(&self, task: &str, context: &str) -> Result<(), RunError> {
        if !task.is_empty() && task != self.task_id.as_str() {
            return Err(RunError::new(format!("the agent spoke of task {task} instead of its own")));
        }
        if !context.is_empty() && context != self.context_id.as_str() {
            return Err(RunError::new(format!("the agent spoke of context {context} instead of its own")));
        }
        Ok(())
    }

    /// A whole task: what it says that was not told before.
    fn snapshot(&mut self, task: a2a::Task) -> Result<Vec<TaskEvent>, RunError> {
        let mut events = Vec::new();
        let current = task.status.message.as_ref().map(|message| message.message_id.clone());
        for message in task.history.into_iter().flatten() {
            let is_current = current.as_ref() == Some(&message.message_id);
            let message = translate::message_in(message);
            if message.role == Role::Agent && !is_current && !self.messages.contains(&message.message_id) {
                events.push(self.said(TaskState::Working, Some(message), None));
            }
        }
        for artifact in task.artifacts.into_iter().flatten() {
            let artifact = translate::artifact_in(artifact);
            if self.artifacts.get(&artifact.artifact_id) != Some(&artifact) {
                events.push(self.chunk(ArtifactChunk {
                    artifact: Arc::new(artifact),
                    append: false,
                    last_chunk: true,
                    metadata: None,
                    unknown: Default::default(),
                }));
            }
        }
        let metadata = task.metadata.map(translate::metadata_in).filter(|metadata| self.metadata.as_ref() != Some(metadata));
        events.push(self.status(task.status, metadata)?);
        Ok(events)
    }

    fn status(&mut self, status: a2a::TaskStatus, metadata: Option<Metadata>) -> Result<TaskEvent, RunError> {
        let state = match translate::state_in(&status.state) {
            TaskState::Unspecified => return Err(RunError::new("the agent left open which state its task is in")),
            // The task was submitted before the executor heard of it. That it has, means that it is being worked on.
            TaskState::Submitted => TaskState::Working,
            state => state,
        };
        Ok(self.said(state, status.message.map(translate::message_in), metadata))
    }

    /// A message is the whole answer while there is no task to be seen. Later it belongs to the task, which stays in the
    /// state it is in.
    fn message(&mut self, message: Message) -> TaskEvent {
        match self.state {
            TaskState::Submitted if !self.begun => TaskEvent::Replied(Arc::new(message)),
            TaskState::Submitted => self.said(TaskState::Working, Some(message), None),
            state => self.said(state, Some(message), None),
        }
    }

    fn said(&mut self, state: TaskState, message: Option<Message>, metadata: Option<Metadata>) -> TaskEvent {
        self.state = state;
        self.messages.extend(message.as_ref().map(|message| message.message_id.clone()));
        if metadata.is_some() {
            self.metadata.clone_from(&metadata);
        }
        let status = TaskStatus { state, message: message.map(Arc::new), timestamp: None, unknown: Default::default() };
        TaskEvent::Status(StatusChange { status, metadata, unknown: Default::default() })
    }

    fn chunk(&mut self, chunk: ArtifactChunk) -> TaskEvent {
        let piece = &chunk.artifact;
        match self.artifacts.get_mut(&piece.artifact_id) {
            Some(whole) if chunk.append => whole.parts.extend(piece.parts.iter().cloned()),
            _ => {
                self.artifacts.insert(piece.artifact_id.clone(), (**piece).clone());
            }
        }
        TaskEvent::Artifact(chunk)
    }
}
