//! Dead letters, receipts and the last attempts.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use chancery_core::push::{
    ClockSet, DeadFilter, DeadLetter, DeliveryAttempt, LaneSweep, Receipt, Registration, Replay, ReplayStep,
};
use chancery_protocol::Timestamp;

use crate::lanes::ATTEMPTS_KEPT;

#[derive(Debug, Default)]
pub(super) struct Letters {
    ever: u64,
    dead: BTreeMap<u64, Dead>,
    given: u64,
    receipts: BTreeMap<u64, Receipt>,
    attempts: HashMap<u64, VecDeque<DeliveryAttempt>>,
}

#[derive(Debug)]
struct Dead {
    letter: DeadLetter,
    in_line: Option<InLine>,
    epoch: u64,
}

#[derive(Debug)]
struct InLine {
    new_id: bool,
    not_before: Timestamp,
}

impl Letters {
    pub(super) fn keep(&mut self, letter: DeadLetter) {
        self.ever += 1;
        let letter = DeadLetter { id: self.ever, ..letter };
        self.dead.insert(self.ever, Dead { letter, in_line: None, epoch: 0 });
    }

    pub(super) fn acknowledge(&mut self, receipt: Receipt) {
        self.given += 1;
        self.receipts.insert(self.given, receipt);
    }

    pub(super) fn note(&mut self, attempt: DeliveryAttempt) {
        let ring = self.attempts.entry(attempt.lane).or_default();
        if ring.len() as u64 >= ATTEMPTS_KEPT {
            ring.pop_front();
        }
        ring.push_back(attempt);
    }

    pub(super) fn forget_attempts(&mut self, lane: u64) {
        self.attempts.remove(&lane);
    }

    pub(super) fn count(&self) -> u64 {
        self.dead.len() as u64
    }

    pub(super) fn get(&self, id: u64) -> Option<&DeadLetter> {
        self.dead.get(&id).map(|dead| &dead.letter)
    }

    pub(super) fn matching<'a>(&'a self, filter: &'a DeadFilter, after: u64) -> impl Iterator<Item = &'a DeadLetter> {
        self.dead.range(after.saturating_add(1)..).map(|(_, dead)| &dead.letter).filter(|letter| matches(letter, filter))
    }

    pub(super) fn put_in_line(
        &mut self,
        filter: &DeadFilter,
        new_id: bool,
        now: Timestamp,
        after: u64,
        limit: usize,
        is_open: impl Fn(u64) -> bool,
    ) -> Vec<u64> {
        let wanted = self.matching(filter, after).filter(|letter| is_open(letter.lane)).take(limit);
        let wanted: Vec<_> = wanted.map(|letter| letter.id).collect();
        for id in &wanted {
            if let Some(dead) = self.dead.get_mut(id) {
                dead.in_line = Some(InLine { new_id, not_before: now });
                dead.epoch += 1;
            }
        }
        wanted
    }

    pub(super) fn claim(
        &mut self,
        now: Timestamp,
        lease_until: Timestamp,
        most: usize,
        registration: impl Fn(u64) -> Option<Arc<Registration>>,
    ) -> Vec<Replay> {
        let is_due = |dead: &Dead| dead.in_line.as_ref().is_some_and(|line| line.not_before <= now);
        let mut due: Vec<_> = self.dead.values().filter(|dead| is_due(dead)).map(|dead| &dead.letter).collect();
        due.sort_by(|left, right| (&left.task, left.from, left.id).cmp(&(&right.task, right.from, right.id)));
        let due: Vec<_> = due.into_iter().map(|letter| letter.id).take(most).collect();
        let mut claimed = Vec::new();
        for id in due {
            let Some(dead) = self.dead.get_mut(&id) else { continue };
            let Some(registration) = registration(dead.letter.lane) else {
                dead.in_line = None;
                continue;
            };
            let Some(line) = &mut dead.in_line else { continue };
            line.not_before = lease_until;
            dead.epoch += 1;
            claimed.push(Replay { letter: dead.letter.clone(), registration, new_id: line.new_id, epoch: dead.epoch });
        }
        claimed
    }

    pub(super) fn clock_set(&mut self, set: ClockSet) {
        for line in self.dead.values_mut().filter_map(|dead| dead.in_line.as_mut()) {
            line.not_before = set.wait(line.not_before);
        }
    }

    /// Returns whether the caller still held the letter.
    pub(super) fn settle(&mut self, step: ReplayStep) -> bool {
        let Some(dead) = self.dead.get_mut(&step.letter).filter(|dead| dead.epoch == step.epoch) else { return false };
        if step.taken {
            self.dead.remove(&step.letter);
            return true;
        }
        dead.in_line = None;
        dead.letter.replays += 1;
        dead.letter.last_at = step.at;
        dead.letter.http = step.http;
        dead.letter.error = step.error;
        true
    }

    pub(super) fn purge(&mut self, filter: &DeadFilter, limit: usize) -> u64 {
        let wanted: Vec<_> = self.matching(filter, 0).take(limit).map(|letter| letter.id).collect();
        wanted.iter().for_each(|id| drop(self.dead.remove(id)));
        wanted.len() as u64
    }

    pub(super) fn attempts(&self, lane: u64, since: Timestamp, limit: usize) -> Vec<DeliveryAttempt> {
        let ring = self.attempts.get(&lane).into_iter().flatten();
        ring.rev().filter(|attempt| attempt.at >= since).take(limit).cloned().collect()
    }

    pub(super) fn receipts(&self, lane: Option<u64>, after: u64, limit: usize) -> Vec<(u64, Receipt)> {
        let later = self.receipts.range(after.saturating_add(1)..);
        let wanted = later.filter(|(_, receipt)| lane.is_none_or(|lane| receipt.lane == lane));
        wanted.take(limit).map(|(number, receipt)| (*number, receipt.clone())).collect()
    }

    /// Answers how many letters and receipts went.
    pub(super) fn sweep(&mut self, plan: LaneSweep) -> (u64, u64) {
        let most = usize::try_from(plan.at_most).unwrap_or(usize::MAX);
        let old = self.dead.values().map(|dead| &dead.letter).filter(|letter| letter.last_at < plan.dead_before);
        let old: Vec<_> = old.take(most).map(|letter| letter.id).collect();
        old.iter().for_each(|id| drop(self.dead.remove(id)));
        let mut receipts = 0;
        while receipts < plan.at_most
            && let Some(first) = self.receipts.first_entry()
            && first.get().at < plan.receipts_before
        {
            first.remove();
            receipts += 1;
        }
        (old.len() as u64, receipts)
    }
}

fn matches(letter: &DeadLetter, filter: &DeadFilter) -> bool {
    filter.tenant.as_ref().is_none_or(|tenant| letter.owner.tenant == *tenant)
        && filter.origin.as_ref().is_none_or(|origin| letter.origin == *origin)
        && filter.task.as_ref().is_none_or(|task| letter.task == *task)
        && filter.lane.is_none_or(|lane| letter.lane == lane)
        && filter.reason.as_ref().is_none_or(|reason| letter.reason == *reason)
        && filter.since.is_none_or(|since| letter.last_at >= since)
        && filter.until.is_none_or(|until| letter.last_at < until)
}
