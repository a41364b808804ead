//! How strictly one agent's answers are read, and who counts what was overlooked.

use std::sync::Arc;

use chancery_wire::tolerant::{Leniencies, Leniency};

use crate::remote::AgentNotes;

/// The terms on which an agent's answers are read. By default every deviation that can be read is.
#[derive(Clone, Debug, Default)]
pub struct ReadingTerms {
    pub notes: Option<Arc<AgentNotes>>,
    /// Answers that deviate from their version are rejected.
    pub is_strict: bool,
}

impl ReadingTerms {
    pub(super) fn count(&self, leniencies: &Leniencies) {
        if let Some(notes) = &self.notes {
            notes.count(leniencies);
        }
    }

    pub(super) fn count_one(&self, leniency: Leniency) {
        self.count(&Leniencies::from([leniency]));
    }
}
