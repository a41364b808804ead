//! What is being delivered in this process, so that it can be woken, and stopped when its registration goes.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::notify::{FirstAttempts, Metrics};

/// Rings when lanes may have become due.
#[derive(Debug, Default)]
pub struct Notifier {
    due: Notify,
    /// The deliveries in progress.
    pub in_flight: InFlight,
    /// The first attempts that answers wait for.
    pub first_attempts: FirstAttempts,
    /// The metrics of deliveries.
    pub metrics: Metrics,
    /// How long answers wait for first attempts. 0 while no engine delivers.
    barrier_ms: AtomicU64,
}

impl Notifier {
    /// Wakes the engine.
    pub fn ring(&self) {
        self.due.notify_one();
    }

    pub(crate) fn barrier(&self) -> Duration {
        Duration::from_millis(self.barrier_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn set_barrier(&self, millis: u64) {
        self.barrier_ms.store(millis, Ordering::Relaxed);
    }

    /// Comes back after a ring, also one from before it was asked.
    pub async fn rung(&self) {
        self.due.notified().await;
    }
}

/// The deliveries in progress, by lane and claim.
#[derive(Debug, Default)]
pub struct InFlight(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    /// By lane and claim: a claim whose lease ran out may still be at work beside the next.
    delivering: BTreeMap<(u64, u64), CancellationToken>,
    /// Claims that the store is answering.
    claiming: usize,
    /// Lanes that were stopped meanwhile: such a claim may still bring them.
    stopped: HashSet<u64>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before a claim. Between that and `Claiming::begin` nothing that is stopped is forgotten.
    pub fn claiming(&self) -> Claiming<'_> {
        self.lock().claiming += 1;
        Claiming(self)
    }

    /// Notes that a claim has ended.
    pub fn end(&self, lane: u64, epoch: u64) {
        self.lock().delivering.remove(&(lane, epoch));
    }

    /// Nothing of this lane is begun any more by a claim from before; what is under way is broken off.
    pub fn stop(&self, lane: u64) {
        let mut inside = self.lock();
        while let Some((claim, delivery)) = inside.delivering.range((lane, 0)..=(lane, u64::MAX)).next() {
            let claim = *claim;
            delivery.cancel();
            inside.delivering.remove(&claim);
        }
        if inside.claiming > 0 {
            inside.stopped.insert(lane);
        }
    }

    /// Returns the number of deliveries in progress.
    pub fn len(&self) -> usize {
        self.lock().delivering.len()
    }

    /// Returns whether no delivery is in progress.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A claim under way.
#[derive(Debug)]
pub struct Claiming<'a>(&'a InFlight);

impl Claiming<'_> {
    /// For each claimed lane and its epoch the token that breaks it off, or nothing if it was stopped
    /// meanwhile. A worker checks it before each delivery, and calls `InFlight::end` afterwards.
    pub fn begin(self, lanes: impl IntoIterator<Item = (u64, u64)>) -> Vec<Option<CancellationToken>> {
        let mut inside = self.0.lock();
        let Inside { delivering, stopped, .. } = &mut *inside;
        let mut begin = |claim| {
            let token = CancellationToken::new();
            delivering.insert(claim, token.clone());
            token
        };
        lanes.into_iter().map(|claim| (!stopped.contains(&claim.0)).then(|| begin(claim))).collect()
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        inside.claiming -= 1;
        if inside.claiming == 0 {
            inside.stopped.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_is_stopped_between_its_claim_and_its_begin_is_not_begun() {
        let flight = InFlight::default();
        let claim = flight.claiming();
        flight.stop(7);
        let begun = claim.begin([(6, 1), (7, 1)]);
        assert!(begun[0].is_some() && begun[1].is_none());
        assert_eq!(flight.len(), 1);
    }

    #[test]
    fn what_is_under_way_is_broken_off_and_a_later_claim_is_not() {
        let flight = InFlight::default();
        let under_way = flight.claiming().begin([(7, 1)]).remove(0).unwrap();
        flight.stop(7);
        assert!(under_way.is_cancelled());
        assert!(flight.is_empty());
        assert!(flight.claiming().begin([(7, 1)]).remove(0).is_some());
    }

    #[tokio::test]
    async fn a_ring_before_anybody_listens_is_heard() {
        let notifier = Notifier::default();
        notifier.ring();
        notifier.rung().await;
    }
}
