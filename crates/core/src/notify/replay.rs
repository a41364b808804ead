//! Puts dead letters to their receivers again: as they were, in the order of their entries, one after the other for each receiver.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_rules::push::{AttemptAnswer, DeliveryVerdict, Latitude, judge};
use tokio_util::sync::CancellationToken;

use super::courier::{DeliveryOutcome, Letter, Try};
use super::engine::{Engine, host, until};
use super::run::cancelled;
use crate::push::{OpenSecrets, Replay, ReplayStep};
use crate::{Delivered, StoreError};

/// The pause before another attempt at a store that failed.
const AFTER_FAULT: Duration = Duration::from_secs(5);
/// Letters taken from the line at once.
const MOST: usize = 256;
/// The epoch of all replays of a lane among its claims, of which none gets that far.
const REPLAYS: u64 = u64::MAX;

/// By lane: what breaks off its replays when it is deleted, replaced or turned off, or nothing if that has happened already.
type Tokens = HashMap<u64, Option<CancellationToken>>;

impl Engine {
    /// Begins with the letters in line, unless a replay is running.
    pub(super) async fn start_replays(self: &Arc<Self>) -> Result<(), StoreError> {
        if !self.letters_wait.load(Ordering::Relaxed) || self.replaying.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.letters_wait.store(false, Ordering::Relaxed);
        let claiming = self.notifier.in_flight.claiming();
        let claimed = self.outbox.claim_replays(self.now(), self.replay_lease(), MOST).await;
        let replays = claimed.inspect_err(|_| {
            self.replaying.store(false, Ordering::Relaxed);
            self.letters_wait.store(true, Ordering::Relaxed);
        })?;
        if replays.is_empty() {
            self.replaying.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let lanes: BTreeSet<u64> = replays.iter().map(|replay| replay.letter.lane).collect();
        let tokens = claiming.begin(lanes.iter().map(|lane| (*lane, REPLAYS)));
        let tokens: Tokens = lanes.into_iter().zip(tokens).collect();
        let engine = Arc::clone(self);
        self.spawn(async move {
            engine.replay_all(replays, &tokens).await;
            tokens.keys().for_each(|lane| engine.notifier.in_flight.end(*lane, REPLAYS));
            engine.replaying.store(false, Ordering::Relaxed);
            // There may be more in line.
            engine.letters_wait.store(true, Ordering::Relaxed);
            engine.notifier.ring();
        });
        Ok(())
    }

    /// Long enough for all of them to hang.
    fn replay_lease(&self) -> Duration {
        self.config.load().lease() * u32::try_from(MOST).unwrap_or(u32::MAX)
    }

    async fn replay_all(&self, replays: Vec<Replay>, tokens: &Tokens) {
        let mut receivers: BTreeMap<Arc<str>, Vec<Replay>> = BTreeMap::new();
        for replay in replays {
            receivers.entry(Arc::clone(&replay.letter.origin)).or_default().push(replay);
        }
        let receivers = receivers.into_values().map(|letters| async {
            for replay in letters {
                let token = tokens.get(&replay.letter.lane).and_then(Option::as_ref);
                self.replay_one(replay, token).await;
            }
        });
        futures::future::join_all(receivers).await;
    }

    /// Waits until its host is to be asked once more. Replays stand in no line, but they count.
    async fn ration(&self, origin: &str) {
        let host = host(origin);
        loop {
            let now = self.timeline.steady();
            let Err(then) = self.dispatch().token(&host, now) else { return };
            tokio::time::sleep(until(now, then)).await;
        }
    }

    async fn put_again(&self, replay: &Replay, letter: &Letter, how: Try) -> DeliveryOutcome {
        let registration = &replay.registration;
        self.ration(&registration.origin).await;
        // Signed when it goes out, however long that took.
        let how = Try { now: self.timeline.wall(), ..how };
        match OpenSecrets::open(&*self.vault, &registration.bound_to(), registration.sealed.as_ref()) {
            Some(secrets) => self.courier.deliver(registration, &secrets, letter, how).await,
            None => DeliveryOutcome::without_secrets(),
        }
    }

    async fn replay_one(&self, replay: Replay, token: Option<&CancellationToken>) {
        if self.stopping.is_cancelled() {
            // It stays in line, and is claimed anew by whoever comes next.
            return;
        }
        let (dead, new_id, epoch) = (&replay.letter, replay.new_id, replay.epoch);
        let again = dead.replays.saturating_add(1);
        let webhook_id = if new_id { format!("{}-r{again}", dead.webhook_id).into() } else { Arc::clone(&dead.webhook_id) };
        let letter = Letter { webhook_id, body: Arc::clone(&dead.body), headers: dead.headers.clone() };
        let now = self.timeline.wall();
        let how = Try { attempt: dead.attempts.saturating_add(again), replay: true, now };
        let token = token.filter(|token| !token.is_cancelled());
        let sent = match token {
            Some(token) => token.run_until_cancelled(self.put_again(&replay, &letter, how)).await,
            None => None,
        };
        let outcome = sent.unwrap_or_else(|| cancelled("its registration was deleted, changed or turned off meanwhile"));
        let verdict = judge(outcome.answer, Latitude::default()).verdict;
        let http = match outcome.answer {
            AttemptAnswer::Answered { status, .. } => Some(status),
            _ => None,
        };
        let taken = verdict == DeliveryVerdict::Ack;
        if token.is_some() {
            self.metrics().replays.add(1);
            tracing::info!(letter = dead.id, task = %dead.task, origin = &*dead.origin, taken, http, "sent a dead letter to its webhook again");
        }
        let at = self.now();
        let delivered = (self.recording && token.is_some()).then(|| Delivered {
            webhook_id: letter.webhook_id,
            attempts: how.attempt,
            status: http,
            given_up: (!taken).then(|| Arc::clone(&dead.reason)),
            replay: true,
            at,
            ..self.given_up(dead)
        });
        let delivered = delivered.map(Box::new);
        let step = ReplayStep { letter: dead.id, epoch, taken, at, http, error: outcome.error, delivered };
        // Until that is kept the letter is nobody else's, so it is tried until it is.
        while let Err(fault) = self.outbox.settle_replays(vec![step.clone()]).await {
            tracing::error!(
                letter = dead.id,
                error = &fault as &dyn std::error::Error,
                "cannot store the result of a replay yet"
            );
            tokio::select! {
                () = tokio::time::sleep(AFTER_FAULT) => {}
                () = self.stopping.cancelled() => return,
            }
        }
    }
}
