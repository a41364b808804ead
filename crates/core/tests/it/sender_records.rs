//! A blocking send drives the recording of its own turn, so that no other task is started for it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::{Answer, Chancery, Finished, RunError, TaskLimits, TaskRunner, TaskUpdateSink, Turn};
use chancery_protocol::{
    Error, ErrorKind, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, TaskId, TaskState,
};
use chancery_store::MemoryStore;
use chancery_testkit::{HookedStore, call_context};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Ends its turn at once with a question.
struct QuickAsker;

#[async_trait]
impl TaskRunner for QuickAsker {
    async fn run(&self, _turn: Turn, updates: TaskUpdateSink) -> Result<Finished, RunError> {
        let question = updates.text("which?");
        Ok(updates.input_required(question))
    }
}

/// A node whose store takes the creation of one task and holds everything after it.
struct HeldNode {
    chancery: Chancery,
    store: Arc<HookedStore>,
}

impl HeldNode {
    fn new() -> Self {
        let store = Arc::new(HookedStore::over(MemoryStore::new()));
        store.close_gate();
        store.admit(1);
        let chancery = chancery_testkit::plane(Arc::clone(&store) as _, QuickAsker, TaskLimits::default());
        Self { chancery, store }
    }

    async fn send(&self, immediately: bool, deadline: Option<Instant>) -> Result<Answer, Error> {
        let configuration = SendConfiguration { return_immediately: immediately, ..SendConfiguration::default() };
        let request = Request::SendMessage(SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "m", "go")),
            configuration,
            metadata: None,
            client_task_id: None,
            unknown: Default::default(),
        });
        self.chancery.call_until(&call_context(), request, deadline).await
    }

    /// The only task, with its last stored entry.
    fn stored(&self) -> (TaskId, u64) {
        let (stored, _) = self.store.logs().pop().expect("a task was made");
        (stored.task.id.clone(), stored.progress.seq)
    }

    /// Waits for the end of the turn in the store.
    async fn recorded(&self) {
        while self.stored().1 < 2 {
            tokio::task::yield_now().await;
        }
    }
}

/// The tasks of the runtime beside the test itself.
fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn state(reply: &Reply) -> TaskState {
    match reply {
        Reply::Sent(Sent::Task(shown)) => shown.task.status.state,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sender_that_stays_needs_no_task_of_its_own_and_is_answered_after_the_write() {
    let node = HeldNode::new();
    let mut send = Box::pin(node.send(false, None));
    for _ in 0..3 {
        assert!(futures::poll!(&mut send).is_pending(), "the end of the turn is not stored");
        assert_eq!((tasks(), node.stored().1), (0, 1));
    }
    node.store.admit(1);
    match send.await.unwrap() {
        Answer::Reply(reply) => assert_eq!((state(&reply), node.stored().1), (TaskState::InputRequired, 2)),
        other => panic!("{other:?}"),
    }
    assert_eq!(tasks(), 0);
}

#[tokio::test]
async fn a_sender_that_leaves_hands_the_recording_to_the_background() {
    let node = HeldNode::new();
    let mut send = Box::pin(node.send(false, None));
    assert!(futures::poll!(&mut send).is_pending());
    drop(send);
    assert_eq!(tasks(), 1);
    node.store.admit(1);
    node.recorded().await;
}

#[tokio::test]
async fn a_send_that_does_not_wait_leaves_the_recording_in_the_background() {
    let node = HeldNode::new();
    let answer = node.send(true, None).await.unwrap();
    assert!(matches!(answer, Answer::Reply(reply) if state(&reply) == TaskState::Submitted), "nothing else is stored");
    assert_eq!(tasks(), 1);
    node.store.admit(1);
    node.recorded().await;
}

#[tokio::test]
async fn a_deadline_makes_the_reply_late_and_the_recording_goes_on() {
    let node = HeldNode::new();
    let late = match node.send(false, Some(Instant::now())).await {
        Ok(Answer::Late(late)) => late,
        other => panic!("{other:?}"),
    };
    assert_eq!(tasks(), 1);
    node.store.admit(1);
    assert_eq!(state(&late.finish().await.0), TaskState::InputRequired);
}

#[tokio::test]
async fn a_stop_waits_for_the_recording_that_a_sender_drives() {
    let node = HeldNode::new();
    let mut send = Box::pin(node.send(false, Some(Instant::now() + Duration::from_secs(60))));
    assert!(futures::poll!(&mut send).is_pending());
    let mut stop = Box::pin(node.chancery.shut_down(Duration::from_secs(60)));
    assert!(futures::poll!(&mut stop).is_pending());
    assert!(futures::poll!(&mut send).is_pending(), "the write is under way, and the sender gets its answer");
    node.store.admit(1);
    assert!(send.await.is_ok());
    stop.await.unwrap();
}

#[tokio::test]
async fn a_stop_ends_the_wait_of_a_sender_without_a_deadline() {
    let node = HeldNode::new();
    let mut send = Box::pin(node.send(false, None));
    assert!(futures::poll!(&mut send).is_pending());
    let mut stop = Box::pin(node.chancery.shut_down(Duration::from_secs(60)));
    assert!(futures::poll!(&mut stop).is_pending());
    assert_eq!(send.await.unwrap_err().kind, ErrorKind::Unavailable);
    node.store.admit(1);
    stop.await.unwrap();
    assert_eq!(node.stored().1, 2, "what the agent did is stored before the stop");
}
