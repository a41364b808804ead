//! Who waits until the webhooks of a task have been tried once: the answer to a message, and the end of a stream.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chancery_protocol::TaskId;
use tokio::sync::mpsc;

/// How far a lane has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The number of the registration.
    pub lane: u64,
    /// The next entry to deliver.
    pub head: u64,
    /// Nothing more goes out for now: it has to be tried again, or is off.
    pub stuck: bool,
}

/// The answers that wait for the first attempts of their notifications.
#[derive(Debug, Default)]
pub struct FirstAttempts(Mutex<HashMap<TaskId, Vec<mpsc::UnboundedSender<Reached>>>>);

impl FirstAttempts {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<mpsc::UnboundedSender<Reached>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the attempts that are reached from now on.
    pub(crate) fn listen(&self, task: &TaskId) -> Listening<'_> {
        let (tell, told) = mpsc::unbounded_channel();
        self.lock().entry(task.clone()).or_default().push(tell);
        Listening { all: self, task: task.clone(), told }
    }

    pub(crate) fn tell(&self, task: &TaskId, reached: Reached) {
        if let Some(listeners) = self.lock().get(task) {
            for listener in listeners {
                // Whoever has gone is forgotten by its own drop.
                let _ = listener.send(reached);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Listening<'a> {
    all: &'a FirstAttempts,
    task: TaskId,
    told: mpsc::UnboundedReceiver<Reached>,
}

impl Listening<'_> {
    /// Comes back when each of the lanes has passed `seq` or is stuck. Those are left out of the list already.
    pub(crate) async fn all_reached(&mut self, mut lanes: Vec<u64>, seq: u64) {
        while !lanes.is_empty() {
            let Some(reached) = self.told.recv().await else { return };
            if reached.head > seq || reached.stuck {
                lanes.retain(|lane| *lane != reached.lane);
            }
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.told.close();
        let mut all = self.all.lock();
        if let Some(listeners) = all.get_mut(&self.task) {
            listeners.retain(|listener| !listener.is_closed());
            if listeners.is_empty() {
                all.remove(&self.task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_listens_hears_of_all_lanes_and_is_forgotten_afterwards() {
        let attempts = FirstAttempts::default();
        let task = TaskId::from("t");
        let mut listening = attempts.listen(&task);
        attempts.tell(&task, Reached { lane: 1, head: 3, stuck: false });
        attempts.tell(&task, Reached { lane: 2, head: 1, stuck: true });
        attempts.tell(&TaskId::from("other"), Reached { lane: 3, head: 9, stuck: false });
        attempts.tell(&task, Reached { lane: 1, head: 4, stuck: false });
        listening.all_reached(vec![1, 2], 3).await;
        let more = tokio::time::timeout(std::time::Duration::from_millis(5), listening.all_reached(vec![3], 3)).await;
        assert!(more.is_err(), "nothing was told of this one");
        drop(listening);
        assert!(attempts.lock().is_empty());
    }
}
