//! The last picture that a whole stream of events gives, for callers who wanted one answer.

use std::sync::Arc;

use chancery_core::task_state;
use chancery_protocol::{Message, NamedTask, Operation, Reply, Sent, Task, TaskEvent, TaskState, TaskStatus, Unknown, Version};
use chancery_wire::TaskNames;

/// What was seen of a task, or said in its place.
#[derive(Debug, Default)]
pub(super) struct TaskPicture {
    task: Option<Task>,
    /// Messages that came before any task was seen.
    messages: Vec<Arc<Message>>,
}

impl TaskPicture {
    pub(super) fn add(&mut self, face: Option<&TaskNames>, event: TaskEvent) {
        match event {
            TaskEvent::Created(task) => self.whole(&task),
            TaskEvent::Replied(message) | TaskEvent::Said(message) => match &mut self.task {
                Some(task) => say(&mut task.history, message),
                None => say(&mut self.messages, message),
            },
            event => {
                // What was said before the task was seen are words of that task.
                let messages = std::mem::take(&mut self.messages);
                let task = self.task.get_or_insert_with(|| begun(face, messages));
                task_state::apply(task, &event);
            }
        }
    }

    /// A whole picture counts. What it does not show was still seen.
    fn whole(&mut self, newer: &Task) {
        let mut task = newer.clone();
        if let Some(older) = self.task.take() {
            if task.artifacts.is_empty() {
                task.artifacts = older.artifacts;
            }
            if task.history.is_empty() {
                task.history = older.history;
            }
            task.status.message = task.status.message.or(older.status.message);
            task.metadata = task.metadata.or(older.metadata);
        }
        let said = std::mem::take(&mut self.messages);
        let is_new = |message: &Arc<Message>| task.history.iter().all(|known| known.message_id != message.message_id);
        let said: Vec<_> = said.into_iter().filter(is_new).collect();
        task.history.extend(said);
        self.task = Some(task);
    }

    /// The reply to `operation` that the snapshot is. Nothing, if it is not a reply to it.
    pub(super) fn reply(self, operation: Operation, dialect: Version) -> Option<Reply> {
        let shown = |task: Task| NamedTask { task: Arc::new(task), dialect: dialect.into(), client_task_id: None };
        match (operation, self.task) {
            (Operation::SendMessage, Some(task)) => Some(Reply::Sent(Sent::Task(shown(task)))),
            (Operation::SendMessage, None) => joined(self.messages).map(|message| Reply::Sent(Sent::Message(message))),
            (Operation::GetTask | Operation::CancelTask, Some(task)) => Some(Reply::Task(shown(task))),
            _ => None,
        }
    }
}

/// Adds a message. Chunks of one message have its id.
fn say(messages: &mut Vec<Arc<Message>>, message: Arc<Message>) {
    match messages.last_mut() {
        Some(last) if last.message_id == message.message_id && !last.message_id.as_str().is_empty() => {
            Arc::make_mut(last).parts.extend(message.parts.iter().cloned());
        }
        _ => messages.push(message),
    }
}

/// A task of which only an update was seen.
fn begun(face: Option<&TaskNames>, messages: Vec<Arc<Message>>) -> Task {
    Task {
        id: face.map_or_else(|| "".into(), |face| face.task_id.clone()),
        context_id: face.map_or_else(|| "".into(), |face| face.context_id.clone()),
        status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: None, unknown: Unknown::none() },
        artifacts: Vec::new(),
        history: messages,
        metadata: None,
        unknown: Unknown::none(),
    }
}

/// Several messages and no task are one answer, in their order.
fn joined(messages: Vec<Arc<Message>>) -> Option<Arc<Message>> {
    messages.into_iter().reduce(|mut all, next| {
        Arc::make_mut(&mut all).parts.extend(next.parts.iter().cloned());
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::{Artifact, ArtifactChunk, Part, Role, StatusChange};

    fn face() -> TaskNames {
        TaskNames { task_id: "t".into(), context_id: "c".into(), client_task_id: None, artifacts: Vec::new(), stays_open: false }
    }

    fn status(state: TaskState) -> TaskEvent {
        let status = TaskStatus { state, message: None, timestamp: None, unknown: Unknown::none() };
        TaskEvent::Status(StatusChange { status, metadata: None, unknown: Unknown::none() })
    }

    fn chunk(text: &str, append: bool) -> TaskEvent {
        let artifact = Arc::new(Artifact::new("a", vec![Part::text(text)]));
        TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk: false, metadata: None, unknown: Unknown::none() })
    }

    fn say(id: &str, text: &str) -> TaskEvent {
        TaskEvent::Replied(Arc::new(Message::text(Role::Agent, id, text)))
    }

    fn reply(events: Vec<TaskEvent>) -> Option<Sent> {
        let mut picture = TaskPicture::default();
        events.into_iter().for_each(|event| picture.add(Some(&face()), event));
        match picture.reply(Operation::SendMessage, Version::V1_0)? {
            Reply::Sent(sent) => Some(sent),
            other => panic!("{other:?}"),
        }
    }

    fn texts(parts: &[Part]) -> Vec<&str> {
        parts.iter().filter_map(Part::as_text).collect()
    }

    #[test]
    fn law_1_2_7_updates_are_the_picture_of_their_task() {
        let events = vec![chunk("alpha ", true), chunk("beta", true), status(TaskState::Completed)];
        let Some(Sent::Task(shown)) = reply(events) else { panic!() };
        assert_eq!((shown.task.id.as_str(), shown.task.status.state), ("t", TaskState::Completed));
        assert_eq!(texts(&shown.task.artifacts[0].parts), ["alpha ", "beta"], "a piece of an unknown artifact begins it");
        let mut bare = (*shown.task).clone();
        bare.artifacts.clear();
        let Some(Sent::Task(shown)) = reply(vec![chunk("x", false), TaskEvent::Created(Arc::new(bare))]) else { panic!() };
        assert_eq!(texts(&shown.task.artifacts[0].parts), ["x"], "a picture without artifacts deletes none");
    }

    #[test]
    fn law_1_2_9_messages_are_the_answer_only_where_no_task_is() {
        let Some(Sent::Message(message)) = reply(vec![say("m", "a"), say("m", "b"), say("n", "c")]) else { panic!() };
        assert_eq!(texts(&message.parts), ["a", "b", "c"]);
        let Some(Sent::Task(shown)) = reply(vec![say("m", "a"), status(TaskState::Working), say("n", "b")]) else { panic!() };
        let said: Vec<_> = shown.task.history.iter().filter_map(|message| message.first_text()).collect();
        assert_eq!(said, ["a", "b"]);
        assert_eq!(reply(Vec::new()), None);
    }
}
