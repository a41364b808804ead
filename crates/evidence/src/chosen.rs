//! Tells which entries of a record are wanted, as they pass by.

use std::collections::BTreeSet;

use chancery_protocol::Timestamp;

use crate::export::ExportSelection;
use crate::record::{BACK_DATED_MICROS, Entry, types};

pub(crate) struct ChosenEntries<'a> {
    wanted: &'a ExportSelection,
    tasks: BTreeSet<String>,
    trace: String,
    stretch: TimeRange,
    found: bool,
}

/// Where one is in a stretch of time.
#[derive(Default)]
struct TimeRange {
    begun: bool,
    /// The last one that was too early.
    before: Option<Entry>,
    /// Whether the last one that was taken is too late.
    ended: bool,
    /// Too late, unless one comes that is not.
    held_back: Vec<Entry>,
    over: bool,
}

impl<'a> ChosenEntries<'a> {
    pub(crate) fn new(wanted: &'a ExportSelection) -> Self {
        let (mut tasks, mut trace) = (BTreeSet::new(), String::new());
        match wanted {
            ExportSelection::Task(task) => drop(tasks.insert(task.clone())),
            ExportSelection::Trace(id, known) => (trace, tasks) = (id.to_string(), known.clone()),
            ExportSelection::Between(..) => {}
        }
        Self { wanted, tasks, trace, stretch: TimeRange::default(), found: false }
    }

    /// Beside entries that only show where others end.
    pub(crate) fn found_nothing(&self) -> bool {
        !self.found
    }

    pub(crate) fn see(&mut self, entry: Entry, taken: &mut Vec<Entry>) {
        if let ExportSelection::Between(since, until) = self.wanted {
            self.found |= self.stretch.see(entry, *since, *until, taken);
            return;
        }
        // Without it, what comes after it would seem to be back-dated.
        if entry.kind == types::CLOCK && self.found {
            taken.push(entry);
            return;
        }
        let of_trace = !self.trace.is_empty() && entry.data["trace"] == self.trace;
        let task = entry.data["task"].as_str();
        if of_trace && let Some(task) = task {
            self.tasks.insert(task.to_owned());
        }
        if of_trace || task.is_some_and(|task| self.tasks.contains(task)) {
            self.found = true;
            taken.push(entry);
        }
    }
}

impl TimeRange {
    /// A range of the record has no gaps, and one entry more on either side. They show a verifier that
    /// nothing was left out.
    fn see(&mut self, entry: Entry, since: Option<Timestamp>, until: Option<Timestamp>, taken: &mut Vec<Entry>) -> bool {
        self.begun |= since.is_none_or(|since| entry.at >= since);
        if !self.begun {
            self.before = Some(entry);
            return false;
        }
        if self.over {
            return false;
        }
        taken.extend(self.before.take());
        let Some(until) = until.filter(|until| entry.at >= *until) else {
            taken.append(&mut self.held_back);
            taken.push(entry);
            self.ended = false;
            return true;
        };
        self.over = entry.at.micros() > until.micros().saturating_add(BACK_DATED_MICROS);
        if self.ended {
            self.held_back.push(entry);
        } else {
            self.ended = true;
            taken.push(entry);
        }
        false
    }
}
