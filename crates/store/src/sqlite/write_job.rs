//! A write of any kind, as a job for the writer: done within the batch's transaction, answered when that is durable.

use std::cell::RefCell;
use std::fmt;

use chancery_core::StoreError;
use tokio::sync::oneshot;

use super::fault::SqliteFault;
use super::writer::StoreWriter;

/// When a write is done, and what its answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrder {
    /// With the appends of its batch. The answer waits for the disk.
    Lasting,
    /// Before the others of its batch. It matters only while this process lives, so its answer does not wait
    /// for the disk.
    Fleeting,
    /// After the others of its batch are answered, so that no append waits for it. A crash may undo it: it is then done again.
    Tidying,
}

pub(super) trait WriteJob: Send + fmt::Debug {
    /// Writes. May be called again after a transaction that failed, and what it said for the record is said again.
    fn perform(&self, writer: &mut StoreWriter<'_>) -> Result<(), SqliteFault>;

    /// Answers the requester of the write, once the transaction is durable or has failed.
    fn tell(self: Box<Self>, outcome: Result<(), SqliteFault>);

    fn order(&self) -> WriteOrder;
}

/// A closure as a job. `what` names the write in the error if it fails.
struct ClosureJob<T, W> {
    what: &'static str,
    order: WriteOrder,
    work: W,
    done: RefCell<Option<T>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

/// Makes a job of a closure. It answers with what the closure returned.
pub(super) fn write_job<T: Send + 'static>(
    what: &'static str,
    order: WriteOrder,
    work: impl Fn(&mut StoreWriter<'_>) -> Result<T, SqliteFault> + Send + 'static,
    answer: oneshot::Sender<Result<T, StoreError>>,
) -> Box<dyn WriteJob> {
    Box::new(ClosureJob { what, order, work, done: RefCell::new(None), answer })
}

impl<T, W> fmt::Debug for ClosureJob<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClosureJob({})", self.what)
    }
}

impl<T: Send, W: Fn(&mut StoreWriter<'_>) -> Result<T, SqliteFault> + Send> WriteJob for ClosureJob<T, W> {
    fn perform(&self, writer: &mut StoreWriter<'_>) -> Result<(), SqliteFault> {
        let done = (self.work)(writer)?;
        self.done.replace(Some(done));
        Ok(())
    }

    fn order(&self) -> WriteOrder {
        self.order
    }

    /// The requester may have stopped waiting; that is no error.
    fn tell(self: Box<Self>, outcome: Result<(), SqliteFault>) {
        let Self { what, done, answer, .. } = *self;
        let done = outcome.and_then(|()| done.into_inner().ok_or_else(|| SqliteFault::unreadable("nothing was done")));
        drop(answer.send(done.map_err(|fault| fault.while_doing(what))));
    }
}
