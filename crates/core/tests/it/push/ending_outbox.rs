//! An outbox whose process ends at a moment that a test chose: from then on nobody is answered any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::StoreError;
use chancery_core::push::{
    ClockSet, DeadFilter, DeadLetter, DeadPage, DeliveryAttempt, Lane, LaneAction, LaneFilter, LanePage, LaneSettlement,
    LaneState, LaneStep, LaneSweep, NewRegistration, Outbox, OutboxLoad, Receipt, Registered, Registration, Replay, ReplayStep,
    Resealed, StateChange, SweptLanes, WebhookOrigin,
};
use chancery_protocol::{TaskId, Timestamp};
use tokio_util::sync::CancellationToken;

/// What is being done when the end comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Claim,
    /// A delivery was taken.
    Ack,
    /// Several entries become one.
    Pin,
    /// What became of a replay. This one does not end the process: the store fails as often as it would go well otherwise.
    Replayed,
}

/// Before the store hears of it, or after it has kept it and before anybody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

#[derive(Debug)]
pub(crate) struct EndingOutbox {
    inner: Arc<dyn Outbox>,
    doing: Doing,
    side: Side,
    /// How often it goes well before.
    left: AtomicUsize,
    pub(crate) ended: CancellationToken,
}

impl EndingOutbox {
    pub(crate) fn new(inner: Arc<dyn Outbox>, doing: Doing, side: Side, well: usize) -> Arc<Self> {
        Arc::new(Self { inner, doing, side, left: AtomicUsize::new(well), ended: CancellationToken::new() })
    }

    /// Whether this is the one that does not end.
    fn is_it(&self, doing: Doing) -> bool {
        let run_out = |left: usize| left.checked_sub(1);
        doing == self.doing && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, run_out).is_err()
    }

    async fn around<T>(&self, doing: Option<Doing>, work: impl Future<Output = T>) -> T {
        let is_it = doing.is_some_and(|doing| self.is_it(doing));
        if self.ended.is_cancelled() || (is_it && self.side == Side::Before) {
            return self.end().await;
        }
        let done = work.await;
        if is_it {
            return self.end().await;
        }
        done
    }

    async fn end<T>(&self) -> T {
        self.ended.cancel();
        std::future::pending().await
    }
}

#[async_trait]
impl Outbox for EndingOutbox {
    async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Result<Vec<Lane>, StoreError> {
        self.around(Some(Doing::Claim), self.inner.claim(now, lease, most, per_origin, except)).await
    }

    async fn settle_lanes(&self, steps: Vec<LaneStep>) -> Result<Vec<LaneSettlement>, StoreError> {
        let doing = steps.first().and_then(|step| match step.step {
            LaneAction::Ack { .. } => Some(Doing::Ack),
            LaneAction::Pin { .. } => Some(Doing::Pin),
            _ => None,
        });
        self.around(doing, self.inner.settle_lanes(steps)).await
    }

    async fn register(&self, new: NewRegistration) -> Result<Registered, StoreError> {
        self.inner.register(new).await
    }

    async fn registration(&self, task: &TaskId, id: &str) -> Result<Option<Arc<Registration>>, StoreError> {
        self.inner.registration(task, id).await
    }

    async fn registrations(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<Registration>>, StoreError> {
        self.inner.registrations(task, after, limit).await
    }

    async fn unregister(&self, task: &TaskId, id: &str) -> Result<Option<u64>, StoreError> {
        self.inner.unregister(task, id).await
    }

    async fn park(&self, origin: &WebhookOrigin, until: Timestamp) -> Result<(), StoreError> {
        self.inner.park(origin, until).await
    }

    async fn clock_set(&self, set: ClockSet) -> Result<(), StoreError> {
        self.inner.clock_set(set).await
    }

    async fn next_due(&self, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_due(except).await
    }

    async fn lanes(&self, filter: &LaneFilter, after: u64, limit: usize) -> Result<LanePage, StoreError> {
        self.inner.lanes(filter, after, limit).await
    }

    async fn change_state(
        &self,
        filter: &LaneFilter,
        change: StateChange,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LaneState)>, StoreError> {
        self.inner.change_state(filter, change, now, after, limit).await
    }

    async fn dead_letters(&self, filter: &DeadFilter, after: u64, limit: usize) -> Result<DeadPage, StoreError> {
        self.inner.dead_letters(filter, after, limit).await
    }

    async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        self.inner.dead_letter(id).await
    }

    async fn replay(
        &self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError> {
        self.inner.replay(filter, new_id, now, after, limit).await
    }

    async fn claim_replays(&self, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, StoreError> {
        self.inner.claim_replays(now, lease, most).await
    }

    async fn settle_replays(&self, steps: Vec<ReplayStep>) -> Result<(), StoreError> {
        if self.doing == Doing::Replayed && !self.is_it(Doing::Replayed) {
            return Err(StoreError::new("no space is left"));
        }
        self.inner.settle_replays(steps).await
    }

    async fn purge(&self, filter: &DeadFilter, limit: usize) -> Result<u64, StoreError> {
        self.inner.purge(filter, limit).await
    }

    async fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Result<Vec<DeliveryAttempt>, StoreError> {
        self.inner.attempts(lane, since, limit).await
    }

    async fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Result<Vec<(u64, Receipt)>, StoreError> {
        self.inner.receipts(lane, after, limit).await
    }

    async fn sweep_lanes(&self, plan: LaneSweep) -> Result<SweptLanes, StoreError> {
        self.inner.sweep_lanes(plan).await
    }

    async fn reseal(&self, resealed: Vec<Resealed>) -> Result<u64, StoreError> {
        self.inner.reseal(resealed).await
    }

    async fn outbox_load(&self) -> Result<OutboxLoad, StoreError> {
        self.inner.outbox_load().await
    }
}
