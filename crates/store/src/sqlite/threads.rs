//! The threads of an open store, and the claim on its files that outlives them.

use std::thread::JoinHandle;

use chancery_core::StoreError;

use super::folder::FolderLock;

/// The threads of an open store and the lock on its files. Another process can open the files once this is
/// dropped.
#[derive(Debug)]
pub(super) struct Open {
    threads: Vec<JoinHandle<()>>,
    _claim: FolderLock,
}

impl Open {
    pub(super) fn new(threads: Vec<JoinHandle<()>>, claim: FolderLock) -> Self {
        Self { threads, _claim: claim }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked; the log has its message. Restart the node");
            }
        }
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| StoreError::caused_by(format!("starting thread {name} failed"), error))
}
