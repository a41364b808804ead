//! Forwards refused sends of the original protocol to the GET streams that wait for the task they would have
//! made.

use std::sync::Arc;

use chancery_protocol::{CallContext, Caller, Error, Request};
use tokio::sync::broadcast;

/// Refusals that a waiting stream may fall behind by. One that falls further behind waits until `limits.listen_ms`.
const BACKLOG: usize = 64;

/// The refusal of a send whose client named its task.
#[derive(Debug)]
pub(crate) struct RefusedName {
    caller: Caller,
    name: Arc<str>,
    error: Error,
}

/// Where refused sends are announced. Cheap to clone; all clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct RefusedNames(broadcast::Sender<Arc<RefusedName>>);

impl Default for RefusedNames {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG).0)
    }
}

impl RefusedNames {
    /// The name a call gives to the task it makes, if any stream waits for a task. Most calls name none, and cost nothing.
    pub(crate) fn awaited(&self, call: &Request) -> Option<Arc<str>> {
        let (Request::SendMessage(send) | Request::StreamMessage(send)) = call else { return None };
        send.client_task_id.clone().filter(|_| self.0.receiver_count() > 0)
    }

    pub(crate) fn announce(&self, context: &CallContext, name: Arc<str>, error: &Error) {
        // Sending fails only where the last listener has just gone.
        let _ = self.0.send(Arc::new(RefusedName { caller: context.caller.clone(), name, error: error.clone() }));
    }

    pub(crate) fn listen(&self) -> Refusals {
        Refusals(self.0.subscribe())
    }
}

/// The refusals from one moment on.
#[derive(Debug)]
pub(crate) struct Refusals(broadcast::Receiver<Arc<RefusedName>>);

impl Refusals {
    /// Waits until a send of this caller under this name is refused. Without a refusal it waits forever.
    pub(crate) async fn of(&mut self, caller: &Caller, name: &str) -> Error {
        loop {
            match self.0.recv().await {
                Ok(refused) if refused.caller == *caller && *refused.name == *name => return refused.error.clone(),
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
