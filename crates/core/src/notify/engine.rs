//! The engine: claims lanes that are due, lets those send whose turn it is, and sleeps until there is something to do.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use chancery_protocol::{TaskId, Timestamp};
use chancery_rules::push::{Dispatch, DispatchStep, OriginStanding, WebhookOrigin, push_breaker};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::EngineConfig;
use super::courier::{Courier, Notary, WebhookPayload};
use super::metrics::Metrics;
use super::run::ClaimedLane;
use super::timeline::Timeline;
use crate::push::{Lane, Notifier, Outbox, Vault};
use crate::restored_parts::restored_payload;
use crate::tracker::{LoopNeed, watched};
use crate::{Chancery, PartStore, Store, StoreError};

/// Lanes asked for at once.
const CLAIM: usize = 128;
/// Of one origin.
const CLAIM_PER_ORIGIN: usize = 16;
/// The longest sleep, so that a clock that was set does not go unnoticed for longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// After a store that could not be asked.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// What the engine is made of, beside the control plane whose tasks it tells of.
#[derive(Clone, Debug)]
pub struct EngineParts {
    /// Writes, signs and sends notifications.
    pub courier: Arc<dyn Courier>,
    /// Signs receipts.
    pub notary: Arc<dyn Notary>,
    /// Opens the secrets of registrations.
    pub vault: Arc<dyn Vault>,
    /// The settings of deliveries.
    pub config: EngineConfig,
}

/// Delivers notifications. All that it knows it can read again from the store.
#[derive(Debug)]
pub struct Engine {
    pub(super) store: Arc<dyn Store>,
    /// The store of large parts in notifications.
    part_store: Arc<OnceLock<Arc<dyn PartStore>>>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) notifier: Arc<Notifier>,
    pub(super) timeline: Timeline,
    pub(super) courier: Arc<dyn Courier>,
    pub(super) notary: Arc<dyn Notary>,
    pub(super) vault: Arc<dyn Vault>,
    pub(super) config: ArcSwap<EngineConfig>,
    /// Whether the store keeps a record of the outcome of notifications.
    pub(super) recording: bool,
    pub(super) stopping: CancellationToken,
    /// Claimed lanes whose turn has not come.
    waiting: Mutex<HashMap<u64, ClaimedLane>>,
    dispatch: Mutex<Dispatch>,
    freed: Notify,
    pub(super) replaying: AtomicBool,
    /// Whether letters may be in line: from the last run before its end, or from an operator.
    pub(super) letters_wait: AtomicBool,
    runs: TaskTracker,
    abandoned: CancellationToken,
}

impl Engine {
    /// The content for a webhook, with large parts in their place.
    pub(super) async fn restore_payload(&self, task: &TaskId, payload: WebhookPayload) -> Result<WebhookPayload, StoreError> {
        match self.part_store.get() {
            Some(part_store) => Box::pin(restored_payload(part_store, task, payload)).await,
            None => Ok(payload),
        }
    }

    /// Nothing for a control plane without an outbox.
    pub fn new(chancery: &Chancery, parts: EngineParts) -> Option<Arc<Self>> {
        let (outbox, notifier) = chancery.outbox()?;
        notifier.set_barrier(parts.config.notify.barrier_ms);
        let dispatch = Dispatch::new(parts.config.slots.clone(), push_breaker());
        Some(Arc::new(Self {
            store: Arc::clone(&chancery.0.store),
            part_store: Arc::clone(&chancery.0.part_store),
            outbox,
            notifier,
            timeline: Timeline::new(Arc::clone(&chancery.0.clock)),
            courier: parts.courier,
            notary: parts.notary,
            vault: parts.vault,
            config: ArcSwap::from_pointee(parts.config),
            recording: chancery.0.store.record().is_some(),
            stopping: chancery.shutdown_token(),
            waiting: Mutex::default(),
            dispatch: Mutex::new(dispatch),
            freed: Notify::new(),
            replaying: AtomicBool::new(false),
            letters_wait: AtomicBool::new(true),
            runs: TaskTracker::new(),
            abandoned: chancery.0.abandoned.child_token(),
        }))
    }

    /// Delivers, and forgets what has grown old, until the control plane stops; its stop waits for that.
    pub fn start(self: &Arc<Self>, chancery: &Chancery) {
        let (engine, keeper) = (Arc::clone(self), Arc::clone(self));
        let loops = chancery.loops();
        loops.start("webhook deliveries", LoopNeed::Vital, async move { engine.run().await });
        loops.start("webhook retention", LoopNeed::Vital, async move { keeper.keep_swept().await });
    }

    /// Delivers until the node stops. When it returns, no delivery is in flight.
    pub async fn run(self: &Arc<Self>) {
        while !self.stopping.is_cancelled() {
            let sleep = self.round().await.unwrap_or_else(|fault| {
                tracing::error!(error = &fault as &dyn std::error::Error, "cannot search for due webhooks; the node tries again");
                AFTER_FAULT
            });
            tokio::select! {
                () = self.notifier.rung() => {}
                () = self.freed.notified() => {}
                () = tokio::time::sleep(sleep) => {}
                () = self.stopping.cancelled() => {}
            }
        }
        self.runs.close();
        self.runs.wait().await;
    }

