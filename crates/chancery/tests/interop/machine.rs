//! Which tests share the machine, so that its load does not decide what times out.

use tokio::sync::RwLock;

/// A test that starts many programs at once writes and runs alone; every other test that starts a program reads.
pub(crate) static MACHINE: RwLock<()> = RwLock::const_new(());
