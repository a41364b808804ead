//! What came of looking at a task once, and how often in a row that was nothing.

use chancery_core::Finished;

/// What came of listening for a while.
#[derive(Debug)]
pub(super) enum RoundOutcome {
    /// The turn is over.
    Over(Finished),
    /// Something new, and more may come.
    News,
    /// Nothing new, but that the task is worked on.
    AtWork,
    Nothing,
}

impl RoundOutcome {
    /// The one and then the other.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (_, over @ Self::Over(_)) => over,
            (Self::Nothing, other) | (Self::AtWork, other @ Self::News) => other,
            (heard, _) => heard,
        }
    }
}

/// Rounds in a row, since something else was heard.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounds {
    /// Without news: pauses grow with them.
    pub(super) quiet: u32,
    /// Without any sign that the task is worked on.
    pub(super) in_vain: u32,
    /// In which the agent could not even be asked.
    pub(super) failed: u32,
}

impl Rounds {
    pub(super) fn note(&mut self, heard: &RoundOutcome) {
        let in_vain = if matches!(heard, RoundOutcome::Nothing) { self.in_vain.saturating_add(1) } else { 0 };
        let quiet = if matches!(heard, RoundOutcome::News) { 0 } else { self.quiet.saturating_add(1) };
        *self = Self { quiet, in_vain, ..*self };
    }
}
