//! Starts every background task of a node under a name: a panic is logged and counted, and a stop waits for all of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Whether a node can work on without a loop that panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopNeed {
    /// The node works on; what the loop did is not done until the next start.
    Optional,
    /// The node ends.
    Vital,
}

/// The background loops of one node. Cheap to clone; all clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct LoopTracker(Arc<Tracked>);

#[derive(Debug, Default)]
struct Tracked {
    tasks: TaskTracker,
    counts: Mutex<Counts>,
    /// Fires when a vital loop panicked.
    failed: CancellationToken,
}

#[derive(Debug, Default)]
struct Counts {
    running: BTreeMap<&'static str, usize>,
    panics: BTreeMap<&'static str, u64>,
}

/// Counts a loop as running until it is dropped, also when the runtime drops the task.
struct RunningLoop {
    name: &'static str,
    tracked: Arc<Tracked>,
}

impl Tracked {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningLoop {
    fn drop(&mut self) {
        let mut counts = self.tracked.counts();
        if let Some(count) = counts.running.get_mut(self.name) {
            *count -= 1;
            if *count == 0 {
                counts.running.remove(self.name);
            }
        }
    }
}

impl LoopTracker {
    /// Runs a loop in the background until it ends by itself, which it does when the node's shutdown token fires.
    pub fn start(&self, name: &'static str, need: LoopNeed, work: impl Future<Output = ()> + Send + 'static) {
        let tracked = Arc::clone(&self.0);
        *tracked.counts().running.entry(name).or_default() += 1;
        let running = RunningLoop { name, tracked: Arc::clone(&tracked) };
        self.0.tasks.spawn(async move {
            let _running = running;
            let Err(panic) = AssertUnwindSafe(work).catch_unwind().await else { return };
            *tracked.counts().panics.entry(name).or_default() += 1;
            let reason = panic_text(&*panic);
            match need {
                LoopNeed::Optional => {
                    tracing::error!(name, reason, "a background loop panicked; the node runs without it until a restart")
                }
                LoopNeed::Vital => {
                    tracing::error!(name, reason, "a vital background loop panicked; the node ends");
                    tracked.failed.cancel();
                }
            }
        });
    }

    /// The loops that run now, by name, with how many there are of each.
    pub fn running(&self) -> BTreeMap<&'static str, usize> {
        self.0.counts().running.clone()
    }

    /// How often each loop has panicked. A loop that never did is not in it.
    pub fn panics(&self) -> BTreeMap<&'static str, u64> {
        self.0.counts().panics.clone()
    }

    /// Fires when a vital loop panicked: the node cannot do its work any more.
    pub fn failed(&self) -> CancellationToken {
        self.0.failed.clone()
    }

    /// Waits for every loop to end.
    pub async fn ended(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

/// A future whose panic is logged under a name before it goes on. For work of a tracker or a set that waits for it.
pub fn watched<T>(name: &'static str, work: impl Future<Output = T>) -> impl Future<Output = T> {
    // Not an `async fn`, which would hold the work twice: connections and turns are many.
    AssertUnwindSafe(work).catch_unwind().map(move |done| match done {
        Ok(done) => done,
        Err(panic) => {
            tracing::error!(name, reason = panic_text(&*panic), "a background task panicked");
            std::panic::resume_unwind(panic)
        }
    })
}

/// Runs work of one connection, call or command in a task of its own. Its starter waits for it or aborts it.
#[expect(clippy::disallowed_methods, reason = "every other file starts its tasks here, under a name")]
pub fn spawn_watched<T: Send + 'static>(name: &'static str, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(watched(name, work))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_counted_under_its_name_and_only_a_vital_loop_ends_the_node() {
        let loops = LoopTracker::default();
        loops.start("sweep", LoopNeed::Optional, async { panic!("{} words", 2) });
        loops.ended().await;
        assert_eq!(loops.panics(), BTreeMap::from([("sweep", 1)]));
        assert!(!loops.failed().is_cancelled());
        loops.start("deliver", LoopNeed::Vital, async { panic!("no more") });
        loops.failed().cancelled().await;
        assert_eq!(loops.panics(), BTreeMap::from([("deliver", 1), ("sweep", 1)]));
    }

    #[tokio::test]
    async fn a_stop_waits_for_every_loop_and_none_is_left() {
        let (loops, stop) = (LoopTracker::default(), CancellationToken::new());
        for name in ["a", "a", "b"] {
            loops.start(name, LoopNeed::Optional, stop.clone().cancelled_owned());
        }
        assert_eq!(loops.running(), BTreeMap::from([("a", 2), ("b", 1)]));
        let mut ended = Box::pin(loops.ended());
        assert!(futures::poll!(&mut ended).is_pending());
        stop.cancel();
        ended.await;
        assert!(loops.running().is_empty() && loops.panics().is_empty());
    }

    #[tokio::test]
    async fn work_of_a_call_hands_its_panic_to_whoever_waits_for_it() {
        let failed = spawn_watched("call", async { panic!("stop") }).await;
        assert!(failed.is_err_and(|error| error.is_panic()));
        assert_eq!(spawn_watched("call", async { 7 }).await.ok(), Some(7));
    }
}
