//! Stores the result of a delivery in one step: the cursor, the attempt, and a receipt or a dead letter.

use std::sync::Arc;

use chancery_protocol::Timestamp;
use chancery_rules::push::{AttemptAnswer, DeadReason, DeadSpan, DeliveryVerdict, DisableReason, LaneAction, LaneState, Span};

use super::courier::{Letter, WebhookDelivery, WebhookPayload};
use super::engine::{Engine, until};
use super::run::{Run, TriedDelivery};
use crate::push::{DeadLetter, DeliveryAttempt, LaneSettlement, LaneStep, Receipt};
use crate::{Delivered, StoreError};

/// A receiver that failed so often is worth a word to operators.
const FAILING: u32 = 4;

impl Run<'_> {
    /// Writes a step down. Answers whether the lane goes on.
    pub(super) async fn settle(&mut self, step: LaneAction, tried: Option<TriedDelivery>, now: Timestamp) -> bool {
        let before = self.lane.cursor;
        let lane = self.lane.number();
        let taken = tried.as_ref().filter(|tried| tried.judged.verdict == DeliveryVerdict::Ack);
        let receipt = taken.and_then(|tried| self.receipt(tried, now));
        let dead = match step {
            LaneAction::Reject { reason, .. } => Some(self.dead(reason, tried.as_ref(), true, now).await),
            LaneAction::GiveUp { .. } => Some(self.dead(DeadReason::Exhausted, tried.as_ref(), false, now).await),
            LaneAction::Gone { .. } => Some(self.dead(DeadReason::Gone, tried.as_ref(), false, now).await),
            _ => None,
        };
        let delivered = self.delivered(taken, dead.as_ref(), receipt.as_ref(), now);
        let written = LaneStep {
            lane,
            epoch: before.epoch,
            step,
            now,
            attempt: tried.as_ref().map(|tried| self.attempted(tried, before.attempt)),
            dead: dead.map(Box::new),
            receipt: receipt.clone().map(Box::new),
            delivered: delivered.map(Box::new),
        };
        let mut given_up = None;
        let goes_on = match self.engine.outbox.settle_lanes(vec![written]).await.map(|mut settled| settled.pop()) {
            Ok(Some(LaneSettlement::Done { cursor, change })) => {
                self.lane.cursor = cursor;
                given_up = change.dead;
                if let Some(receipt) = receipt {
                    self.lane.receipt = Some(receipt.hash);
                    self.engine.metrics().receipts.add(1);
                }
                if !change.goes_on && cursor.state == LaneState::Active && cursor.is_pending() {
                    // It is due again at once, or will be.
                    self.engine.notifier.ring();
                }
                change.goes_on
            }
            Ok(_) => {
                self.engine.metrics().fenced.add(1);
                false
            }
            Err(fault) => {
                // Without a word from the store nothing has happened: it is sent again when the claim has ended.
                tracing::error!(
                    lane,
                    error = &fault as &dyn std::error::Error,
                    "cannot store the result of a delivery; the webhook may receive the notification again"
                );
                false
            }
        };
        if let Some(tried) = &tried {
            self.count(tried, given_up, before.attempt, now);
            self.log_outcome(tried, step, before.attempt);
        }
        self.tell_reached(goes_on);
        goes_on
    }

    fn attempted(&self, tried: &TriedDelivery, failed: u32) -> DeliveryAttempt {
        DeliveryAttempt {
            lane: self.lane.registration.lane,
            seq: tried.span.to,
            n: failed.saturating_add(1),
            at: tried.began,
            ms: u32::try_from(tried.took.as_millis()).unwrap_or(u32::MAX),
            outcome: outcome(tried).into(),
            http: http(tried),
        }
    }

    fn receipt(&self, tried: &TriedDelivery, now: Timestamp) -> Option<Receipt> {
        if !self.config.notify.receipts {
            return None;
        }
        let (registration, notary) = (&self.lane.registration, &self.engine.notary);
        let mut receipt = Receipt {
            webhook_id: Arc::clone(&tried.letter.webhook_id),
            lane: registration.lane,
            seq: tried.span.to,
            task: registration.task.clone(),
            owner: registration.owner.clone(),
            origin: Arc::clone(&registration.origin),
            body_sha256: notary.digest(&tried.letter.body),
            http: http(tried).unwrap_or_default(),
            at: now,
            prev_hash: self.lane.receipt.unwrap_or_default(),
            hash: [0; 32],
            signature: "".into(),
            receiver_receipt: tried.outcome.receipt.clone(),
        };
        let content = receipt.content();
        receipt.hash = notary.digest(&content);
        receipt.signature = notary.sign(&content, now)?.into();
        Some(receipt)
    }

    /// What the record says of a notification that was taken or given up.
    fn delivered(
        &self,
        taken: Option<&TriedDelivery>,
        dead: Option<&DeadLetter>,
        receipt: Option<&Receipt>,
        now: Timestamp,
    ) -> Option<Delivered> {
        if !self.engine.recording {
            return None;
        }
        if let Some(dead) = dead {
            return Some(Delivered { at: now, ..self.engine.given_up(dead) });
        }
        let TriedDelivery { span, from, letter, .. } = taken?;
        let registration = &self.lane.registration;
        Some(Delivered {
            task: registration.task.clone(),
            config: registration.id.as_str().into(),
            lane: registration.lane,
            webhook_id: Arc::clone(&letter.webhook_id),
            from: *from,
            seq: span.to,
            attempts: self.lane.cursor.attempt.saturating_add(1),
            status: taken.and_then(http),
            given_up: None,
            replay: false,
            sha256: receipt.map_or_else(|| self.engine.notary.digest(&letter.body), |receipt| receipt.body_sha256),
            bytes: letter.body.len() as u64,
            at: now,
        })
    }

    /// The task as it was then, in the form for a webhook.
    async fn whole_at(&mut self, to: u64) -> Result<WebhookPayload, StoreError> {
        let payload = self.log.whole(to).await?;
        self.engine.restore_payload(&self.record.id, payload).await
    }

    /// A letter that holds all there is to know. A whole range is given up as the task as it was at its end.
    async fn dead(&mut self, reason: DeadReason, tried: Option<&TriedDelivery>, this_one: bool, now: Timestamp) -> DeadLetter {
        let registration = Arc::clone(&self.lane.registration);
        let cursor = self.lane.cursor;
        let (from, to) = (cursor.head, tried.filter(|_| this_one).map_or(cursor.tail, |tried| tried.span.to));
        let letter = match tried {
            Some(tried) if tried.span.to == to => tried.letter.clone(),
            _ => match self.whole_at(to).await {
                Ok(payload) => self.engine.courier.write(&WebhookDelivery {
                    registration: Arc::clone(&registration),
                    record: Arc::clone(&self.record),
                    from,
                    span: Span::snapshot(to),
                    payload,
                }),
                Err(_) => tried.map_or_else(nothing, |tried| tried.letter.clone()),
            },
        };
        DeadLetter {
            id: 0,
            lane: registration.lane,
            task: registration.task.clone(),
            registration: registration.id.clone(),
            owner: registration.owner.clone(),
            origin: Arc::clone(&registration.origin),
            webhook_id: letter.webhook_id,
            from,
            to,
            reason: reason.as_str().into(),
            attempts: cursor.attempt.saturating_add(u32::from(tried.is_some())),
            first_at: cursor.first_fail_at.or(tried.map(|tried| tried.began)).unwrap_or(now),
            last_at: now,
            http: tried.and_then(http),
            error: tried.and_then(|tried| tried.outcome.error.clone()),
            body: letter.body,
            headers: letter.headers,
            replays: 0,
        }
    }

    fn count(&self, tried: &TriedDelivery, dead: Option<DeadSpan>, failed: u32, now: Timestamp) {
        let metrics = self.engine.metrics();
        metrics.deliveries.add([outcome(tried), self.lane.registration.profile.as_str()]);
        metrics.attempt.add(tried.took);
        if tried.judged.verdict == DeliveryVerdict::Ack {
            metrics.lag.add(until(tried.recorded, now));
        }
        if failed == 0 && tried.span.to > tried.from {
            metrics.compacted.add(tried.span.to - tried.from + 1);
        }
        if let Some(dead) = dead {
            metrics.dead.add([dead.reason.as_str()]);
        }
        if tried.outcome.answer == AttemptAnswer::Blocked {
            metrics.blocked.add(["address"]);
        }
    }

    fn log_outcome(&self, tried: &TriedDelivery, step: LaneAction, failed: u32) {
        let registration = &self.lane.registration;
        let (task, origin, attempt) = (&registration.task, &*registration.origin, failed.saturating_add(1));
        let (http, error) = (http(tried), tried.outcome.error.as_deref().unwrap_or_default());
        let hash = self.engine.notary.digest(registration.url.as_bytes());
        let url = format!("{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        let seq = tried.span.to;
        match step {
            LaneAction::Ack { .. } if failed >= FAILING => {
                tracing::info!(%task, origin, url, seq, attempt, "push.endpoint.recovered: a webhook answers again");
            }
            LaneAction::Ack { .. } => tracing::debug!(%task, origin, url, seq, attempt, "a webhook accepted a notification"),
            LaneAction::Retry { .. } if attempt == FAILING => {
                tracing::warn!(%task, origin, url, seq, attempt, http, error, "push.endpoint.failing: a webhook keeps failing");
            }
            LaneAction::Retry { .. } => {
                tracing::warn!(%task, origin, url, seq, attempt, http, error, "a webhook did not accept a notification; the node tries again");
            }
            LaneAction::Reject { disable: Some(reason), .. }
            | LaneAction::GiveUp { reason, .. }
            | LaneAction::Disable { reason } => {
                self.log_disabled(reason, &url, http, error);
            }
            LaneAction::Reject { reason, .. } => {
                let reason = reason.as_str();
                tracing::warn!(%task, origin, url, seq, http, reason, "a webhook rejected a notification; the node keeps it as a dead letter");
            }
            LaneAction::Gone { .. } => {
                tracing::warn!(%task, origin, url, "push.config.gone: a webhook answered that it no longer exists")
            }
            LaneAction::Pin { .. } | LaneAction::Skip { .. } | LaneAction::Park { .. } | LaneAction::Release { .. } => {}
        }
    }

    fn log_disabled(&self, reason: DisableReason, url: &str, http: Option<u16>, error: &str) {
        let registration = &self.lane.registration;
        let (task, origin, why) = (&registration.task, &*registration.origin, reason.as_str());
        if reason == DisableReason::BlockedAddress {
            tracing::warn!(security = true, %task, origin, url, error, "a webhook resolved to an address that is not allowed; see push.allow_nets");
        }
        tracing::warn!(%task, origin, url, reason = why, http, error, "push.endpoint.disabled: the node sends nothing more to a webhook");
    }
}

