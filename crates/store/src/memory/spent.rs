//! What tasks that are gone and earlier turns of others had cost, as long as a budget counts it.

use std::collections::BTreeMap;

use chancery_core::{PastSpend, Spend};
use chancery_protocol::Timestamp;

use super::shard::StoredTask;

/// By time; the number tells apart what was spent at the same.
#[derive(Debug, Default)]
pub(super) struct Spent {
    ever: u64,
    kept: BTreeMap<(Timestamp, u64), PastSpend>,
}

impl Spent {
    pub(super) fn since(&self, since: Timestamp) -> Vec<PastSpend> {
        self.kept.range((since, 0)..).map(|(_, past)| past.clone()).collect()
    }

    pub(super) fn keep(&mut self, past: PastSpend) {
        self.ever += 1;
        self.kept.insert((past.at, self.ever), past);
    }

    /// Takes in what is new and lets go of what was spent before.
    pub(super) fn turn_over(&mut self, new: Vec<PastSpend>, since: Timestamp, at_most: u64) {
        new.into_iter().for_each(|past| self.keep(past));
        let mut gone = 0;
        while gone < at_most
            && let Some(first) = self.kept.first_entry()
            && first.key().0 < since
        {
            first.remove();
            gone += 1;
        }
    }
}

/// What the last turn of a task has cost, if that was since then. Those before it are kept already.
pub(super) fn of_task(kept: &StoredTask, since: Timestamp) -> Option<PastSpend> {
    let governed = kept.governed.as_deref()?;
    PastSpend::of_last_turn(&kept.task.owner, &kept.task.agent, governed).filter(|past| past.at >= since)
}

/// Puts what a task has cost now in the place of what was kept of it. Answers the turn that counts by itself from now on.
pub(super) fn settle(kept: &mut StoredTask, spend: Spend) -> Option<PastSpend> {
    let (task, governed) = (&kept.task, kept.governed.as_mut()?);
    let parted = spend.is_of_later_turn_than(&governed.spend);
    let turn = parted.then(|| PastSpend::of_last_turn(&task.owner, &task.agent, governed)).flatten();
    governed.spend = spend.in_place_of(&governed.spend);
    turn
}
