//! Lanes in the database, moved in the transactions of their tasks.

mod begin;
mod claim;
mod clock;
mod conditions;
mod letters;
mod operate;
mod origins;
mod register;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::StoreError;
use chancery_core::push::{
    ClockSet, DeadFilter, DeadLetter, DeadPage, DeliveryAttempt, Lane, LaneFilter, LanePage, LaneSettlement, LaneState, LaneStep,
    LaneSweep, NewRegistration, Outbox, OutboxLoad, Receipt, Registered, Registration, Replay, ReplayStep, Resealed, StateChange,
    SweptLanes, WebhookOrigin,
};
use chancery_protocol::{TaskId, Timestamp};

pub(super) use self::begin::Laning;
pub(super) use self::claim::orphan_all;
pub(super) use self::origins::uncount;
pub(super) use self::register::{holds, register, remove_all};
use super::SqliteStore;

#[async_trait]
impl Outbox for SqliteStore {
    async fn register(&self, new: NewRegistration) -> Result<Registered, StoreError> {
        crate::plain_ids::check_registration(&new)?;
        self.perform_as_writer("registering a webhook", move |writer| writer.statements.register(&new)).await
    }

    async fn registration(&self, task: &TaskId, id: &str) -> Result<Option<Arc<Registration>>, StoreError> {
        let (task, id) = (task.clone(), id.to_owned());
        let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = ?1) AND r.id = ?2";
        let found =
            self.readers.read("looking up a webhook", move |connection| rows::one(connection, which, (task.as_str(), id)));
        Ok(found.await?.map(|found| found.lane.registration))
    }

    async fn registrations(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<Registration>>, StoreError> {
        let task = task.clone();
        let which = "WHERE l.task = (SELECT num FROM tasks WHERE id = ?1) AND l.lane > ?2 ORDER BY l.lane LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = move |connection: &mut rusqlite::Connection| rows::many(connection, which, (task.as_str(), after, limit));
        let found = self.readers.read("listing webhooks", read).await?;
        Ok(found.into_iter().map(|found| found.lane.registration).collect())
    }

    async fn unregister(&self, task: &TaskId, id: &str) -> Result<Option<u64>, StoreError> {
        let (task, id) = (task.clone(), id.to_owned());
        self.perform("deleting a webhook", move |connection| register::unregister(connection, &task, &id)).await
    }

    async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Result<Vec<Lane>, StoreError> {
        let except = except.to_vec();
        let work = move |connection: &rusqlite::Connection| claim::claim(connection, now, lease, most, per_origin, &except);
        // Whoever opens the database takes all claims back.
        self.perform_fleeting("claiming deliveries", work).await
    }

    async fn settle_lanes(&self, steps: Vec<LaneStep>) -> Result<Vec<LaneSettlement>, StoreError> {
        self.perform_noting("settling deliveries", move |connection, note| claim::settle(connection, &steps, note)).await
    }

    async fn park(&self, origin: &WebhookOrigin, until: Timestamp) -> Result<(), StoreError> {
        let origin = origin.clone();
        self.perform("parking deliveries", move |connection| origins::park(connection, &origin, until)).await
    }

    async fn clock_set(&self, set: ClockSet) -> Result<(), StoreError> {
        self.perform("following the clock", move |connection| clock::clock_set(connection, set)).await
    }

    async fn next_due(&self, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, StoreError> {
        let except = except.to_vec();
        self.readers.read("looking for deliveries", move |connection| claim::next_due(connection, &except)).await
    }

    async fn lanes(&self, filter: &LaneFilter, after: u64, limit: usize) -> Result<LanePage, StoreError> {
        let filter = filter.clone();
        let read = move |connection: &mut rusqlite::Connection| operate::lanes(connection, &filter, after, limit);
        let lanes = self.readers.read("listing lanes", read).await?;
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
        let filter = filter.clone();
        let work = move |connection: &rusqlite::Connection| operate::change_state(connection, &filter, change, now, after, limit);
        self.perform("changing lanes", work).await
    }

    async fn dead_letters(&self, filter: &DeadFilter, after: u64, limit: usize) -> Result<DeadPage, StoreError> {
        let filter = filter.clone();
        let read = move |connection: &mut rusqlite::Connection| letters::list(connection, &filter, after, limit);
        let letters = self.readers.read("listing dead letters", read).await?;
        let next = letters.last().map(|letter| letter.id).filter(|_| letters.len() == limit);
        Ok(DeadPage { letters, next })
    }

    async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        self.readers.read("looking up a dead letter", move |connection| letters::get(connection, id)).await
    }

    async fn replay(
        &self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError> {
        let filter = filter.clone();
        let work = move |connection: &rusqlite::Connection| letters::put_in_line(connection, &filter, new_id, now, after, limit);
        self.perform("putting dead letters in line", work).await
    }

    async fn claim_replays(&self, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, StoreError> {
        self.perform("claiming dead letters", move |connection| letters::claim(connection, now, lease, most)).await
    }

    async fn settle_replays(&self, steps: Vec<ReplayStep>) -> Result<(), StoreError> {
        self.perform_noting("settling dead letters", move |connection, note| letters::settle(connection, &steps, note)).await
    }

    async fn purge(&self, filter: &DeadFilter, limit: usize) -> Result<u64, StoreError> {
        let filter = filter.clone();
        self.perform("purging dead letters", move |connection| letters::purge(connection, &filter, limit)).await
    }

    async fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Result<Vec<DeliveryAttempt>, StoreError> {
        self.readers.read("reading attempts", move |connection| claim::attempts(connection, lane, since, limit)).await
    }

    async fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Result<Vec<(u64, Receipt)>, StoreError> {
        self.readers.read("reading receipts", move |connection| letters::receipts(connection, lane, after, limit)).await
    }

    async fn sweep_lanes(&self, plan: LaneSweep) -> Result<SweptLanes, StoreError> {
        self.perform("forgetting old deliveries", move |connection| operate::sweep(connection, plan)).await
    }

    async fn reseal(&self, anew: Vec<Resealed>) -> Result<u64, StoreError> {
        self.perform("encrypting secrets again", move |connection| register::reseal(connection, &anew)).await
    }

    async fn outbox_load(&self) -> Result<OutboxLoad, StoreError> {
        self.readers.read("counting deliveries", |connection| operate::load(connection)).await
    }
}

/// The frequent queries, each with the index that answers it.
#[cfg(test)]
pub(super) const INDEXED: &[(&str, &str)] = &[
    (origins::DUE, "push_origins_due"),
    (claim::DUE, "lanes_due (origin=? AND due_at<?)"),
    (origins::RELINE, "lanes_due"),
    (register::OF_TASK, "lanes_of_task"),
    (register::HOLDS, "lanes_of_task"),
    (begin::IDLE, "lanes_of_task"),
    (letters::IN_LINE, "dead_letters_in_line"),
    (operate::DRAINED, "lanes_ended"),
    (operate::OLD_LETTERS, "dead_letters_at"),
];
