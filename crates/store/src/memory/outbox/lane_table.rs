//! The lanes themselves: by number, by task, and by when they are due.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chancery_core::Appended;
use chancery_core::push::{
    ClockSet, Lane, LaneFilter, LaneSettlement, LaneState, LaneStep, NewRegistration, OutboxLoad, Registered, Resealed,
    StateChange, WebhookOrigin,
};
use chancery_protocol::{TaskId, Timestamp};

use super::queues::DueQueues;
use crate::lanes;

#[derive(Debug, Default)]
pub(in crate::memory) struct LaneTable {
    last: u64,
    all: BTreeMap<u64, Lane>,
    /// In the order they were made.
    of_task: HashMap<TaskId, Vec<u64>>,
    of_tenant: HashMap<Arc<str>, usize>,
    queues: DueQueues,
}

impl LaneTable {
    pub(super) fn starting_after(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    pub(super) fn get(&self, number: u64) -> Option<&Lane> {
        self.all.get(&number)
    }

    /// Whether deliveries may still be made by it.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.get(number).is_some_and(|lane| lane.cursor.state != LaneState::Gone)
    }

    pub(super) fn of_task(&self, task: &TaskId) -> impl Iterator<Item = &Lane> {
        self.of_task.get(task).into_iter().flatten().filter_map(|number| self.all.get(number))
    }

    /// `seq` is where the task's log ends.
    pub(in crate::memory) fn register(&mut self, new: &NewRegistration, seq: u64) -> Registered {
        let registration = &new.registration;
        let named = self.of_task(&registration.task).find(|lane| lane.registration.id == registration.id);
        if let Some(number) = named.map(|lane| lane.number()) {
            if let Some(lane) = self.all.get_mut(&number) {
                let before = lane.clone();
                lanes::replace(lane, new);
                self.queues.replace(&before, lane);
            }
            return Registered::Kept { lane: number, replaced: true };
        }
        if let Some(refusal) = self.too_many(new) {
            return refusal;
        }
        self.last += 1;
        let number = self.last;
        let lane = lanes::begin(new, number, seq);
        self.of_task.entry(registration.task.clone()).or_default().push(number);
        *self.of_tenant.entry(Arc::clone(&registration.owner.tenant)).or_default() += 1;
        self.queues.add(&lane);
        self.all.insert(number, lane);
        Registered::Kept { lane: number, replaced: false }
    }

    /// Whether its secrets were still those.
    pub(super) fn reseal(&mut self, anew: &Resealed) -> bool {
        let lane = self.all.get_mut(&anew.lane).filter(|lane| lane.registration.sealed.as_ref() == Some(&anew.before));
        lane.map(|lane| Arc::make_mut(&mut lane.registration).sealed = Some(anew.after.clone())).is_some()
    }

    pub(in crate::memory) fn too_many(&self, new: &NewRegistration) -> Option<Registered> {
        let registration = &new.registration;
        if self.of_task.get(&registration.task).map_or(0, Vec::len) >= new.limits.per_task {
            return Some(Registered::TooManyOfTask);
        }
        let of_tenant = self.of_tenant.get(&registration.owner.tenant).copied().unwrap_or(0);
        (of_tenant >= new.limits.per_tenant).then_some(Registered::TooManyOfTenant)
    }

    /// New entries of a task.
    pub(in crate::memory) fn extend(&mut self, task: &TaskId, tail: u64, now: Timestamp) -> Appended {
        let (mut sooner, mut behind) = (false, false);
        for number in self.numbers_of(task) {
            let Some(origin) = self.all.get(&number).map(|lane| lane.registration.destination()) else { continue };
            let before = self.queues.due_at(&origin);
            self.with(number, |lane| {
                lane.cursor.append(tail, now);
                behind |= lanes::due_at(&lane.cursor).is_some();
            });
            let after = self.queues.due_at(&origin);
            sooner |= after.is_some_and(|after| before.is_none_or(|before| after < before));
        }
        lanes::appended(sooner, behind)
    }

