//! An agent that asks for an authorisation and goes on by itself: how long streams stay open, and what a message does meanwhile.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{
    Answer, Chancery, Finished, LogEntry, NextEvents, RunError, Subscription, TaskLimits, TaskRunner, TaskUpdateSink, Turn,
};
use chancery_protocol::{
    Binding, CallContext, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskEvent, TaskId, TaskState,
    Version,
};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, call_context};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Far longer than any step takes.
const LONG: Duration = Duration::from_secs(20);

/// Asks for an authorisation. What it does then is in its message; it takes every step when it is let go.
struct Asks(Arc<Semaphore>);

impl Asks {
    async fn step(&self) {
        self.0.acquire().await.expect("it is never closed").forget();
    }
}

#[async_trait]
impl TaskRunner for Asks {
    async fn run(&self, turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let asks = updates.text("please authorise");
        match turn.message.first_text().unwrap_or_default() {
            "and end" => Ok(updates.auth_required(asks)),
            "and leave" => {
                let waiting = updates.await_authorization(asks).await?;
                self.step().await;
                Ok(waiting.finish())
            }
            "and listen" => {
                let waiting = updates.await_authorization(asks).await?;
                waiting.message_waits().await;
                Ok(waiting.finish())
            }
            "and go on" => {
                let mut updates = updates.await_authorization(asks).await?.go_on();
                self.step().await;
                updates.working(None).await?;
                self.step().await;
                Ok(updates.complete(None))
            }
            _ => Ok(updates.complete(None)),
        }
    }
}

struct Node {
    chancery: Chancery,
    steps: Arc<Semaphore>,
}

fn context(version: Version, binding: Binding) -> CallContext {
    CallContext { version, binding, ..call_context() }
}

fn message(text: &str, task: Option<&TaskId>) -> SendMessage {
    let message = Message { task_id: task.cloned(), ..Message::text(Role::User, "m", text) };
    SendMessage {
        tenant: None,
        message: Arc::new(message),
        configuration: SendConfiguration::default(),
        metadata: None,
        client_task_id: None,
        unknown: Default::default(),
    }
}

impl Node {
    fn new() -> Self {
        let steps = Arc::new(Semaphore::new(0));
        let store = Arc::new(HookedStore::over(MemoryStore::new()));
        Self { chancery: chancery_testkit::plane(store, Asks(Arc::clone(&steps)), TaskLimits::default()), steps }
    }

    async fn stream(&self, context: &CallContext, text: &str) -> Subscription {
        match self.chancery.call(context, Request::StreamMessage(message(text, None))).await {
            Ok(Answer::Stream(subscription)) => *subscription,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a message to the task and waits for the end of its turn.
    async fn say(&self, task: &TaskId, text: &str) -> TaskState {
        let context = call_context();
        let sent = self.chancery.call(&context, Request::SendMessage(message(text, Some(task))));
        match timeout(LONG, sent).await.expect("the message has its turn") {
            Ok(Answer::Reply(Reply::Sent(Sent::Task(shown)))) => shown.task.status.state,
            other => panic!("{other:?}"),
        }
    }
}

fn state(entry: &LogEntry) -> Option<TaskState> {
    match &entry.event {
        TaskEvent::Status(change) => Some(change.status.state),
        _ => None,
    }
}

/// Each status of the stream, and whether the stream stays open there, up to the state or the end.
async fn until(stream: &mut Subscription, wanted: Option<TaskState>) -> Vec<(TaskState, bool)> {
    let mut seen = Vec::new();
    loop {
        match timeout(LONG, stream.next()).await.expect("the stream does not stand still").expect("no error") {
            NextEvents::Events(entries) => {
                seen.extend(entries.iter().filter_map(|entry| Some((state(entry)?, stream.stays_open_at(entry)))));
                if wanted.is_some() && seen.last().map(|(state, _)| *state) == wanted {
                    return seen;
                }
            }
            NextEvents::Done => return seen,
            NextEvents::ShuttingDown => panic!("nobody stops the node"),
        }
    }
}

/// With a pause after every step, so that a stream that closes too early is seen to.
#[tokio::test]
async fn a_stream_of_every_version_stays_open_until_the_turn_is_over_also_past_working() {
    for version in [Version::V1_0, Version::V0_3, Version::Original] {
        let node = Node::new();
        let mut stream = node.stream(&context(version, Binding::JsonRpc), "and go on").await;
        let asked = until(&mut stream, Some(TaskState::AuthRequired)).await;
        assert_eq!(asked, [(TaskState::AuthRequired, true)], "{version}");
        node.steps.add_permits(1);
        assert_eq!(until(&mut stream, Some(TaskState::Working)).await, [(TaskState::Working, false)], "{version}");
        node.steps.add_permits(1);
        assert_eq!(until(&mut stream, None).await, [(TaskState::Completed, false)], "{version}: the stream was open until then");
    }
}

#[tokio::test]
async fn a_turn_that_ends_with_auth_required_ends_its_stream_there() {
    for version in [Version::V1_0, Version::V0_3, Version::Original] {
        let node = Node::new();
        let mut stream = node.stream(&context(version, Binding::JsonRpc), "and end").await;
        assert_eq!(until(&mut stream, None).await, [(TaskState::AuthRequired, false)], "{version}");
    }
}

/// Whether more would come was not known when the status was shown.
#[tokio::test]
async fn where_the_protocol_marks_the_last_status_it_is_shown_again_if_nothing_followed() {
    for (version, binding, is_shown_again) in [
        (Version::V1_0, Binding::JsonRpc, false),
        (Version::V1_0, Binding::Grpc, false),
        (Version::V1_0, Binding::Swp, true),
        (Version::V0_3, Binding::Rest, true),
        (Version::Original, Binding::JsonRpc, true),
    ] {
        let node = Node::new();
        let mut stream = node.stream(&context(version, binding), "and leave").await;
        assert_eq!(until(&mut stream, Some(TaskState::AuthRequired)).await, [(TaskState::AuthRequired, true)]);
        node.steps.add_permits(1);
        let rest = until(&mut stream, None).await;
        let again: &[_] = if is_shown_again { &[(TaskState::AuthRequired, false)] } else { &[] };
        assert_eq!(rest, again, "{version} {binding:?}");
    }
}

#[tokio::test]
async fn an_agent_that_listens_gets_the_callers_message_at_once_and_open_streams_show_its_turn() {
    let node = Node::new();
    let mut stream = node.stream(&context(Version::V1_0, Binding::JsonRpc), "and listen").await;
    until(&mut stream, Some(TaskState::AuthRequired)).await;
    assert_eq!(node.say(&stream.task_id().clone(), "done").await, TaskState::Completed);
    assert_eq!(until(&mut stream, None).await, [(TaskState::Completed, false)]);
}

#[tokio::test]
async fn an_agent_that_does_not_listen_goes_on_and_the_message_is_the_next_turn() {
    let node = Node::new();
    let mut stream = node.stream(&context(Version::V1_0, Binding::JsonRpc), "and leave").await;
    until(&mut stream, Some(TaskState::AuthRequired)).await;
    let task = stream.task_id().clone();
    let (said, ()) = tokio::join!(node.say(&task, "done"), async { node.steps.add_permits(1) });
    assert_eq!(said, TaskState::Completed);
}
