//! Runs the turns of a runner in a unit test, without a node.

use std::sync::Arc;

use chancery_core::{
    Agent, Agents, Answer, Chancery, ChanceryParts, Dedupe, NextEvents, RetentionConfig, Rulebook, SystemClock, TaskLimits,
    TaskRunner,
};
use chancery_identity::SealKey;
use chancery_protocol::{
    AgentCard, CallContext, Caller, Error, ErrorKind, GetTask, Message, Metadata, Reply, Request, Role, SendMessage, Task,
    TaskEvent, TaskId,
};
use chancery_store::MemoryStore;

use crate::executor::answered;
use crate::seal::KeySeal;

/// Runs turns of a runner in a unit test, without a node.
///
/// The runner gets the same turns and the same sink as in a node. Its tasks are in memory.
///
/// ```
/// use chancery::{Finished, RunError, TaskRunner, TaskState, TaskUpdateSink, Turn, async_trait, test_turn};
///
/// struct Greeter;
///
/// #[async_trait]
/// impl TaskRunner for Greeter {
///     async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
///         match turn.message.first_text() {
///             Some(name) => {
///                 let greeting = updates.text(format!("Hello, {name}!"));
///                 Ok(updates.complete(Some(greeting)))
///             }
///             None => Ok(updates.fail("nobody to greet")),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), chancery::protocol::Error> {
/// let turn = test_turn(Greeter).send("Ada").await?;
/// assert_eq!(turn.task.status.state, TaskState::Completed);
/// assert_eq!(turn.said(), Some("Hello, Ada!"));
/// # Ok(())
/// # }
/// ```
pub fn test_turn(runner: impl TaskRunner) -> TestTurn {
    TestTurn { runner: Arc::new(runner), caller: Caller::new("default", "test"), metadata: None, begun: None, sent: 0 }
}

/// The turns of one task, made by [`test_turn`].
#[must_use]
pub struct TestTurn {
    runner: Arc<dyn TaskRunner>,
    caller: Caller,
    metadata: Option<Metadata>,
    begun: Option<Begun>,
    sent: u32,
}

/// The control plane of the turns, and the task that they are turns of.
struct Begun {
    chancery: Chancery,
    task: Option<TaskId>,
}

/// The result of a turn.
#[derive(Clone, Debug)]
pub struct TestedTurn {
    /// The task after the turn. If the runner answered with a message, the task completed with that message.
    pub task: Arc<Task>,
    /// The message that a runner answered with instead of a task.
    pub reply: Option<Arc<Message>>,
    /// The events of the turn, in order. The first turn begins with the new task.
    pub events: Vec<TaskEvent>,
}

impl TestedTurn {
    /// Returns the first text of the reply, or of the task's status.
    pub fn said(&self) -> Option<&str> {
        self.reply.as_deref().or(self.task.status.message.as_deref()).and_then(Message::first_text)
    }
}