impl Engine {
    pub(super) fn given_up(&self, letter: &DeadLetter) -> Delivered {
        Delivered {
            task: letter.task.clone(),
            config: letter.registration.as_str().into(),
            lane: letter.lane,
            webhook_id: Arc::clone(&letter.webhook_id),
            from: letter.from,
            seq: letter.to,
            attempts: letter.attempts,
            status: letter.http,
            given_up: Some(Arc::clone(&letter.reason)),
            replay: false,
            sha256: self.notary.digest(&letter.body),
            bytes: letter.body.len() as u64,
            at: letter.last_at,
        }
    }
}

fn nothing() -> Letter {
    Letter { webhook_id: "".into(), body: Arc::from(&b""[..]), headers: Vec::new() }
}

pub(super) fn outcome(tried: &TriedDelivery) -> &'static str {
    name(tried.judged.verdict, tried.outcome.answer)
}

pub(super) fn name(verdict: DeliveryVerdict, answer: AttemptAnswer) -> &'static str {
    match (verdict, answer) {
        (DeliveryVerdict::Ack, _) => "delivered",
        (_, AttemptAnswer::Failed(class)) => class.as_str(),
        (DeliveryVerdict::Retry { .. }, _) => "retry",
        (DeliveryVerdict::Reject { reason, .. }, _) => reason.as_str(),
        (DeliveryVerdict::Gone, _) => "gone",
        (DeliveryVerdict::Disable { reason }, _) => reason.as_str(),
        (DeliveryVerdict::Release, _) => "cancelled",
    }
}

pub(super) fn http(tried: &TriedDelivery) -> Option<u16> {
    match tried.outcome.answer {
        AttemptAnswer::Answered { status, .. } => Some(status),
        _ => None,
    }
}
