//! Lanes in the database, moved in the transactions of their tasks.

mod begin;
mod claim;
mod clock;
mod letters;
mod operate;
mod origins;
mod register;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::push::{
    ClockSet, DeadFilter, DeadLetter, DeadPage, DeliveryAttempt, Lane, LaneFilter, LanePage, LaneSettlement, LaneState, LaneStep,
    LaneSweep, NewRegistration, Outbox, OutboxLoad, Receipt, Registered, Registration, Replay, ReplayStep, Resealed, StateChange,
    SweptLanes, WebhookOrigin,
};
use chancery_core::{RecordNote, RecordedWrite, Scribe, StoreError};
use chancery_protocol::{TaskId, Timestamp};

pub(super) use self::begin::{begin_with_task, count, tell};
pub(super) use self::claim::{orphan_all, release_leases};
pub(super) use self::register::remove_all;
use super::PostgresStore;
use super::columns::{limit, sought};
use super::readers::read;
use super::writer_state::WriterState;

/// Whether a refused registration is one too many of its tenant, and not of its task.
pub(super) fn is_of_tenant(refusal: &Registered) -> bool {
    *refusal == Registered::TooManyOfTenant
}

/// Adds notes to the record, if one is kept.
fn add_notes(state: &mut WriterState, scribe: Option<&Arc<dyn Scribe>>, notes: &[RecordNote]) {
    if let Some(scribe) = scribe {
        notes.iter().for_each(|note| state.add_to_record(&scribe.write(RecordedWrite::Note(note))));
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn register(&self, new: NewRegistration) -> Result<Registered, StoreError> {
        crate::plain_ids::check_registration(&new)?;
        self.requests.perform("registering a webhook", new, |new, state| Box::pin(register::register(state, new))).await
    }

    async fn registration(&self, task: &TaskId, id: &str) -> Result<Option<Arc<Registration>>, StoreError> {
        let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = $1) AND r.id = $2";
        let (task, id) = (sought(task.as_str()), sought(id));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&task, &id];
        let found = read!(self.readers, "looking up a webhook", |db| rows::one(db, which, &values))?;
        Ok(found.map(|found| found.lane.registration))
    }

    async fn registrations(&self, task: &TaskId, after: u64, most: usize) -> Result<Vec<Arc<Registration>>, StoreError> {
        let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = $1) AND l.lane > $2 ORDER BY l.lane LIMIT $3";
        let (task, after, most) = (sought(task.as_str()), after.cast_signed(), limit(most));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&task, &after, &most];
        let found = read!(self.readers, "listing webhooks", |db| rows::many(db, which, &values))?;
        Ok(found.into_iter().map(|found| found.lane.registration).collect())
    }

    async fn unregister(&self, task: &TaskId, id: &str) -> Result<Option<u64>, StoreError> {
        let asked = (task.clone(), id.to_owned());
        let work = self.requests.perform("deleting a webhook", asked, |(task, id), state| {
            Box::pin(async move { register::unregister(&*state.session()?, task, id).await })
        });
        work.await
    }

    async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Result<Vec<Lane>, StoreError> {
        let asked = (now, lease, most, per_origin, except.to_vec());
        let work = self.requests.perform("claiming deliveries", asked, |(now, lease, most, per_origin, except), state| {
            Box::pin(async move { claim::claim(&*state.session()?, *now, *lease, *most, *per_origin, except).await })
        });
        work.await
    }

    async fn settle_lanes(&self, steps: Vec<LaneStep>) -> Result<Vec<LaneSettlement>, StoreError> {
        let work = self.requests.perform("settling deliveries", (steps, self.scribe()), |(steps, scribe), state| {
            Box::pin(async move {
                let (settled, notes) = claim::settle(&*state.session()?, steps).await?;
                add_notes(state, scribe.as_ref(), &notes);
                Ok(settled)
            })
        });
        work.await
    }

    async fn park(&self, origin: &WebhookOrigin, until: Timestamp) -> Result<(), StoreError> {
        let work = self.requests.perform("parking deliveries", (origin.clone(), until), |(origin, until), state| {
            Box::pin(async move { origins::park(&*state.session()?, origin, *until).await })
        });
        work.await
    }

    async fn clock_set(&self, set: ClockSet) -> Result<(), StoreError> {
        let work = self.requests.perform("following the clock", set, |set, state| {
            Box::pin(async move { clock::clock_set(&*state.session()?, *set).await })
        });
        work.await
    }

    async fn next_due(&self, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, StoreError> {
        read!(self.readers, "looking for deliveries", |db| claim::next_due(db, except))
    }

    async fn lanes(&self, filter: &LaneFilter, after: u64, limit: usize) -> Result<LanePage, StoreError> {
        let lanes = read!(self.readers, "listing lanes", |db| operate::lanes(db, filter, after, limit))?;
        let next = lanes.last().map(Lane::number).filter(|_| lanes.len() == limit);
        Ok(LanePage { lanes, next })
    }

    async fn change_state(
        &self,
        filter: &LaneFilter,
        change: StateChange,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LaneState)>, StoreError> {
        let asked = (filter.clone(), change, now, after, limit);
        let work = self.requests.perform("changing lanes", asked, |(filter, change, now, after, limit), state| {
            Box::pin(async move { operate::change_state(&*state.session()?, filter, *change, *now, *after, *limit).await })
        });
        work.await
    }

    async fn dead_letters(&self, filter: &DeadFilter, after: u64, limit: usize) -> Result<DeadPage, StoreError> {
        let letters = read!(self.readers, "listing dead letters", |db| letters::list(db, filter, after, limit))?;
        let next = letters.last().map(|letter| letter.id).filter(|_| letters.len() == limit);
        Ok(DeadPage { letters, next })
    }

    async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        read!(self.readers, "looking up a dead letter", |db| letters::get(db, id))
    }

    async fn replay(
        &self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError> {
        let asked = (filter.clone(), new_id, now, after, limit);
        let work = self.requests.perform("putting dead letters in line", asked, |(filter, new_id, now, after, limit), state| {
            Box::pin(async move { letters::put_in_line(&*state.session()?, filter, *new_id, *now, *after, *limit).await })
        });
        work.await
    }

    async fn claim_replays(&self, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, StoreError> {
        let work = self.requests.perform("claiming dead letters", (now, lease, most), |(now, lease, most), state| {
            Box::pin(async move { letters::claim(&*state.session()?, *now, *lease, *most).await })
        });
        work.await
    }

    async fn settle_replays(&self, steps: Vec<ReplayStep>) -> Result<(), StoreError> {
        let work = self.requests.perform("settling dead letters", (steps, self.scribe()), |(steps, scribe), state| {
            Box::pin(async move {
                let notes = letters::settle(&*state.session()?, steps).await?;
                add_notes(state, scribe.as_ref(), &notes);
                Ok(())
            })
        });
        work.await
    }

    async fn purge(&self, filter: &DeadFilter, limit: usize) -> Result<u64, StoreError> {
        let work = self.requests.perform("purging dead letters", (filter.clone(), limit), |(filter, limit), state| {
            Box::pin(async move { letters::purge(&*state.session()?, filter, *limit).await })
        });
        work.await
    }

    async fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Result<Vec<DeliveryAttempt>, StoreError> {
        read!(self.readers, "reading attempts", |db| claim::attempts(db, lane, since, limit))
    }

    async fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Result<Vec<(u64, Receipt)>, StoreError> {
        read!(self.readers, "reading receipts", |db| letters::receipts(db, lane, after, limit))
    }

    async fn sweep_lanes(&self, plan: LaneSweep) -> Result<SweptLanes, StoreError> {
        let work = self.requests.perform("forgetting old deliveries", plan, |plan, state| {
            Box::pin(async move { operate::sweep(&*state.session()?, *plan).await })
        });
        work.await
    }

    async fn reseal(&self, anew: Vec<Resealed>) -> Result<u64, StoreError> {
        let work = self.requests.perform("sealing secrets again", anew, |anew, state| {
            Box::pin(async move { register::reseal(&*state.session()?, anew).await })
        });
        work.await
    }

    async fn outbox_load(&self) -> Result<OutboxLoad, StoreError> {
        read!(self.readers, "counting deliveries", |db| operate::load(db))
    }
}
