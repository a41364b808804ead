//! Lanes in memory, and what is kept about their deliveries.

mod lane_table;
mod letters;
mod queues;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_core::push::{
    ClockSet, DeadFilter, DeadLetter, DeadPage, DeliveryAttempt, Lane, LaneFilter, LanePage, LaneSettlement, LaneState, LaneStep,
    LaneSweep, NewRegistration, Outbox, OutboxLoad, Receipt, Registered, Registration, Replay, ReplayStep, Resealed, StateChange,
    SweptLanes, WebhookOrigin,
};
use chancery_core::{RecordNote, StoreError};
use chancery_protocol::{TaskId, Timestamp};

use self::lane_table::LaneTable;
use self::letters::Letters;
use super::{MemoryStore, locked};
use crate::lanes::told;

#[derive(Debug)]
pub(super) struct OutboxState {
    pub(super) lanes: LaneTable,
    letters: Letters,
}

impl Default for OutboxState {
    /// Numbers are part of delivery ids, which must not come back after a restart with an empty memory.
    fn default() -> Self {
        let first = RandomState::new().hash_one("lanes") >> 16;
        Self { lanes: LaneTable::starting_after(first), letters: Letters::default() }
    }
}

impl OutboxState {
    fn remove(&mut self, lane: u64) {
        self.lanes.remove(lane);
        self.letters.forget_attempts(lane);
    }

