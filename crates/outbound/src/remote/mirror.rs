//! What an agent elsewhere has told of a task, so that hearing it again changes nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use chancery_core::task_state;
use chancery_identity::SealKey;
use chancery_protocol::{
    Artifact, ArtifactChunk, ArtifactId, ContextId, Message, MessageId, Part, PartContent, StatusChange, Task, TaskEvent, TaskId,
    TaskState, TaskStatus, Unknown,
};
use chancery_wire::Face;

use crate::new_message_id;

/// Why what a peer said cannot be taken for news of the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Strange {
    #[error("the agent spoke of another task")]
    OtherTask { expected: TaskId, heard: TaskId },
    #[error("the agent went on with an artifact {0} that it never began")]
    UnknownArtifact(ArtifactId),
    #[error("the agent named no task")]
    NoTask,
    #[error("the agent gave {0} an id of {1} bytes, more than {ID_BYTES}")]
    LongId(&'static str, usize),
}

/// The longest id of an agent elsewhere. Ids are kept whole wherever something is told of what they name: in the log, in lists
/// and in the record, where an entry has to fit into a line of a bundle.
const ID_BYTES: usize = 1024;

fn no_longer(what: &'static str, id: &str) -> Result<(), Strange> {
    if id.len() > ID_BYTES { Err(Strange::LongId(what, id.len())) } else { Ok(()) }
}

#[derive(Debug)]
pub(super) struct Mirror {
    task: Option<TaskId>,
    context: Option<ContextId>,
    /// The task as it was passed on.
    seen: Task,
    /// Words that were passed on with a status, by their id at the peer.
    said: BTreeSet<MessageId>,
    /// Artifacts whose last piece was passed on.
    closed: BTreeSet<ArtifactId>,
}

