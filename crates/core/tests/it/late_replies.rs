//! Blocking sends that are answered late: what they end with, whatever happens to the turn meanwhile.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Answer, Chancery, Finished, LateReply, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{Error, ErrorKind, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, Task, TaskState};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, call_context};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Waits until it is let go, and then does what the message says.
struct Waits(Arc<Notify>);

#[async_trait]
impl TaskRunner for Waits {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        self.0.notified().await;
        match turn.message.first_text() {
            Some("refuse") => Err(RunError::refused(Error::new(ErrorKind::InvalidParams, "not this"))),
            Some("reply") => {
                let message = updates.text("a message");
                Ok(updates.reply(message))
            }
            _ => Ok(updates.complete(None)),
        }
    }

    fn may_reply_with_message(&self) -> bool {
        true
    }
}

struct Node {
    chancery: Chancery,
    let_go: Arc<Notify>,
}

impl Node {
    fn new() -> Self {
        let let_go = Arc::new(Notify::new());
        let store = Arc::new(HookedStore::over(MemoryStore::new()));
        Self { chancery: chancery_testkit::plane(store, Waits(Arc::clone(&let_go)), TaskLimits::default()), let_go }
    }

    async fn send(&self, text: &str, deadline: Option<Instant>) -> Result<Answer, Error> {
        let request = Request::SendMessage(SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "m", text)),
            configuration: SendConfiguration::default(),
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        });
        self.chancery.call_until(&call_context(), request, deadline).await
    }

    /// A send that is late at once.
    async fn late(&self, text: &str) -> LateReply {
        match self.send(text, Some(Instant::now())).await {
            Ok(Answer::Late(late)) => *late,
            other => panic!("{other:?}"),
        }
    }
}

fn task(reply: Reply) -> Arc<Task> {
    match reply {
        Reply::Sent(Sent::Task(shown)) => shown.task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_late_reply_is_the_task_at_the_end_of_its_turn() {
    let node = Node::new();
    let late = node.late("work").await;
    node.let_go.notify_one();
    assert_eq!(task(late.finish().await.0).status.state, TaskState::Completed);
}

#[tokio::test]
async fn a_refusal_before_the_deadline_is_an_error_and_after_it_a_failed_task() {
    let node = Node::new();
    node.let_go.notify_one();
    let refused = node.send("refuse", None).await.unwrap_err();
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::InvalidParams, "not this"));

    let late = node.late("refuse").await;
    node.let_go.notify_one();
    let task = task(late.finish().await.0);
    assert_eq!(task.status.state, TaskState::Failed);
    let reason = task.status.message.as_ref().and_then(|message| message.first_text());
    assert_eq!(reason, Some("not this"), "the caller reads why");
}

#[tokio::test]
async fn a_message_that_comes_late_is_still_the_answer() {
    let node = Node::new();
    let late = node.late("reply").await;
    node.let_go.notify_one();
    match late.finish().await.0 {
        Reply::Sent(Sent::Message(message)) => assert_eq!(message.first_text(), Some("a message")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_node_that_stops_answers_late_calls_with_the_task_as_it_is() {
    let node = Node::new();
    let late = node.late("work").await;
    let chancery = node.chancery.clone();
    let stopping = tokio::spawn(async move { chancery.shut_down(Duration::ZERO).await });
    assert_eq!(task(late.finish().await.0).status.state, TaskState::Submitted);
    stopping.await.unwrap().unwrap();
}
