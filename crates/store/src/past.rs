//! Adds up what tasks that go had cost, so that their number does not decide how much is kept of them.

use std::collections::HashMap;

use chancery_core::PastSpend;
use foldhash::fast::RandomState;

/// What was spent within so many microseconds counts as spent at the latest of their moments: a little longer than it
/// would have, by far less than the shortest window of a budget.
const TOGETHER: i64 = 1_000_000;

pub(crate) fn add_up(spent: impl IntoIterator<Item = PastSpend>) -> Vec<PastSpend> {
    let mut sums: Vec<PastSpend> = Vec::new();
    let mut places: HashMap<_, usize, RandomState> = HashMap::default();
    for past in spent {
        let key = (past.owner.clone(), past.agent.clone(), past.skill.clone(), past.at.micros().div_euclid(TOGETHER));
        let place = *places.entry(key).or_insert(sums.len());
        match sums.get_mut(place) {
            Some(sum) => {
                merge(sum, &past);
                // A row for each tree would be a row for each task.
                sum.root = sum.root.take().filter(|root| past.root.as_ref() == Some(root));
            }
            None => sums.push(past),
        }
    }
    sums
}

/// Adds one cost to another of the same owner, agent and skill.
pub(crate) fn merge(sum: &mut PastSpend, past: &PastSpend) {
    sum.settled = sum.settled.saturating_add(past.settled);
    sum.overrun = sum.overrun.saturating_add(past.overrun);
    sum.at = sum.at.max(past.at);
}