impl Mirror {
    /// `task` is ours, with all that was passed on before.
    pub(super) fn of(task: &Task, at_peer: Option<TaskId>, context: Option<ContextId>) -> Self {
        let words = task.history.iter().chain(task.status.message.iter());
        let said = words.map(|message| message.message_id.clone()).collect();
        Self { task: at_peer, context, seen: task.clone(), said, closed: BTreeSet::new() }
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
                let known = self.artifact(&chunk.artifact.artifact_id);
                if chunk.append && known.is_none() {
                    return Err(Strange::UnknownArtifact(chunk.artifact.artifact_id.clone()));
                }
                // A whole one may be heard twice. A piece that comes twice may well be meant so.
                let closes = chunk.last_chunk && !self.closed.contains(&chunk.artifact.artifact_id);
                let again = !chunk.append
                    && known == Some(&*brief(&chunk.artifact))
                    && !closes
                    && chunk.metadata.is_none()
                    && chunk.unknown.is_empty();
                if again { Vec::new() } else { vec![TaskEvent::Artifact(chunk)] }
            }
            // What callers say is ours to record.
            TaskEvent::Said(_) => Vec::new(),
            TaskEvent::Replied(message) => vec![TaskEvent::Replied(message)],
        };
        let news: Vec<_> = news.into_iter().filter(|event| !self.is_empty_status(event)).map(with_message_id).collect();
        news.iter().try_for_each(check_ids)?;
        for event in &news {
            self.note(event);
        }
        Ok(news)
    }

    fn identify(&mut self, task: &TaskId, context: &ContextId) -> Result<(), Strange> {
        if task.as_str().is_empty() {
            return Err(Strange::NoTask);
        }
        no_longer("a task", task.as_str())?;
        no_longer("a context", context.as_str())?;
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

    /// The same for the first event of a stream, which in the original is the status as it was: the state we know is no news
    /// there, also one in which a turn ends.
    pub(super) fn hear_first(&mut self, face: Option<&Face>, event: TaskEvent) -> Result<Vec<TaskEvent>, Strange> {
        match &event {
            TaskEvent::Status(change) if self.says_nothing_new(change) => {
                face.map_or(Ok(()), |face| self.identify(&face.task_id, &face.context_id)).map(|()| Vec::new())
            }
            _ => self.hear(face, event),
        }
    }

    /// What a picture of the whole task shows that was not passed on yet.
    fn compare(&self, picture: &Task) -> Vec<TaskEvent> {
        let TaskStatus { state, message, .. } = &picture.status;
        let new_words = message.as_ref().is_some_and(|message| !self.knows(message));
        let status = (*state != self.seen.status.state || new_words).then(|| {
            let metadata = picture.metadata.clone();
            // A task that is known already is not told anew: what nobody here knows of it comes with its status, as its metadata.
            let unknown = Unknown::from_other(&picture.unknown);
            TaskEvent::Status(StatusChange { status: picture.status.clone(), metadata, unknown })
        });
        let made = picture.artifacts.iter().filter_map(|artifact| self.unseen(artifact, state.is_terminal()));
        // What a turn ends with comes last, and what it goes on with first.
        match status {
            Some(status) if *state == TaskState::Working => [status].into_iter().chain(made).collect(),
            status => made.chain(status).collect(),
        }
    }

    /// As much of an artifact as was not passed on: the rest of it, if it has grown, or all of it.
    fn unseen(&self, artifact: &Arc<Artifact>, last_chunk: bool) -> Option<TaskEvent> {
        let whole = || (Arc::clone(artifact), false);
        let (artifact, append) = match self.artifact(&artifact.artifact_id) {
            None => whole(),
            Some(seen) if *seen == *brief(artifact) => return None,
            Some(seen) => {
                let brief = brief(artifact);
                let grown =
                    brief.parts.starts_with(&seen.parts) && Artifact { parts: seen.parts.clone(), ..brief.into_owned() } == *seen;
                let rest = || Artifact { parts: artifact.parts[seen.parts.len()..].to_vec(), ..(**artifact).clone() };
                if grown { (Arc::new(rest()), true) } else { whole() }
            }
        };
        Some(TaskEvent::Artifact(ArtifactChunk { artifact, append, last_chunk, metadata: None, unknown: Unknown::none() }))
    }

    /// A status that our log has no room for: submitted is how it began, and the same again without a word says nothing.
    fn is_empty_status(&self, event: &TaskEvent) -> bool {
        let TaskEvent::Status(change) = event else { return false };
        match change.status.state {
            TaskState::Submitted | TaskState::Unspecified => true,
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
            }
            TaskEvent::Artifact(chunk) if chunk.last_chunk => {
                self.closed.insert(chunk.artifact.artifact_id.clone());
            }
            _ => {}
        }
        match event {
            TaskEvent::Artifact(chunk) => {
                let artifact = match brief(&chunk.artifact) {
                    Cow::Borrowed(_) => Arc::clone(&chunk.artifact),
                    Cow::Owned(brief) => Arc::new(brief),
                };
                task_state::apply(&mut self.seen, &TaskEvent::Artifact(ArtifactChunk { artifact, ..chunk.clone() }));
            }
            event => task_state::apply(&mut self.seen, event),
        }
    }

    /// In the original messages have no ids, and only what was said last can be known again.
    fn knows(&self, message: &Message) -> bool {
        if message.message_id.as_str().is_empty() {
            return self.seen.status.message.as_ref().is_some_and(|last| last.parts == message.parts);
        }
        self.said.contains(&message.message_id)
    }

    fn artifact(&self, id: &ArtifactId) -> Option<&Artifact> {
        self.seen.artifacts.iter().find(|artifact| artifact.artifact_id == *id).map(|artifact| &**artifact)
    }
}

/// As much of an artifact as it takes to know it again: the digest of what is large.
fn brief(artifact: &Artifact) -> Cow<'_, Artifact> {
    const LARGE: usize = 4096;
    let is_large = |part: &Part| matches!(&part.content, PartContent::Raw(bytes) if bytes.len() > LARGE);
    if !artifact.parts.iter().any(is_large) {
        return Cow::Borrowed(artifact);
    }
    let mut brief = artifact.clone();
    for part in &mut brief.parts {
        if let PartContent::Raw(bytes) = &mut part.content
            && bytes.len() > LARGE
        {
            *bytes = Bytes::copy_from_slice(&SealKey::digest(bytes));
        }
    }
    Cow::Owned(brief)
}

