//! A store that is too simple to be wrong: lists, searched from one end to the other.

use std::sync::Arc;

use chancery_core::{
    Append, Appended, Decision, Governed, Idempotency, LedgerRow, LedgerSnapshot, ListFilter, LogEntry, PastSpend, Spend, Stored,
    SweepPlan,
};
use chancery_protocol::{Caller, TaskId, Timestamp};

use crate::contract::sample::at;

pub(crate) struct Kept {
    pub(crate) stored: Stored,
    pub(crate) log: Vec<Arc<LogEntry>>,
    pub(crate) governed: Option<Governed>,
}

impl Kept {
    pub(crate) fn settle(&mut self, spend: Option<Spend>) {
        if let (Some(governed), Some(spend)) = (&mut self.governed, spend) {
            governed.spend = spend;
        }
    }

    fn ended(&self) -> bool {
        self.stored.progress.message_only || self.stored.progress.state.is_terminal()
    }

    fn row(&self) -> Option<LedgerRow> {
        let Stored { task, progress } = &self.stored;
        self.governed.clone().map(|governed| LedgerRow {
            task: task.id.clone(),
            context_id: task.context_id.clone(),
            dialect: task.dialect,
            link: None,
            agent: task.agent.clone(),
            owner: task.owner.clone(),
            created_at: task.created_at,
            state: progress.state,
            status_at: progress.status_at,
            governed,
        })
    }
}

/// Tasks in the order they were made, what those had cost that are gone, and decisions.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) tasks: Vec<Kept>,
    /// With the owner and the task of each.
    keys: Vec<(Caller, TaskId, Idempotency)>,
    past: Vec<PastSpend>,
    pub(crate) decisions: Vec<Arc<Decision>>,
}

/// What a store answers to a step. Messages of refusals may differ.
pub(crate) type Answer = Result<(Option<Appended>, u64), ()>;

impl Model {
    pub(crate) fn get(&mut self, id: &str) -> Option<&mut Kept> {
        self.tasks.iter_mut().find(|kept| kept.stored.task.id.as_str() == id)
    }

    pub(crate) fn append(&mut self, append: &Append) -> Answer {
        let recorded = Ok((Some(Appended::Recorded), 0));
        let Append { task, creation, progress, entries, link: _, governed, spend, decision, register: _, notes: _, answers: _ } =
            append;
        let Some(creation) = creation else {
            let kept = self.get(task.id.as_str()).ok_or(())?;
            if progress.seq != kept.stored.progress.seq + entries.len() as u64 {
                return Err(());
            }
            kept.stored.progress = *progress;
            kept.log.extend(entries.iter().cloned());
            kept.settle(*spend);
            self.decide(decision.as_ref());
            return recorded;
        };
        let owned = || self.tasks.iter().filter(|kept| kept.stored.task.owner == task.owner);
        if let Some(asked) = &creation.idempotency
            && let Some((made, known)) = self.key(&task.owner, &asked.key, task.created_at)
        {
            return Ok((Some(Appended::KeyKnown { task: made.clone(), fingerprint: known.fingerprint }), 0));
        }
        let same = |kept: &&Kept| task.client_task_id.is_some() && kept.stored.task.client_task_id == task.client_task_id;
        if let Some(kept) = owned().find(same) {
            return Ok((Some(Appended::ClientIdKnown { task: kept.stored.task.id.clone() }), 0));
        }
        if self.get(task.id.as_str()).is_some() {
            return Err(());
        }
        if let Some(asked) = &creation.idempotency {
            self.keys.retain(|(owner, _, known)| *owner != task.owner || known.key != asked.key);
            self.keys.push((task.owner.clone(), task.id.clone(), asked.clone()));
        }
        let stored = Stored { task: Arc::clone(task), progress: *progress };
        let governed = governed.as_deref().cloned();
        let mut kept = Kept { stored, log: entries.clone(), governed };
        kept.settle(*spend);
        self.tasks.push(kept);
        self.decide(decision.as_ref());
        recorded
    }

    pub(crate) fn decide(&mut self, decision: Option<&Arc<Decision>>) {
        self.decisions.extend(decision.filter(|new| self.decisions.iter().all(|old| old.id != new.id)).cloned());
    }

    /// What a key was used for, if it has not expired.
    pub(crate) fn key(&self, owner: &Caller, key: &str, now: Timestamp) -> Option<(&TaskId, &Idempotency)> {
        let mut keys = self.keys.iter();
        let same = |(of, _, known): &&(Caller, TaskId, Idempotency)| of == owner && *known.key == *key && known.expires_at > now;
        keys.find(same).map(|(_, task, known)| (task, known))
    }