impl std::fmt::Debug for TestTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestTurn").field("caller", &self.caller).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl TestTurn {
    /// Sets the caller of the turns.
    pub fn caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// Sets the metadata that comes beside each message.
    pub fn metadata(self, metadata: Metadata) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// Runs a turn with a text, and waits for its end.
    pub async fn send(&mut self, text: impl Into<String>) -> Result<TestedTurn, Error> {
        self.send_message(Message::text(Role::User, format!("message-{}", self.sent + 1), text)).await
    }

    /// Runs a turn with a message, and waits for its end. If the task waits for its caller, the message continues it.
    ///
    /// The error is that of a runner that rejected the message ([`RunError::refused`](crate::RunError::refused)).
    pub async fn send_message(&mut self, mut message: Message) -> Result<TestedTurn, Error> {
        self.sent += 1;
        if self.begun.is_none() {
            self.begun = Some(Begun { chancery: plane(Arc::clone(&self.runner))?, task: None });
        }
        let context = CallContext::new(self.caller.clone(), chancery_core::new_trace_id());
        let internal = || Error::new(ErrorKind::Internal, "a call was answered with something else");
        let begun = self.begun.as_mut().ok_or_else(internal)?;
        message.task_id = message.task_id.or_else(|| begun.task.clone());
        let send = SendMessage { metadata: self.metadata.clone(), ..SendMessage::new(message) };
        let Answer::Stream(mut stream) = begun.chancery.call(&context, Request::StreamMessage(send)).await? else {
            return Err(internal());
        };
        let id = stream.task_id().clone();
        let mut events = Vec::new();
        while let NextEvents::Events(more) = stream.next().await? {
            events.extend(more.iter().map(|entry| entry.event.clone()));
        }
        let reply = events.iter().find_map(|event| match event {
            TaskEvent::Replied(message) => Some(Arc::clone(message)),
            _ => None,
        });
        if let Some(message) = reply {
            begun.task = None;
            return Ok(TestedTurn { task: Arc::new(answered(Arc::clone(&message))), reply: Some(message), events });
        }
        let get = Request::GetTask(GetTask { tenant: None, id: id.clone(), history_length: None });
        let Answer::Reply(Reply::Task(named)) = begun.chancery.call(&context, get).await? else { return Err(internal()) };
        begun.task = (!named.task.status.state.is_terminal()).then_some(id);
        Ok(TestedTurn { task: named.task, reply: None, events })
    }
}

/// A control plane with one agent: the same steps as in a node, in memory.
fn plane(runner: Arc<dyn TaskRunner>) -> Result<Chancery, Error> {
    let no_key = |fault: chancery_identity::KeyError| Error::new(ErrorKind::Internal, fault.to_string());
    let key = SealKey::random_bytes().and_then(|bytes| SealKey::new(&bytes)).map_err(no_key)?;
    let card = AgentCard { default_input_modes: vec!["*/*".to_owned()], ..AgentCard::default() };
    let agent =
        Agent { name: "agent".into(), card: Arc::new(card), extended: None, runner, exposed: true, enforces_input_modes: true };
    Ok(Chancery::new(ChanceryParts {
        agents: Agents::new(agent),
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        seal: Arc::new(KeySeal(key)),
        limits: TaskLimits::default(),
        retention: RetentionConfig::default(),
        dedupe: Dedupe::Off,
        rules: Rulebook::default(),
        hops: None,
        push: None,
    }))
}

#[cfg(test)]
mod tests {
    use chancery_protocol::TaskState;

    use super::*;
    use crate::agents::Conformance;

    #[tokio::test]
    async fn a_runner_is_run_to_its_end_with_all_it_did() {
        let mut turn = test_turn(Conformance);
        let done = turn.send("stream 3 1").await.unwrap();
        assert_eq!(done.task.status.state, TaskState::Completed);
        assert!(matches!(done.events[0], TaskEvent::Created(_)), "{:?}", done.events);
        let chunks = done.events.iter().filter(|event| matches!(event, TaskEvent::Artifact(_))).count();
        assert_eq!((chunks, done.task.artifacts.len()), (3, 1));
    }

    #[tokio::test]
    async fn a_task_that_asks_goes_on_with_the_next_message_and_one_that_ended_does_not() {
        let mut turn = test_turn(Conformance);
        let asked = turn.send("ask which one?").await.unwrap();
        assert_eq!((asked.task.status.state, asked.said()), (TaskState::InputRequired, Some("which one?")));
        let next = turn.send("complete").await.unwrap();
        assert_eq!((&next.task.id, next.task.status.state), (&asked.task.id, TaskState::Completed));
        assert_ne!(turn.send("complete").await.unwrap().task.id, next.task.id);
    }

    #[tokio::test]
    async fn a_failure_is_the_reason_of_the_task_and_a_reply_is_a_message() {
        let failed = test_turn(Conformance).send("fail out of ink").await.unwrap();
        assert_eq!((failed.task.status.state, failed.said()), (TaskState::Failed, Some("out of ink")));
        let replied = test_turn(Conformance).send("message hello yourself").await.unwrap();
        assert_eq!((replied.reply.is_some(), replied.said()), (true, Some("hello yourself")));
    }
}
