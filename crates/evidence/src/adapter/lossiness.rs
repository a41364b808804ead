//! What a conversion lost: members without a place, ids that were made up, and the notes about those.

use serde::Serialize;

use super::raw_payloads::RawPayloadRef;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lossiness {
    pub lossiness_level: LossinessLevel,
    pub unmapped_fields_count: u32,
    /// This adapter always has one; the form allows none.
    pub raw_payload_ref: Option<RawPayloadRef>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossinessLevel {
    None,
    Low,
    High,
}

impl LossinessLevel {
    fn of(count: u32) -> Self {
        match count {
            0 => Self::None,
            1..=2 => Self::Low,
            3.. => Self::High,
        }
    }
}

/// An id put in place of one that is missing, and what is noted about it.
pub(super) struct Substitute {
    id: &'static str,
    note: &'static str,
}

pub(super) const AGENT: Substitute = Substitute { id: "unknown-agent", note: "missing agent.id -> substituted unknown-agent" };
pub(super) const TASK: Substitute = Substitute { id: "unknown-task", note: "missing task.id -> substituted unknown-task" };
pub(super) const ARTIFACT: Substitute =
    Substitute { id: "unknown-artifact", note: "missing artifact.id -> substituted unknown-artifact" };
pub(super) const MESSAGE: Substitute =
    Substitute { id: "unknown-message", note: "missing message.id -> substituted unknown-message" };

pub(super) const GENERIC_MESSAGE: &str = "unsupported event_type -> emitted generic A2A message event";

/// Counts as conversion goes: each member without a place and each substitution is one.
#[derive(Debug)]
pub(super) struct Losses {
    count: u32,
    notes: Vec<String>,
}

impl Losses {
    pub(super) fn starting_with(unmapped_members: usize) -> Self {
        Self { count: u32::try_from(unmapped_members).unwrap_or(u32::MAX), notes: Vec::new() }
    }

    pub(super) fn note(&mut self, note: &str) {
        self.count = self.count.saturating_add(1);
        self.notes.push(note.to_owned());
    }

    pub(super) fn id_or(&mut self, id: Option<&str>, substitute: &Substitute) -> String {
        id.unwrap_or_else(|| {
            self.note(substitute.note);
            substitute.id
        })
        .to_owned()
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn report(self, raw_payload: RawPayloadRef) -> Lossiness {
        Lossiness {
            lossiness_level: LossinessLevel::of(self.count),
            unmapped_fields_count: self.count,
            raw_payload_ref: Some(raw_payload),
            notes: self.notes,
        }
    }
}