    /// Whether a task must stay because there is something of it to deliver.
    pub(in crate::memory) fn holds(&self, task: &TaskId) -> bool {
        self.of_task(task).any(|lane| lanes::due_at(&lane.cursor).is_some())
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(lane) = self.all.remove(&number) else { return };
        self.queues.remove(&lane);
        let registration = &lane.registration;
        if let Some(numbers) = self.of_task.get_mut(&registration.task) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.of_task.remove(&registration.task);
            }
        }
        if let Some(count) = self.of_tenant.get_mut(&registration.owner.tenant) {
            *count -= 1;
            if *count == 0 {
                self.of_tenant.remove(&registration.owner.tenant);
            }
        }
    }

    pub(super) fn numbers_of(&self, task: &TaskId) -> Vec<u64> {
        self.of_task.get(task).cloned().unwrap_or_default()
    }

    pub(super) fn claim(
        &mut self,
        now: Timestamp,
        lease: Duration,
        most: usize,
        per_origin: usize,
        except: &[WebhookOrigin],
    ) -> Vec<Lane> {
        let due = self.queues.due(now, most, per_origin, except);
        let mut claimed = Vec::with_capacity(due.len());
        for number in due {
            let claim = |lane: &mut Lane| lane.cursor.claim(now, lease).map(|_| lane.clone());
            claimed.extend(self.with(number, claim).flatten());
        }
        claimed
    }

    pub(super) fn settle(&mut self, step: &LaneStep) -> LaneSettlement {
        self.with(step.lane, |lane| lanes::settle(lane, step)).unwrap_or(LaneSettlement::Fenced)
    }

    pub(super) fn park(&mut self, queue: &WebhookOrigin, until: Timestamp) {
        self.queues.park(queue, until);
    }

    pub(super) fn clock_set(&mut self, set: ClockSet) {
        let numbers: Vec<_> = self.all.keys().copied().collect();
        for number in numbers {
            self.with(number, |lane| lane.cursor.clock_set(set));
        }
        self.queues.clock_set(set);
    }

    pub(super) fn next_due(&self, except: &[WebhookOrigin]) -> Option<Timestamp> {
        self.queues.next_due(except)
    }

    pub(super) fn matching<'a>(&'a self, filter: &'a LaneFilter, after: u64) -> impl Iterator<Item = &'a Lane> {
        self.all.range(after.saturating_add(1)..).map(|(_, lane)| lane).filter(|lane| matches(lane, filter))
    }

    pub(super) fn change_state(
        &mut self,
        filter: &LaneFilter,
        change: StateChange,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Vec<(u64, LaneState)> {
        let numbers: Vec<_> = self.matching(filter, after).map(|lane| lane.number()).collect();
        let mut changed = Vec::new();
        for number in numbers {
            if changed.len() >= limit {
                break;
            }
            let state =
                self.with(number, |lane| lanes::change(&mut lane.cursor, change, now).then_some(lane.cursor.state)).flatten();
            changed.extend(state.map(|state| (number, state)));
        }
        changed
    }

    pub(super) fn load(&self) -> OutboxLoad {
        let due = self.all.values().map(|lane| &lane.cursor).filter(|cursor| lanes::due_at(cursor).is_some());
        let (pending, backlog) =
            due.fold((0, 0), |(lanes, events), cursor| (lanes + 1, events + (cursor.tail + 1 - cursor.head)));
        OutboxLoad { lanes: self.all.len() as u64, pending, backlog_events: backlog, dead: 0 }
    }

    /// Changes a lane and its place in the line.
    fn with<T>(&mut self, number: u64, change: impl FnOnce(&mut Lane) -> T) -> Option<T> {
        let lane = self.all.get_mut(&number)?;
        self.queues.take_out(lane);
        let done = change(lane);
        self.queues.put_back(lane);
        Some(done)
    }
}

fn matches(lane: &Lane, filter: &LaneFilter) -> bool {
    let registration = &lane.registration;
    filter.tenant.as_ref().is_none_or(|tenant| registration.owner.tenant == *tenant)
        && filter.origin.as_ref().is_none_or(|origin| registration.origin == *origin)
        && filter.task.as_ref().is_none_or(|task| registration.task == *task)
        && filter.registration.as_ref().is_none_or(|id| registration.id.as_str() == &**id)
        && filter.lane.is_none_or(|number| registration.lane == number)
        && filter.state.as_ref().is_none_or(|state| lane.cursor.state.as_str() == &**state)
}
