//! The acceptance tests that the architecture decision named, each in a file of its name.

mod directed;
mod push_ed25519;
mod push_rejected;
mod push_retry;
mod push_signing;
mod sse_backpressure;
mod sse_reconnect;
mod sse_stream;
mod task_cancel;
mod task_lifecycle;

use std::sync::Arc;

use chancery_protocol::{
    Binding, CancelTask, GetTask, Message, Reply, Request, Role, SendConfiguration, SendMessage, Sent, SubscribeToTask, Task,
    TaskId, Version,
};

use crate::support::wire_client::{Combination, Conditions, EventStream, Refusal, WireClient};
use crate::tasks::scenarios::lines;

/// A client of the decision's own surface: `tasks/send` and the other methods of the original protocol.
struct Caller(WireClient);

impl Caller {
    fn new(url: &str) -> Self {
        Self(WireClient::new(url, Combination { version: Version::Original, binding: Binding::JsonRpc }))
    }

    fn message(id: &str, text: &str) -> SendMessage {
        SendMessage {
            tenant: None,
            message: Arc::new(Message::text(Role::User, "", text)),
            configuration: SendConfiguration::default(),
            metadata: None,
            client_task_id: Some(id.into()),
            unknown: Default::default(),
        }
    }

    async fn task(&self, request: Request) -> Result<Arc<Task>, Refusal> {
        match self.0.call(&request, &Conditions::default()).await? {
            Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => Ok(shown.task),
            other => panic!("a task was asked for: {other:?}"),
        }
    }

    async fn send(&self, id: &str, text: &str) -> Arc<Task> {
        self.task(Request::SendMessage(Self::message(id, text))).await.expect("a task")
    }

    async fn send_subscribe(&self, id: &str, text: &str) -> EventStream {
        let request = Request::StreamMessage(Self::message(id, text));
        self.0.stream(&request, &Conditions::default()).await.expect("a stream")
    }

    async fn get(&self, id: &str) -> Arc<Task> {
        let get = GetTask { tenant: None, id: TaskId::from(id), history_length: None };
        self.task(Request::GetTask(get)).await.expect("a task")
    }

    async fn cancel(&self, id: &str) -> Result<Arc<Task>, Refusal> {
        self.task(Request::CancelTask(CancelTask { tenant: None, id: TaskId::from(id), metadata: None })).await
    }

    async fn resubscribe(&self, id: &str, last_event_id: Option<u64>) -> EventStream {
        let request = Request::SubscribeToTask(SubscribeToTask { tenant: None, id: TaskId::from(id) });
        let conditions = Conditions { last_event_id: last_event_id.map(|id| id.to_string()), ..Conditions::default() };
        self.0.stream(&request, &conditions).await.expect("a stream")
    }
}

/// The next event as a line; nothing at the end of the stream.
async fn line(stream: &mut EventStream) -> Option<String> {
    stream.next().await.expect("no error in the stream").map(|seen| lines::event(&seen.event))
}