/// Words that came without an id get one, because later versions want one.
fn with_message_id(mut event: TaskEvent) -> TaskEvent {
    let words = match &mut event {
        TaskEvent::Status(StatusChange { status: TaskStatus { message: Some(message), .. }, .. }) => message,
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
            Some(message) => no_longer("a message", message.message_id.as_str()),
            None => Ok(()),
        },
        TaskEvent::Said(message) | TaskEvent::Replied(message) => no_longer("a message", message.message_id.as_str()),
        TaskEvent::Artifact(chunk) => no_longer("an artifact", chunk.artifact.artifact_id.as_str()),
        TaskEvent::Created(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_protocol::Role;

    fn asking(id: &str) -> TaskEvent {
        let message = Message::of_parts(Role::Agent, id, vec![Part::text("which colour?")]);
        TaskEvent::Created(Arc::new(task(TaskState::InputRequired, Some(message))))
    }

    fn task(state: TaskState, message: Option<Message>) -> Task {
        Task {
            id: "theirs".into(),
            context_id: "talk".into(),
            status: TaskStatus { state, message: message.map(Arc::new), timestamp: None, unknown: Default::default() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            unknown: Default::default(),
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

    #[test]
    fn what_nobody_knows_of_the_task_comes_with_its_status() {
        let mut mirror = Mirror::of(&task(TaskState::Submitted, None), None, None);
        let mut done = task(TaskState::Completed, None);
        let json = |text: &str| chancery_protocol::Json::parse(text.to_owned()).unwrap();
        assert!(done.unknown.insert("x", json("1.0e5")) && done.unknown.insert("final", json("1")));
        assert!(done.status.unknown.insert("y", json("0.10")));
        let news = mirror.hear(None, TaskEvent::Created(Arc::new(done))).unwrap();
        let [TaskEvent::Status(change)] = &news[..] else { panic!("{news:?}") };
        let members: Vec<_> = change.unknown.iter().map(|(name, value)| (name, value.text())).collect();
        assert_eq!(members, [("x", "1.0e5")], "and not what an update has itself");
        assert_eq!(change.status.unknown.get("y").unwrap().text(), "0.10");
    }

    /// Of what an id is, and something that has it.
    type Saying<'a> = (&'static str, &'a dyn Fn(&str) -> TaskEvent);

    #[test]
    fn ids_are_as_long_as_they_may_be_and_no_longer() {
        let artifact = |id: &str| Artifact::new(id, vec![Part::text("x")]);
        let whole = |id: &str, context: &str, made: Option<&str>| {
            let mut whole = task(TaskState::Completed, None);
            (whole.id, whole.context_id) = (id.into(), context.into());
            whole.artifacts.extend(made.map(|id| Arc::new(artifact(id))));
            TaskEvent::Created(Arc::new(whole))
        };
        let piece = |id: &str| {
            let (artifact, unknown) = (Arc::new(artifact(id)), Unknown::none());
            TaskEvent::Artifact(ArtifactChunk { artifact, append: false, last_chunk: true, metadata: None, unknown })
        };
        let reply = |id: &str| TaskEvent::Replied(Arc::new(Message::of_parts(Role::Agent, id, vec![Part::text("x")])));
        let heard = |event: TaskEvent| Mirror::of(&task(TaskState::Submitted, None), None, None).hear(None, event);
        let said: [Saying<'_>; 6] = [
            ("a task", &|id| whole(id, "talk", None)),
            ("a context", &|id| whole("theirs", id, None)),
            ("an artifact", &|id| whole("theirs", "talk", Some(id))),
            ("an artifact", &piece),
            ("a message", &reply),
            ("a message", &asking),
        ];
        for (what, event) in said {
            assert!(!heard(event(&"x".repeat(ID_BYTES))).unwrap().is_empty(), "{what}");
            let strange = heard(event(&"x".repeat(ID_BYTES + 1))).unwrap_err();
            assert_eq!(strange, Strange::LongId(what, ID_BYTES + 1));
            assert!(strange.to_string().contains("1025 bytes, more than 1024"), "{strange}");
        }
    }
}
