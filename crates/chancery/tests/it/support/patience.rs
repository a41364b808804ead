//! Waiting for something to become true, with a bound instead of a guess.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long anything may take on a loaded machine before a test gives up on it.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Looks until there is something to see.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < BOUND, "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn exit_of(process: &mut Child) -> ExitStatus {
    eventually("the process ends", || process.try_wait().expect("a child can be asked"))
}

/// The same for something that has to be asked.
pub(crate) async fn soon<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(start.elapsed() < BOUND, "gave up waiting: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
