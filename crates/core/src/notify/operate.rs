//! What operators do with webhooks: turn them off and on, put letters to them again, try one out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chancery_protocol::Error;
use chancery_rules::push::{LaneState, Latitude, Span, judge};

use super::courier::{DeliveryOutcome, Try, WebhookDelivery};
use super::engine::Engine;
use super::log::Log;
use crate::StoreError;
use crate::find::internal;
use crate::push::{DeadFilter, Lane, LaneFilter, OpenSecrets, Outbox, StateChange};

impl Engine {
    /// Returns the port to lanes, attempts, receipts and dead letters.
    pub fn outbox(&self) -> &Arc<dyn Outbox> {
        &self.outbox
    }

    /// Answers the lanes that changed, at most `limit`, in order. Of those that are off nothing is begun any more.
    pub async fn change_state(
        &self,
        filter: &LaneFilter,
        change: StateChange,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LaneState)>, StoreError> {
        let changed = self.outbox.change_state(filter, change, self.now(), after, limit).await?;
        if change == StateChange::Disable {
            changed.iter().for_each(|(lane, _)| self.notifier.in_flight.stop(*lane));
        }
        self.notifier.ring();
        Ok(changed)
    }

    /// Puts letters in line to be delivered again. Answers which.
    pub async fn replay(&self, filter: &DeadFilter, new_id: bool, after: u64, limit: usize) -> Result<Vec<u64>, StoreError> {
        let queued = self.outbox.replay(filter, new_id, self.now(), after, limit).await?;
        self.letters_wait.store(true, Ordering::Relaxed);
        self.notifier.ring();
        Ok(queued)
    }

    /// Sends the task as it is to a webhook, now and once, beside everything else. Nothing is noted of it.
    pub async fn try_out(&self, lane: &Lane) -> Result<DeliveryOutcome, Error> {
        let registration = Arc::clone(&lane.registration);
        let stored = self.store.find_any(registration.task.as_str()).await.map_err(internal)?;
        let stored = stored.ok_or_else(Error::task_not_found)?;
        let to = stored.progress.seq;
        let payload = Log::new(&*self.store, registration.task.clone()).whole(to).await.map_err(internal)?;
        let payload = self.restore_payload(&stored.task.id, payload).await.map_err(internal)?;
        let record = stored.task;
        let delivery =
            WebhookDelivery { registration: Arc::clone(&registration), record, from: to, span: Span::snapshot(to), payload };
        // Under an id of its own, and as one that comes out of turn: what waits before it still has to come.
        let mut letter = self.courier.write(&delivery);
        letter.webhook_id = format!("{}-r0", letter.webhook_id).into();
        let secrets = OpenSecrets::open(&*self.vault, &registration.bound_to(), registration.sealed.as_ref());
        let secrets = secrets.ok_or_else(|| internal(StoreError::new("the secrets of the registration cannot be opened")))?;
        Ok(self
            .courier
            .deliver(&registration, &secrets, &letter, Try { attempt: 1, replay: true, now: self.timeline.wall() })
            .await)
    }

    /// What an answer would mean.
    pub fn meaning(&self, lane: &Lane, outcome: &DeliveryOutcome) -> &'static str {
        let latitude = Latitude { retry_4xx: self.config.load().lenient.contains(&lane.registration.origin) };
        super::settle::name(judge(outcome.answer, latitude).verdict, outcome.answer)
    }
}
