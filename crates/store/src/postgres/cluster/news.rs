//! What a transaction has for other nodes: entries of watched tasks, forwarded calls and answers to them.

use std::collections::{BTreeSet, HashMap};

use chancery_protocol::TaskId;
use tokio_postgres::Row;

use super::forwarded::CallOfNode;
use crate::postgres::append::AppendRows;

/// Stands for every node, where it is not known whose call was answered.
pub(super) const ANY_NODE: i64 = 0;

/// News are added up until they are sent: of a task only the last entry counts.
#[derive(Debug, Default)]
pub(in crate::postgres) struct WakeupNews {
    /// The last batch with entries of watched tasks. Zero without any.
    pub(super) told: i64,
    pub(super) tasks: HashMap<TaskId, u64>,
    /// Nodes that calls were forwarded to.
    pub(super) calls_to: BTreeSet<i64>,
    pub(super) answers: BTreeSet<CallOfNode>,
}

impl WakeupNews {
    pub(super) fn of_call(to: i64) -> Self {
        Self { calls_to: [to].into(), ..Self::default() }
    }

    pub(super) fn of_answers(answers: Vec<CallOfNode>) -> Self {
        Self { answers: answers.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn add_answers(&mut self, answers: Vec<CallOfNode>) {
        self.answers.extend(answers);
    }

    /// A watched task has changed, up to this entry.
    pub(in crate::postgres) fn add_task(&mut self, task: &TaskId, seq: u64) {
        let newest = self.tasks.entry(task.clone()).or_default();
        *newest = seq.max(*newest);
    }

    /// Adds what a batch wrote for its appends, by what its statements answered. If the answers are lost, any of the tasks may be
    /// watched.
    pub(in crate::postgres) fn add_appends(&mut self, rows: &AppendRows<'_>, advance: Option<&Row>, answers: Option<&Row>) {
        let watched: Option<Vec<i64>> = advance.and_then(|row| row.try_get(2).ok());
        for (num, task, seq) in &rows.progressed {
            if watched.as_ref().is_none_or(|watched| watched.contains(num)) {
                self.add_task(task, *seq);
            }
        }
        let answered = answers.and_then(|row| Some((row.try_get::<_, Vec<i64>>(2).ok()?, row.try_get::<_, Vec<i64>>(3).ok()?)));
        match answered {
            Some((numbers, nodes)) => self.answers.extend(nodes.into_iter().zip(numbers)),
            None => self.answers.extend(rows.answered.num.iter().map(|number| (ANY_NODE, *number))),
        }
    }

    /// The number of the batch that all of it is of.
    pub(in crate::postgres) fn set_batch(&mut self, number: i64) {
        self.told = if self.tasks.is_empty() { 0 } else { number };
    }

    pub(super) fn add(&mut self, later: Self) {
        self.told = self.told.max(later.told);
        later.tasks.iter().for_each(|(task, seq)| self.add_task(task, *seq));
        self.calls_to.extend(later.calls_to);
        self.answers.extend(later.answers);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.calls_to.is_empty() && self.answers.is_empty()
    }
}
