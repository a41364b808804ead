//! One run: a claimed lane sends what is pending, one after the other, until it is done, stuck, or others have their turn.

use std::sync::Arc;
use std::time::Duration;

use chancery_protocol::Timestamp;
use chancery_rules::push::{
    self as rules, AttemptAnswer, AttemptReport, DeliverySlot, DeliveryVerdict, Judged, LaneAction, Latitude, RetryPatience,
    Span, SpanKind, after, judge,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::EngineConfig;
use super::courier::{DeliveryOutcome, Letter, Try, WebhookDelivery};
use super::engine::{Engine, until};
use super::first_attempts::Reached;
use super::log::{Log, Pick, Picked};
use crate::push::{Lane, OpenSecrets};
use crate::{StoreError, TaskRecord};

/// How long an exchange may go on after the node began to stop.
const LAST_EXCHANGE: Duration = Duration::from_secs(1);
/// After a store that could not be asked, or a task that could not be read.
const AFTER_FAULT: Duration = Duration::from_secs(5);

/// A lane that is ours until its claim ends.
#[derive(Debug)]
pub(super) struct ClaimedLane {
    pub(super) lane: Lane,
    pub(super) token: CancellationToken,
    pub(super) ends: Instant,
}

pub(super) struct Run<'e> {
    pub(super) engine: &'e Engine,
    pub(super) config: Arc<EngineConfig>,
    pub(super) lane: Lane,
    pub(super) record: Arc<TaskRecord>,
    pub(super) log: Log<'e>,
    secrets: Option<OpenSecrets>,
    token: CancellationToken,
    ends: Instant,
}

/// One delivery that was tried.
pub(super) struct TriedDelivery {
    pub(super) span: Span,
    pub(super) from: u64,
    pub(super) letter: Letter,
    pub(super) recorded: Timestamp,
    pub(super) began: Timestamp,
    pub(super) took: Duration,
    pub(super) outcome: DeliveryOutcome,
    pub(super) judged: Judged,
}

impl Engine {
    pub(super) async fn deliver(&self, held: Option<ClaimedLane>, grant: DeliverySlot) {
        let Some(held) = held else { return self.hand_back(grant) };
        let (lane, epoch) = (held.lane.number(), held.lane.cursor.epoch);
        match Run::begin(self, held).await {
            Ok(Some(run)) => run.go(grant).await,
            Ok(None) => self.hand_back(grant),
            Err(fault) => {
                tracing::error!(
                    lane,
                    error = &fault as &dyn std::error::Error,
                    "cannot read the task of a webhook; the node tries again"
                );
                self.hand_back(grant);
            }
        }
        self.notifier.in_flight.end(lane, epoch);
        self.one_more_free();
    }

    /// The origin is left alone: the lane waits until then.
    pub(super) async fn park(&self, held: ClaimedLane, until: Timestamp) {
        let (lane, epoch) = (held.lane.number(), held.lane.cursor.epoch);
        match Run::begin(self, held).await {
            Ok(Some(mut run)) => {
                let now = self.now();
                let oldest = run.oldest(now).await;
                let step = rules::park(&run.lane.cursor, until, oldest, &run.patience(), now);
                run.settle(step, None, now).await;
            }
            Ok(None) => {}
            Err(fault) => tracing::error!(
                lane,
                error = &fault as &dyn std::error::Error,
                "cannot read the task of a webhook; the node tries again"
            ),
        }
        self.notifier.in_flight.end(lane, epoch);
    }

    fn hand_back(&self, grant: DeliverySlot) {
        let steady = self.timeline.steady();
        self.dispatch().finish(grant, AttemptReport::NOTHING, steady);
    }
}

impl<'e> Run<'e> {
    async fn begin(engine: &'e Engine, held: ClaimedLane) -> Result<Option<Self>, StoreError> {
        let ClaimedLane { lane, token, ends } = held;
        let registration = &lane.registration;
        // A task that is forgotten takes its registrations with it.
        let Some(stored) = engine.store.find_any(registration.task.as_str()).await? else { return Ok(None) };
        Ok(Some(Self {
            config: engine.config.load_full(),
            record: stored.task,
            log: Log::new(&*engine.store, registration.task.clone()),
            secrets: OpenSecrets::open(&*engine.vault, &registration.bound_to(), registration.sealed.as_ref()),
            engine,
            lane,
            token,
            ends,
        }))
    }

