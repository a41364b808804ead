//! How writes are requested: each is a job in the writer's queue, answered when it is durable.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Appended, NonceVerdict, SpentNonce, StoreError};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::append::EncodedAppend;
use super::fault::{self, PostgresFault};
use super::health::WriterHealth;
use super::writer_state::WriterState;

/// So much longer than its patience a caller waits for the writer's answer.
const LAST_WORD: Duration = Duration::from_millis(250);

/// A write that is requested.
#[derive(Debug)]
pub(super) enum WriteRequest {
    /// Has a variant of its own because it is by far the most frequent, and shares statements with its neighbours.
    Append(Box<EncodedAppend>, oneshot::Sender<Result<Appended, StoreError>>),
    Nonce(SpentNonce, oneshot::Sender<Result<NonceVerdict, StoreError>>),
    Other(Box<dyn InteractiveWrite>),
    /// No more are taken; those that are queued are still done.
    Close,
}

/// A write in the queue, with the time until which its caller waits.
#[derive(Debug)]
pub(super) struct QueuedWrite {
    pub(super) request: WriteRequest,
    pub(super) until: Instant,
}

/// A write that reads before it writes, one statement after the other.
pub(super) trait InteractiveWrite: Send + Sync + fmt::Debug {
    /// Writes. May be called again after a transaction that failed, and what it said for the record is said again.
    fn perform<'a>(&'a mut self, state: &'a mut WriterState) -> BoxFuture<'a, Result<(), PostgresFault>>;

    /// Answers the requester, once the transaction is durable or has failed.
    fn tell(self: Box<Self>, outcome: Result<(), StoreError>);

    /// Comes after the others of its batch, in a transaction of its own: no append waits for it.
    fn is_tidying(&self) -> bool;

    fn what(&self) -> &'static str;
}

/// The work of a write: a function of what was asked and of the writer.
pub(super) type WriteWork<A, T> = for<'a> fn(&'a A, &'a mut WriterState) -> BoxFuture<'a, Result<T, PostgresFault>>;

struct FunctionWrite<A, T> {
    what: &'static str,
    asked: A,
    work: WriteWork<A, T>,
    tidies: bool,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<A, T> fmt::Debug for FunctionWrite<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionWrite({})", self.what)
    }
}

impl<A: Send + Sync, T: Send + Sync> InteractiveWrite for FunctionWrite<A, T> {
    fn perform<'a>(&'a mut self, state: &'a mut WriterState) -> BoxFuture<'a, Result<(), PostgresFault>> {
        Box::pin(async move {
            self.done = Some((self.work)(&self.asked, state).await?);
            Ok(())
        })
    }

    /// The requester may have stopped waiting; that is no error.
    fn tell(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { done, answer, .. } = *self;
        let nothing = || PostgresFault::unreadable("nothing was done").while_doing("writing");
        drop(answer.send(outcome.and_then(|()| done.ok_or_else(nothing))));
    }

    fn is_tidying(&self) -> bool {
        self.tidies
    }

    fn what(&self) -> &'static str {
        self.what
    }
}

/// Puts writes into the queue of the writer.
#[derive(Clone, Debug)]
pub(super) struct WriteRequests {
    pub(super) queue: mpsc::WeakSender<QueuedWrite>,
    pub(super) health: Arc<WriterHealth>,
    pub(super) patience: Duration,
}

impl WriteRequests {
    pub(super) async fn append(&self, prepared: Box<EncodedAppend>) -> Result<Appended, StoreError> {
        self.request(|answer| WriteRequest::Append(prepared, answer)).await
    }

    pub(super) async fn spend(&self, nonce: SpentNonce) -> Result<NonceVerdict, StoreError> {
        self.request(|answer| WriteRequest::Nonce(nonce, answer)).await
    }

    /// As one of many writes of its transaction.
    pub(super) async fn perform<A, T>(&self, what: &'static str, asked: A, work: WriteWork<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let write = |answer| FunctionWrite { what, asked, work, tidies: false, done: None, answer };
        self.request(|answer| WriteRequest::Other(Box::new(write(answer)))).await
    }

    /// After the other writes that wait.
    pub(super) async fn tidy<A, T>(&self, what: &'static str, asked: A, work: WriteWork<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let write = |answer| FunctionWrite { what, asked, work, tidies: true, done: None, answer };
        self.request(|answer| WriteRequest::Other(Box::new(write(answer)))).await
    }

    async fn request<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriteRequest,
    ) -> Result<T, StoreError> {
        self.health.may_write()?;
        let queue = self.queue.upgrade().ok_or_else(fault::closed)?;
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + self.patience;
        let write = QueuedWrite { request: request(answer), until };
        let answered = async move {
            queue.send(write).await.map_err(|_| fault::closed())?;
            drop(queue);
            answered.await.map_err(|_| fault::stopped())?
        };
        let late =
            |_| PostgresFault::away("it did not answer in time; whether the write was made is not known").while_doing("writing");
        tokio::time::timeout_at(until + LAST_WORD, answered).await.map_err(late)?
    }
}
