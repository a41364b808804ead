//! What tasks had cost that are gone, as long as a budget counts it.

use std::collections::BTreeMap;

use chancery_core::PastSpend;
use chancery_protocol::Timestamp;

use super::shard::Kept;

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

    /// Takes in what is new and lets go of what was spent before.
    pub(super) fn turn_over(&mut self, new: Vec<PastSpend>, since: Timestamp, at_most: u64) {
        for past in new {
            self.ever += 1;
            self.kept.insert((past.at, self.ever), past);
        }
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

/// What a task that goes has cost since then, if it has.
pub(super) fn of_task(kept: &Kept, since: Timestamp) -> Option<PastSpend> {
    let governed = kept.governed.as_deref()?;
    let at = governed.spend.settled_at.filter(|at| *at >= since)?;
    Some(PastSpend {
        owner: kept.task.owner.clone(),
        agent: kept.task.agent.clone(),
        skill: governed.kinship.skill.clone(),
        settled: governed.spend.settled,
        overrun: governed.spend.overrun,
        at,
    })
}