    /// Returns the metrics of deliveries.
    pub fn metrics(&self) -> &Metrics {
        &self.notifier.metrics
    }

    /// Slots and breakers stay as they are until the next start.
    pub fn set_config(&self, config: EngineConfig) {
        self.notifier.set_barrier(config.notify.barrier_ms);
        self.config.store(Arc::new(config));
    }

    /// Deliveries under way, and how each origin stands.
    pub fn standings(&self) -> (u32, Vec<OriginStanding>) {
        let dispatch = self.dispatch();
        (dispatch.in_flight(), dispatch.standings())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.timeline.now()
    }

    /// The clock may have been set: everything that is planned goes along.
    async fn follow_the_clock(&self) -> Result<(), StoreError> {
        let Some(set) = self.timeline.was_set() else { return Ok(()) };
        tracing::warn!(was = %set.was, is = %set.is, "the clock was set; deliveries keep their planned intervals");
        self.outbox.clock_set(set).await?;
        self.timeline.follow(set);
        Ok(())
    }

    pub(super) fn dispatch(&self) -> MutexGuard<'_, Dispatch> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, ClaimedLane>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and starts what can be started. Returns how long there is nothing to do, unless a wake-up
    /// comes.
    async fn round(self: &Arc<Self>) -> Result<Duration, StoreError> {
        self.follow_the_clock().await?;
        self.start_replays().await?;
        loop {
            let asked_again = self.start_runs();
            let room = self.dispatch().room().min(CLAIM);
            let (now, steady) = (self.now(), self.timeline.steady());
            let closed = self.dispatch().closed(steady);
            if room > 0 && self.claim(now, room, &closed).await? > 0 {
                continue;
            }
            self.dispatch().sweep(steady);
            let due = if room > 0 { self.outbox.next_due(&closed).await? } else { None };
            let reopens = self.dispatch().reopens(steady);
            let waits = [due.map(|due| until(now, due)), asked_again, reopens.map(|then| until(steady, then))];
            let wait = waits.into_iter().flatten().min().unwrap_or(LONGEST_SLEEP);
            if wait.is_zero() && due.is_some_and(|due| due <= now) {
                // Something became due while we looked.
                continue;
            }
            return Ok(wait.clamp(Duration::from_millis(1), LONGEST_SLEEP));
        }
    }

    async fn claim(&self, now: Timestamp, room: usize, closed: &[WebhookOrigin]) -> Result<usize, StoreError> {
        let lease = self.config.load().lease();
        let claiming = self.notifier.in_flight.claiming();
        // Before the store is asked: the claim ends at the latest then.
        let ends = Instant::now() + lease;
        let lanes = self.outbox.claim(now, lease, room, CLAIM_PER_ORIGIN, closed).await?;
        let tokens = claiming.begin(lanes.iter().map(|lane| (lane.number(), lane.cursor.epoch)));
        let claimed = lanes.len();
        let (mut dispatch, mut waiting) = (self.dispatch(), self.waiting());
        for (lane, token) in lanes.into_iter().zip(tokens) {
            let Some(token) = token else { continue };
            let number = lane.number();
            match waiting.insert(number, ClaimedLane { token, ends, lane }) {
                // Its turn did not come before its claim ended: it stays in line, under the new claim.
                Some(before) => self.notifier.in_flight.end(number, before.lane.cursor.epoch),
                None => {
                    let lane = &waiting[&number].lane;
                    dispatch.offer(number, &origin(lane), &host(&lane.registration.origin));
                }
            }
        }
        Ok(claimed)
    }

    /// Starts what may go. Answers after what time to ask again.
    fn start_runs(self: &Arc<Self>) -> Option<Duration> {
        loop {
            let steady = self.timeline.steady();
            let next = self.dispatch().next(steady);
            match next {
                DispatchStep::Go(grant) => {
                    let held = self.waiting().remove(&grant.lane);
                    let engine = Arc::clone(self);
                    self.spawn(async move { engine.deliver(held, grant).await });
                }
                DispatchStep::Park { lane, until } => {
                    if let Some(held) = self.waiting().remove(&lane) {
                        let engine = Arc::clone(self);
                        let until = self.now() + self::until(steady, until);
                        self.spawn(async move { engine.park(held, until).await });
                    }
                }
                DispatchStep::Wait { until: then } => return then.map(|then| until(steady, then)),
            }
        }
    }

    /// Drops all deliveries in flight at once, as the end of the process would. The next run sends them
    /// again.
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.runs.spawn(watched("webhook delivery", async move {
            abandoned.run_until_cancelled(work).await;
        }));
    }

    /// A slot was handed back, or a lane let go.
    pub(super) fn one_more_free(&self) {
        self.freed.notify_one();
    }
}

fn origin(lane: &Lane) -> WebhookOrigin {
    let registration = &lane.registration;
    WebhookOrigin { tenant: Arc::clone(&registration.owner.tenant), origin: Arc::clone(&registration.origin) }
}

/// The origin without scheme and port: what requests a second are counted by.
pub(super) fn host(origin: &str) -> Arc<str> {
    let host = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    host.rsplit_once(':').map_or(host, |(host, _)| host).into()
}

pub(super) fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(then.micros().saturating_sub(now.micros())).unwrap_or(0))
}
