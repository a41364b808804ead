//! What was decided about calls that made no task.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use chancery_core::Decision;
use chancery_protocol::TaskId;

#[derive(Debug, Default)]
pub(super) struct Decisions {
    ever: u64,
    /// Oldest first.
    kept: BTreeMap<u64, Arc<Decision>>,
    by_id: HashMap<Arc<str>, u64>,
    of_task: HashMap<TaskId, VecDeque<u64>>,
}

impl Decisions {
    /// One that is known stays as it is: a decision never changes, but its writing may be tried again.
    pub(super) fn keep(&mut self, decision: Arc<Decision>) {
        if self.by_id.contains_key(&decision.id) {
            return;
        }
        self.ever += 1;
        self.by_id.insert(Arc::clone(&decision.id), self.ever);
        if let Some(task) = &decision.task {
            self.of_task.entry(task.clone()).or_default().push_back(self.ever);
        }
        self.kept.insert(self.ever, decision);
    }

    pub(super) fn by_id(&self, id: &str) -> Option<Decision> {
        self.get(*self.by_id.get(id)?)
    }

    pub(super) fn of_task(&self, task: &TaskId) -> Vec<Decision> {
        self.of_task.get(task).into_iter().flatten().filter_map(|number| self.get(*number)).collect()
    }

    pub(super) fn newest(&self, limit: usize) -> Vec<Decision> {
        self.kept.values().rev().take(limit).map(|decision| Decision::clone(decision)).collect()
    }

    pub(super) fn before(&self, id: &str, limit: usize) -> Vec<Decision> {
        let Some(number) = self.by_id.get(id) else { return Vec::new() };
        self.kept.range(..number).rev().take(limit).map(|(_, decision)| Decision::clone(decision)).collect()
    }

    pub(super) fn keep_newest(&mut self, keep: u64, at_most: u64) {
        let too_many = (self.kept.len() as u64).saturating_sub(keep);
        for _ in 0..too_many.min(at_most) {
            let Some((_, decision)) = self.kept.pop_first() else { return };
            self.by_id.remove(&decision.id);
            if let Some(task) = &decision.task
                && let Some(numbers) = self.of_task.get_mut(task)
            {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.of_task.remove(task);
                }
            }
        }
    }

    fn get(&self, number: u64) -> Option<Decision> {
        self.kept.get(&number).map(|decision| Decision::clone(decision))
    }
}