    /// All lanes of a task that goes.
    pub(super) fn remove_task(&mut self, task: &TaskId) {
        self.lanes.numbers_of(task).into_iter().for_each(|lane| self.remove(lane));
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn register(&self, new: NewRegistration) -> Result<Registered, StoreError> {
        crate::plain_ids::check_registration(&new)?;
        let task = new.registration.task.clone();
        let mut shard = self.shard(task.as_str());
        let Some(kept) = shard.get_mut(task.as_str()) else { return Ok(Registered::NoTask) };
        let registered = locked(&self.outbox).lanes.register(&new, kept.progress.seq);
        if let Registered::Kept { replaced: false, .. } = registered {
            kept.lanes += 1;
        }
        Ok(registered)
    }

    async fn registration(&self, task: &TaskId, id: &str) -> Result<Option<Arc<Registration>>, StoreError> {
        let outbox = locked(&self.outbox);
        Ok(outbox.lanes.of_task(task).find(|lane| lane.registration.id.as_str() == id).map(|lane| Arc::clone(&lane.registration)))
    }

    async fn registrations(&self, task: &TaskId, after: u64, limit: usize) -> Result<Vec<Arc<Registration>>, StoreError> {
        let outbox = locked(&self.outbox);
        let of_task = outbox.lanes.of_task(task).map(|lane| &lane.registration);
        Ok(of_task.filter(|registration| registration.lane > after).take(limit).cloned().collect())
    }

    async fn unregister(&self, task: &TaskId, id: &str) -> Result<Option<u64>, StoreError> {
        let mut shard = self.shard(task.as_str());
        let mut outbox = locked(&self.outbox);
        let number = outbox.lanes.of_task(task).find(|lane| lane.registration.id.as_str() == id).map(|lane| lane.number());
        let Some(number) = number else { return Ok(None) };
        outbox.remove(number);
        if let Some(kept) = shard.get_mut(task.as_str()) {
            kept.lanes -= 1;
        }
        Ok(Some(number))
    }

    async fn claim(
        &self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Result<Vec<Lane>, StoreError> {
        Ok(locked(&self.outbox).lanes.claim(now, lease, most, per_origin, except))
    }

    async fn settle_lanes(&self, steps: Vec<LaneStep>) -> Result<Vec<LaneSettlement>, StoreError> {
        let mut outbox = locked(&self.outbox);
        let OutboxState { lanes, letters } = &mut *outbox;
        let mut settle = |step: LaneStep| {
            let settled = lanes.settle(&step);
            if let LaneSettlement::Done { change, .. } = settled {
                self.note(self.record.as_ref().and_then(|_| told(&step, &change)).as_ref());
                if let (Some(letter), Some(dead)) = (step.dead, change.dead) {
                    letters.keep(DeadLetter { from: dead.from, to: dead.to, ..*letter });
                }
                step.receipt.into_iter().for_each(|receipt| letters.acknowledge(*receipt));
                step.attempt.into_iter().for_each(|attempt| letters.note(attempt));
            }
            settled
        };
        Ok(steps.into_iter().map(&mut settle).collect())
    }

    async fn park(&self, origin: &WebhookOrigin, until: Timestamp) -> Result<(), StoreError> {
        locked(&self.outbox).lanes.park(origin, until);
        Ok(())
    }

    async fn clock_set(&self, set: ClockSet) -> Result<(), StoreError> {
        let mut outbox = locked(&self.outbox);
        outbox.lanes.clock_set(set);
        outbox.letters.clock_set(set);
        Ok(())
    }

    async fn next_due(&self, except: &[WebhookOrigin]) -> Result<Option<Timestamp>, StoreError> {
        Ok(locked(&self.outbox).lanes.next_due(except))
    }

    async fn lanes(&self, filter: &LaneFilter, after: u64, limit: usize) -> Result<LanePage, StoreError> {
        let outbox = locked(&self.outbox);
        let lanes: Vec<_> = outbox.lanes.matching(filter, after).take(limit).cloned().collect();
        let next = lanes.last().map(|lane| lane.number()).filter(|_| lanes.len() == limit);
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
        Ok(locked(&self.outbox).lanes.change_state(filter, change, now, after, limit))
    }

    async fn dead_letters(&self, filter: &DeadFilter, after: u64, limit: usize) -> Result<DeadPage, StoreError> {
        let outbox = locked(&self.outbox);
        let letters: Vec<_> = outbox.letters.matching(filter, after).take(limit).cloned().collect();
        let next = letters.last().map(|letter| letter.id).filter(|_| letters.len() == limit);
        Ok(DeadPage { letters, next })
    }

    async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        Ok(locked(&self.outbox).letters.get(id).cloned())
    }

    async fn replay(
        &self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<u64>, StoreError> {
        let mut outbox = locked(&self.outbox);
        let OutboxState { lanes, letters } = &mut *outbox;
        Ok(letters.put_in_line(filter, new_id, now, after, limit, |lane| lanes.is_open(lane)))
    }

    async fn claim_replays(&self, now: Timestamp, lease: Duration, most: usize) -> Result<Vec<Replay>, StoreError> {
        let mut outbox = locked(&self.outbox);
        let OutboxState { lanes, letters } = &mut *outbox;
        Ok(letters.claim(now, now + lease, most, |lane| lanes.get(lane).map(|lane| Arc::clone(&lane.registration))))
    }

    async fn settle_replays(&self, steps: Vec<ReplayStep>) -> Result<(), StoreError> {
        let mut outbox = locked(&self.outbox);
        for mut step in steps {
            let note = step.delivered.take().map(RecordNote::Delivered);
            if outbox.letters.settle(step) {
                self.note(note.as_ref());
            }
        }
        Ok(())
    }

    async fn purge(&self, filter: &DeadFilter, limit: usize) -> Result<u64, StoreError> {
        Ok(locked(&self.outbox).letters.purge(filter, limit))
    }

    async fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Result<Vec<DeliveryAttempt>, StoreError> {
        Ok(locked(&self.outbox).letters.attempts(lane, since, limit))
    }

    async fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Result<Vec<(u64, Receipt)>, StoreError> {
        Ok(locked(&self.outbox).letters.receipts(lane, after, limit))
    }

    async fn sweep_lanes(&self, plan: LaneSweep) -> Result<SweptLanes, StoreError> {
        let old = self.drained(plan);
        let mut lanes = 0;
        for (task, number) in old {
            let mut shard = self.shard(task.as_str());
            let mut outbox = locked(&self.outbox);
            if outbox.lanes.get(number).is_none_or(|lane| lane.cursor.is_pending()) {
                continue;
            }
            outbox.remove(number);
            if let Some(kept) = shard.get_mut(task.as_str()) {
                kept.lanes -= 1;
            }
            lanes += 1;
        }
        let (dead, receipts) = locked(&self.outbox).letters.sweep(plan);
        Ok(SweptLanes { lanes, dead, receipts })
    }

    async fn reseal(&self, anew: Vec<Resealed>) -> Result<u64, StoreError> {
        let mut outbox = locked(&self.outbox);
        Ok(anew.iter().filter(|one| outbox.lanes.reseal(one)).count() as u64)
    }

    async fn outbox_load(&self) -> Result<OutboxLoad, StoreError> {
        let outbox = locked(&self.outbox);
        Ok(OutboxLoad { dead: outbox.letters.count(), ..outbox.lanes.load() })
    }
}

impl MemoryStore {
    /// Lanes with nothing to deliver, of tasks that ended before.
    fn drained(&self, plan: LaneSweep) -> Vec<(TaskId, u64)> {
        let most = usize::try_from(plan.at_most).unwrap_or(usize::MAX);
        let mut old = Vec::new();
        for shard in &self.shards {
            let shard = locked(shard);
            let outbox = locked(&self.outbox);
            let ended = shard.finished().iter().take_while(|(at, _)| *at < plan.drained_before);
            for (_, task) in ended.filter(|(_, task)| shard.get(task.as_str()).is_some_and(|kept| kept.lanes > 0)) {
                let drained = outbox.lanes.of_task(task).filter(|lane| !lane.cursor.is_pending());
                old.extend(drained.map(|lane| (task.clone(), lane.number())));
                if old.len() >= most {
                    old.truncate(most);
                    return old;
                }
            }
        }
        old
    }
}