    pub(crate) fn expire(&mut self, now: Timestamp) {
        self.keys.retain(|(_, _, known)| known.expires_at > now);
    }

    pub(crate) fn sweep(&mut self, plan: SweepPlan) -> Answer {
        let age = |kept: &Kept| (kept.stored.progress.status_at, kept.stored.task.id.clone());
        let mut finished: Vec<_> = self.tasks.iter().filter(|kept| kept.ended()).map(age).collect();
        finished.sort();
        let too_old = finished.iter().filter(|(time, _)| plan.older_than.is_some_and(|bound| *time < bound)).count() as u64;
        let too_many = plan.keep_at_most.map_or(0, |keep| (finished.len() as u64).saturating_sub(keep));
        finished.truncate(too_old.max(too_many) as usize);
        let root = |kept: &Kept| kept.governed.as_ref().map(|governed| governed.kinship.root.clone());
        let open: Vec<TaskId> = self.tasks.iter().filter(|kept| !kept.ended()).filter_map(root).collect();
        let held = |kept: &Kept| root(kept).is_some_and(|root| open.contains(&root));
        let held: Vec<_> = self.tasks.iter().filter(|kept| held(kept)).map(age).collect();
        finished.retain(|task| !held.contains(task));
        finished.truncate(plan.at_most as usize);
        let mut going: Vec<_> = self.tasks.extract_if(.., |kept| finished.contains(&age(kept))).collect();
        going.sort_by_key(age);
        self.spent_by(&going, plan.spent_since.unwrap_or(at(i64::MAX)), plan.at_most as usize);
        let too_many = plan.keep_decisions.map_or(0, |keep| self.decisions.len().saturating_sub(keep as usize));
        self.decisions.drain(..too_many.min(plan.at_most as usize));
        Ok((None, finished.len() as u64))
    }

    /// Keeps what counts, added up by owner and second: agent and skill are the same in all of these.
    fn spent_by(&mut self, going: &[Kept], since: Timestamp, at_most: usize) {
        let mut sums: Vec<PastSpend> = Vec::new();
        for LedgerRow { owner, agent, governed, .. } in going.iter().filter_map(Kept::row) {
            let Some(spent) = governed.spend.settled_at.filter(|spent| *spent >= since) else { continue };
            let Spend { settled, overrun, .. } = governed.spend;
            let second = |time: Timestamp| time.micros() / 1_000_000;
            if let Some(sum) = sums.iter_mut().find(|sum| sum.owner == owner && second(sum.at) == second(spent)) {
                sum.settled = sum.settled.saturating_add(settled);
                sum.at = sum.at.max(spent);
                sum.root = sum.root.take().filter(|root| *root == governed.kinship.root);
            } else {
                let (skill, root) = (governed.kinship.skill.clone(), Some(governed.kinship.root.clone()));
                sums.push(PastSpend { owner, agent, skill, root, settled, overrun, at: spent });
            }
        }
        self.past.extend(sums);
        self.past.sort_by_key(|past| past.at);
        let too_old = self.past.iter().filter(|past| past.at < since).count();
        self.past.drain(..too_old.min(at_most));
    }

    pub(crate) fn ledger(&self, since: Timestamp) -> LedgerSnapshot {
        let root = |kept: &Kept| kept.governed.as_ref().map(|governed| governed.kinship.root.clone());
        let open: Vec<TaskId> = self.tasks.iter().filter(|kept| !kept.ended()).filter_map(root).collect();
        let counts = |kept: &&Kept| {
            kept.ended() && kept.stored.progress.status_at >= since || root(kept).is_some_and(|root| open.contains(&root))
        };
        let past = self.past.iter().filter(|past| past.at >= since).cloned().collect();
        LedgerSnapshot { tasks: self.tasks.iter().filter(counts).filter_map(Kept::row).collect(), past }
    }

    pub(crate) fn rows(&self, wanted: impl Fn(&LedgerRow) -> bool) -> Vec<LedgerRow> {
        self.tasks.iter().filter_map(Kept::row).filter(wanted).collect()
    }

    pub(crate) fn listed(&self, filter: &ListFilter) -> Vec<Stored> {
        let mut found: Vec<_> = self.tasks.iter().map(|kept| kept.stored.clone()).collect();
        found.retain(|Stored { task, progress }| {
            !progress.message_only
                && filter.owner.as_ref().is_none_or(|owner| *owner == task.owner)
                && filter.state.is_none_or(|state| state == progress.state)
                && filter.status_at_or_after.is_none_or(|bound| bound <= progress.status_at)
        });
        found.sort_by_key(|stored| std::cmp::Reverse((stored.progress.status_at, stored.task.id.clone())));
        found
    }
}
