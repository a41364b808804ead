//! What an agent elsewhere has told of a task, so that hearing it again changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use chancery_core::task_state;
use chancery_protocol::{
    Artifact, ArtifactChunk, ArtifactId, ContextId, Message, StatusChange, Task, TaskEvent, TaskId, TaskState, TaskStatus,
};
use chancery_wire::Face;

/// Why what a peer said cannot be taken for news of the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Strange {
    #[error("the agent speaks of the task {heard}, but the task is {expected}")]
    OtherTask { expected: TaskId, heard: TaskId },
    #[error("the agent goes on with an artifact {0} that it never began")]
    UnknownArtifact(ArtifactId),
    #[error("the agent names no task")]
    NoTask,
}

#[derive(Debug)]
pub(super) struct Mirror {
    task: Option<TaskId>,
    context: Option<ContextId>,
    /// The task as it was passed on.
    seen: Task,
    /// Words that were passed on with a status, by their id at the peer.
    said: HashMap<String, ()>,
}

impl Mirror {
    /// `task` is ours, with all that was passed on before.
    pub(super) fn of(task: &Task, at_peer: Option<TaskId>, context: Option<ContextId>) -> Self {
        let words = task.history.iter().chain(task.status.message.iter());
        let said = words.map(|message| (message.message_id.to_string(), ())).collect();
        Self { task: at_peer, context, seen: task.clone(), said }
    }

    /// The names of the task at the peer, as far as they are known.
    pub(super) fn names(&self) -> (Option<TaskId>, Option<ContextId>) {
        (self.task.clone(), self.context.clone())
    }

    /// The news in what was heard: nothing, if it was known.
    pub(super) fn hear(&mut self, face: Option<&Face>, event: TaskEvent) -> Result<Vec<TaskEvent>, Strange> {
        if let Some(face) = face
            && !matches!(event, TaskEvent::Created(_) | TaskEvent::Replied(_))
        {
            self.identify(&face.task_id, &face.context_id)?;
        }
        let news = match event {
            TaskEvent::Created(task) => {
                self.identify(&task.id, &task.context_id)?;
                self.compare(&task)
            }
            TaskEvent::Status(change) => vec![TaskEvent::Status(change)],
            TaskEvent::Artifact(chunk) => {
                let known = self.artifact(&chunk.artifact.artifact_id).is_some();
                if chunk.append && !known {
                    return Err(Strange::UnknownArtifact(chunk.artifact.artifact_id.clone()));
                }
                vec![TaskEvent::Artifact(chunk)]
            }
            // What callers say is ours to record.
            TaskEvent::Said(_) => Vec::new(),
            TaskEvent::Replied(message) => vec![TaskEvent::Replied(message)],
        };
        let news: Vec<_> = news.into_iter().filter(|event| !self.is_empty_status(event)).map(named).collect();
        for event in &news {
            self.note(event);
        }
        Ok(news)
    }

    fn identify(&mut self, task: &TaskId, context: &ContextId) -> Result<(), Strange> {
        if task.as_str().is_empty() {
            return Err(Strange::NoTask);
        }
        match &self.task {
            Some(expected) if expected != task => {
                return Err(Strange::OtherTask { expected: expected.clone(), heard: task.clone() });
            }
            _ => self.task = Some(task.clone()),
        }
        if !context.as_str().is_empty() {
            self.context = Some(context.clone());
        }
        Ok(())
    }

    /// What a picture of the whole task shows that was not passed on yet.
    fn compare(&self, picture: &Task) -> Vec<TaskEvent> {
        let mut news = Vec::new();
        for artifact in &picture.artifacts {
            if self.artifact(&artifact.artifact_id) != Some(&**artifact) {
                let chunk = ArtifactChunk { artifact: Arc::clone(artifact), append: false, last_chunk: true, metadata: None };
                news.push(TaskEvent::Artifact(chunk));
            }
        }
        let TaskStatus { state, message, .. } = &picture.status;
        let new_words = message.as_ref().is_some_and(|message| !self.knows(message));
        if *state != self.seen.status.state || new_words {
            let metadata = picture.metadata.clone();
            news.push(TaskEvent::Status(StatusChange { status: picture.status.clone(), metadata }));
        }
        news
    }

    /// A status that our log has no room for: submitted is how it began, and the same again without a word says nothing.
    fn is_empty_status(&self, event: &TaskEvent) -> bool {
        let TaskEvent::Status(StatusChange { status, metadata }) = event else { return false };
        match status.state {
            TaskState::Submitted | TaskState::Unspecified => true,
            state => {
                let nothing_new = status.message.as_ref().is_none_or(|message| self.knows(message)) && metadata.is_none();
                state == self.seen.status.state && state == TaskState::Working && nothing_new
            }
        }
    }

    fn note(&mut self, event: &TaskEvent) {
        if let TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), .. }, .. }) = event {
            self.said.insert(message.message_id.to_string(), ());
        }
        task_state::apply(&mut self.seen, event);
    }

    fn knows(&self, message: &Message) -> bool {
        if message.message_id.as_str().is_empty() {
            // It was given a name here, so only what it says can be compared.
            return self.seen.status.message.as_ref().is_some_and(|last| last.parts == message.parts);
        }
        self.said.contains_key(message.message_id.as_str())
    }

    fn artifact(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.seen.artifacts.iter().find(|artifact| artifact.artifact_id == *id).map(|artifact| &**artifact)
    }
}

/// The original protocol has no names for messages; whoever reads them in a newer one may insist on them.
fn named(event: TaskEvent) -> TaskEvent {
    let name = |message: Arc<Message>| match message.message_id.as_str() {
        "" => Arc::new(Message { message_id: uuid::Uuid::now_v7().to_string().into(), ..Message::clone(&message) }),
        _ => message,
    };
    match event {
        TaskEvent::Status(mut change) => {
            change.status.message = change.status.message.map(name);
            TaskEvent::Status(change)
        }
        TaskEvent::Replied(message) => TaskEvent::Replied(name(message)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Part, Role};

    fn asking(id: &str) -> TaskEvent {
        let message = Message::of_parts(Role::Agent, id, vec![Part::text("which colour?")]);
        TaskEvent::Created(Arc::new(task(TaskState::InputRequired, Some(message))))
    }

    fn task(state: TaskState, message: Option<Message>) -> Task {
        Task {
            id: "theirs".into(),
            context_id: "talk".into(),
            status: TaskStatus { state, message: message.map(Arc::new), timestamp: None },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        }
    }

    fn words(news: &[TaskEvent]) -> Vec<String> {
        let message = |event: &TaskEvent| match event {
            TaskEvent::Status(change) => change.status.message.as_ref().map(|message| message.message_id.to_string()),
            _ => None,
        };
        news.iter().filter_map(message).collect()
    }

    #[test]
    fn words_without_a_name_get_one_and_are_news_once() {
        let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
        let first = words(&mirror.hear(None, asking("")).unwrap());
        assert!(matches!(&first[..], [id] if !id.is_empty()), "{first:?}");
        assert_eq!(mirror.hear(None, asking("")).unwrap(), []);
    }

    #[test]
    fn words_keep_the_name_the_agent_gave_them() {
        let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
        assert_eq!(words(&mirror.hear(None, asking("m1")).unwrap()), ["m1"]);
        assert_eq!(mirror.hear(None, asking("m1")).unwrap(), []);
    }
}
