//! A write that is told apart only by who asked for it: done within the batch's transaction, answered when that is durable.

use std::cell::RefCell;
use std::fmt;

use chancery_core::{Lines, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::Fault;

pub(super) trait Deed: Send + fmt::Debug {
    /// May be done again after a transaction that failed, and what it said for the record with it.
    fn perform(&self, connection: &Connection, record: &mut dyn FnMut(&Lines)) -> Result<(), Fault>;

    fn tell(self: Box<Self>, outcome: Result<(), Fault>);

    /// It matters only while this process lives, so nobody has to wait for the disk.
    fn is_fleeting(&self) -> bool;
}

pub(super) struct Write<T, W> {
    pub(super) what: &'static str,
    pub(super) fleeting: bool,
    pub(super) work: W,
    pub(super) done: RefCell<Option<T>>,
    pub(super) answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> fmt::Debug for Write<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Write({})", self.what)
    }
}

impl<T: Send, W: Fn(&Connection, &mut dyn FnMut(&Lines)) -> Result<T, Fault> + Send> Deed for Write<T, W> {
    fn perform(&self, connection: &Connection, record: &mut dyn FnMut(&Lines)) -> Result<(), Fault> {
        let done = (self.work)(connection, record)?;
        self.done.replace(Some(done));
        Ok(())
    }

    fn is_fleeting(&self) -> bool {
        self.fleeting
    }

    /// Nobody may be waiting any more; that is fine.
    fn tell(self: Box<Self>, outcome: Result<(), Fault>) {
        let Self { what, done, answer, .. } = *self;
        let done = outcome.and_then(|()| done.into_inner().ok_or_else(|| Fault::unreadable("nothing was done")));
        drop(answer.send(done.map_err(|fault| fault.while_doing(what))));
    }
}