    async fn go(mut self, grant: DeliverySlot) {
        let mut grant = Some(grant);
        let mut sent = 0;
        while let Some(held) = grant.take() {
            let picked = match self.next().await {
                Ok(Some(picked)) => picked,
                Ok(None) => return self.engine.hand_back(held),
                Err(fault) => {
                    let task = &self.record.id;
                    tracing::error!(%task, error = &fault as &dyn std::error::Error, "cannot read the events for a webhook; the node tries again");
                    let now = self.engine.now();
                    self.settle(LaneAction::Release { span: None, next_at: now + AFTER_FAULT }, None, now).await;
                    return self.engine.hand_back(held);
                }
            };
            let tried = self.attempt(picked).await;
            sent += 1;
            let (now, steady) = (self.engine.now(), self.engine.timeline.steady());
            let report = AttemptReport::from(tried.judged);
            let more =
                tried.judged.verdict == DeliveryVerdict::Ack || matches!(tried.judged.verdict, DeliveryVerdict::Reject { .. });
            let goes_on =
                more && self.lane.cursor.tail > tried.span.to && sent < self.config.notify.in_a_row && !self.is_stopping();
            if goes_on {
                grant = self.engine.dispatch().carry_on(held, report, steady);
            } else {
                self.engine.dispatch().finish(held, report, steady);
            }
            let keep = grant.is_some().then(|| self.prolonged(now));
            let facts = rules::TriedAttempt { span: tried.span, oldest: tried.recorded, keep, random: random() };
            let step = after(tried.judged.verdict, facts, &self.lane.cursor, &self.patience(), now);
            let settled = self.settle(step, Some(tried), now).await;
            if !settled && let Some(held) = grant.take() {
                self.engine.hand_back(held);
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.engine.stopping.is_cancelled() || self.token.is_cancelled()
    }

    fn patience(&self) -> RetryPatience {
        let notify = &self.config.notify;
        RetryPatience { schedule: notify.schedule(), most_failing: Duration::from_secs(notify.give_up_after_s) }
    }

    /// The claim goes on from now, once the store has said so.
    fn prolonged(&mut self, now: Timestamp) -> Timestamp {
        let lease = self.config.lease();
        self.ends = Instant::now() + lease;
        now + lease
    }

    /// The time when the entry at the head was recorded; now, if that is unknown.
    async fn oldest(&self, now: Timestamp) -> Timestamp {
        let after = self.lane.cursor.head.saturating_sub(1);
        let entries = self.engine.store.entries(&self.record.id, after, 1).await.unwrap_or_default();
        entries.first().map_or(now, |entry| entry.at)
    }

    /// What goes out next, if there is anything and time for it. Entries that are not for this lane are passed over.
    async fn next(&mut self) -> Result<Option<(Picked, Letter)>, StoreError> {
        let picked = loop {
            let to = match self.log.pick(&self.lane.registration, &self.lane.cursor, &self.config.bounds).await? {
                Pick::Send(picked) => break picked,
                Pick::Nothing { to } => to,
            };
            let now = self.engine.now();
            let keep = (to < self.lane.cursor.tail).then(|| self.prolonged(now));
            if !self.settle(LaneAction::Skip { to, keep }, None, now).await {
                return Ok(None);
            }
        };
        let now = self.engine.now();
        let span = picked.span;
        if span.kind != SpanKind::Single && self.lane.cursor.span.is_none() {
            // From here on it is one delivery, whatever happens to us.
            let keep = self.prolonged(now);
            if !self.settle(LaneAction::Pin { span, keep }, None, now).await {
                return Ok(None);
            }
        }
        let delivery = WebhookDelivery {
            registration: Arc::clone(&self.lane.registration),
            record: Arc::clone(&self.record),
            from: picked.from,
            span,
            payload: self.engine.restore_payload(&self.record.id, picked.payload.clone()).await?,
        };
        let letter = self.engine.courier.write(&delivery);
        if self.token.is_cancelled() || Instant::now() + self.config.exchange + EngineConfig::MARGIN > self.ends {
            let now = self.engine.now();
            self.settle(LaneAction::Release { span: None, next_at: now }, None, now).await;
            self.engine.notifier.ring();
            return Ok(None);
        }
        Ok(Some((picked, letter)))
    }

    async fn attempt(&mut self, (picked, letter): (Picked, Letter)) -> TriedDelivery {
        let Picked { from, span, recorded, .. } = picked;
        let began = self.engine.timeline.wall();
        if self.lane.cursor.attempt == 0 {
            self.engine.metrics().first_attempt.add(until(recorded, began));
        }
        let started = Instant::now();
        let how = Try { attempt: self.lane.cursor.attempt.saturating_add(1), replay: false, now: began };
        let outcome = match &self.secrets {
            None => DeliveryOutcome::without_secrets(),
            Some(secrets) => {
                tokio::select! {
                    biased;
                    () = self.token.cancelled() => cancelled("its registration is gone"),
                    () = stopped(&self.engine.stopping) => cancelled("the node stops"),
                    outcome = self.engine.courier.deliver(&self.lane.registration, secrets, &letter, how) => outcome,
                }
            }
        };
        let latitude = Latitude { retry_4xx: self.config.lenient.contains(&self.lane.registration.origin) };
        let judged = judge(outcome.answer, latitude);
        TriedDelivery { span, from, letter, recorded, began, took: started.elapsed(), outcome, judged }
    }

    /// Wakes the callers that wait for a first attempt.
    pub(super) fn tell_reached(&self, goes_on: bool) {
        let stuck = !goes_on && (self.lane.cursor.attempt > 0 || self.lane.cursor.state != rules::LaneState::Active);
        let parked = self.lane.cursor.is_pending() && self.lane.cursor.next_at > self.engine.now() && !self.lane.cursor.is_held();
        let reached = Reached { lane: self.lane.number(), head: self.lane.cursor.head, stuck: stuck || parked };
        self.engine.notifier.first_attempts.tell(&self.record.id, reached);
    }
}

pub(super) fn cancelled(why: &str) -> DeliveryOutcome {
    DeliveryOutcome { answer: AttemptAnswer::Cancelled, error: Some(why.into()), receipt: None }
}

/// A while after the node began to stop.
async fn stopped(stopping: &CancellationToken) {
    stopping.cancelled().await;
    tokio::time::sleep(LAST_EXCHANGE).await;
}

fn random() -> u64 {
    // The first two bits of the lower half say which kind of id it is.
    uuid::Uuid::now_v7().as_u64_pair().1 << 2
}
