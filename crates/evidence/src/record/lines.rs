//! Puts what a store is about to write into words, a line for each thing.

use chancery_core::{Append, Decision, Freeze, Happening, Lines, LogEntry, Mark, Note, Rule, TaskRecord, Verdict};
use chancery_protocol::{TaskEvent, Timestamp, Version};
use serde::Serialize;

use super::content::content_of;
use super::hex;
use super::words::{
    About, Admitted, Card, Clock, Delivered, Facts, Frozen, Looked, Older, Refused, Requested, Routed, Rules, Said, Shared,
    Spoken, Updated, types,
};

/// Room for what most calls leave behind, so that it is not moved as it grows.
const TYPICAL_BYTES: usize = 1024;

#[derive(Debug, Default)]
pub struct Writer {
    lines: Lines,
}

impl Writer {
    pub fn write(what: Happening<'_>) -> Lines {
        let text = String::with_capacity(TYPICAL_BYTES);
        let mut writer = Self { lines: Lines { text, marks: Vec::with_capacity(4) } };
        match what {
            Happening::Append(append) => writer.append(append),
            Happening::Decision(decision) => writer.decision(decision),
            Happening::Freeze(freeze) => writer.freeze(freeze),
            Happening::Note(note) => writer.note(note),
        }
        writer.lines
    }

    /// The clock was set back to `at`. It had said `before`.
    pub(super) fn clock(at: Timestamp, before: Timestamp) -> Lines {
        let mut writer = Self::default();
        writer.line(at, types::CLOCK, &Clock { before: before.micros() });
        writer.lines
    }

    fn line(&mut self, at: Timestamp, kind: &str, data: &impl Serialize) {
        use std::fmt::Write as _;
        let text = &mut self.lines.text;
        let start = text.len();
        // Writing to a string cannot fail.
        let _ = write!(text, r#"{{"at":{},"data":"#, at.micros());
        let mut bytes = std::mem::take(text).into_bytes();
        let written = serde_json::to_writer(&mut bytes, data);
        *text = String::from_utf8(bytes).unwrap_or_default();
        if let Err(fault) = written {
            // Nothing in these words can refuse to be written; if it did, the entry says so rather than nothing.
            tracing::error!(%fault, kind, "an entry of the record could not be written");
            text.truncate(start);
            let _ = write!(text, r#"{{"at":{},"data":{{"unwritten":true}}"#, at.micros());
        }
        text.push(',');
        let link = text.len();
        let _ = writeln!(text, r#""type":"{kind}"}}"#);
        self.lines.marks.push(Mark { at, link, end: text.len() });
    }

    fn append(&mut self, append: &Append) {
        let task = &append.task;
        for entry in &append.entries {
            if let TaskEvent::Created(_) = entry.event {
                self.requested(append, entry);
            }
        }
        if let Some(decision) = &append.decision {
            self.decision(decision);
        }
        append.entries.iter().for_each(|entry| self.update(task, entry));
        if let Some(link) = &append.link {
            let at = append.entries.last().map_or(task.created_at, |entry| entry.at);
            let routed = Routed {
                peer: &link.peer,
                remote_context: link.context.as_ref().map(|context| context.as_str()),
                remote_task: link.task.as_ref().map(|task| task.as_str()),
                task: task.id.as_str(),
            };
            self.line(at, types::ROUTED, &routed);
        }
        append.notes.iter().for_each(|note| self.note(note));
    }

    fn requested(&mut self, append: &Append, entry: &LogEntry) {
        let (task, governed) = (&append.task, append.governed.as_deref());
        let kinship = governed.map(|governed| &*governed.kinship);
        let message = match &entry.event {
            TaskEvent::Created(made) => made.history.first(),
            _ => None,
        };
        let requested = Requested {
            agent: &task.agent,
            attribution: kinship.map(|kinship| kinship.attribution.as_str()),
            caller: &task.owner.name,
            context: task.context_id.as_str(),
            depth: kinship.map(|kinship| kinship.depth),
            message: message.map(|message| Said::of(message)),
            parent: kinship.and_then(|kinship| kinship.parent.as_ref()).map(|parent| parent.as_str()),
            protocol_version: task.dialect.as_str(),
            root: kinship.map(|kinship| kinship.root.as_str()).filter(|root| *root != task.id.as_str()),
            skill: kinship.and_then(|kinship| kinship.skill.as_deref()),
            task: task.id.as_str(),
            tenant: &task.owner.tenant,
            trace: kinship.map(|kinship| kinship.trace),
        };
        self.line(entry.at, types::REQUESTED, &requested);
        if let Some(governed) = governed {
            let admitted = Admitted { decision: None, rules: Rules(&governed.verdicts), task: Some(task.id.as_str()) };
            self.line(entry.at, types::ADMITTED, &admitted);
        }
    }

    fn update(&mut self, task: &TaskRecord, LogEntry { seq, at, event }: &LogEntry) {
        let (seq, id) = (*seq, task.id.as_str());
        let Older { agent, protocol_version } = match task.dialect {
            Version::V1_0 => Older { agent: None, protocol_version: None },
            older => Older { agent: Some(&task.agent), protocol_version: Some(older.as_str()) },
        };
        match event {
            TaskEvent::Created(_) => {}
            TaskEvent::Said(message) | TaskEvent::Replied(message) => {
                self.line(*at, types::MESSAGE, &Spoken { agent, message: Said::of(message), protocol_version, seq, task: id });
            }
            TaskEvent::Status(change) => {
                let message = change.status.message.as_deref().map(Said::of);
                let state = change.status.state.name();
                self.line(*at, types::UPDATED, &Updated { agent, message, protocol_version, seq, state, task: id });
            }
            TaskEvent::Artifact(chunk) => {
                let content = content_of(&chunk.artifact.parts);
                let shared = Shared {
                    agent,
                    append: chunk.append,
                    artifact: chunk.artifact.artifact_id.as_str(),
                    bytes: content.bytes,
                    last_chunk: chunk.last_chunk,
                    parts: content.parts,
                    protocol_version,
                    seq,
                    sha256: hex(&content.sha256),
                    task: id,
                };
                self.line(*at, types::ARTIFACT, &shared);
            }
        }
    }

    fn decision(&mut self, decision: &Decision) {
        let task = decision.task.as_ref().map(|task| task.as_str());
        if let [Verdict { rule: Rule::Memory, passed, facts }] = &*decision.verdicts {
            let looked = Looked {
                agent: &decision.agent,
                caller: &decision.caller,
                decision: &decision.id,
                facts: Facts(facts),
                granted: *passed,
                refused: decision.refused.as_deref(),
                task,
                tenant: &decision.tenant,
            };
            return self.line(decision.at, types::LOOKED, &looked);
        }
        let rules = Rules(&decision.verdicts);
        match &decision.refused {
            None => self.line(decision.at, types::ADMITTED, &Admitted { decision: Some(&decision.id), rules, task }),
            Some(refused) => {
                let refused = Refused {
                    agent: &decision.agent,
                    caller: &decision.caller,
                    decision: &decision.id,
                    refused,
                    root: decision.root.as_ref().map(|root| root.as_str()),
                    rules,
                    task,
                    tenant: &decision.tenant,
                    trace: decision.trace,
                };
                self.line(decision.at, types::REFUSED, &refused);
            }
        }
    }

    fn freeze(&mut self, freeze: &Freeze) {
        let frozen = Frozen { by: &freeze.by, scope: freeze.scope.to_string(), why: freeze.why.as_deref() };
        self.line(freeze.at, types::FROZEN, &frozen);
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::CardObserved(card) => {
                let observed = Card {
                    agent: &card.agent,
                    bytes: card.bytes,
                    protocol_version: &card.protocol_version,
                    sha256: hex(&card.sha256),
                    url: &card.url,
                };
                self.line(card.at, types::CARD, &observed);
            }
            Note::Cancelled { task, by, at } => {
                self.line(*at, types::CANCELLED, &About { by: Some(by), task: task.as_str() });
            }
            Note::Withdrawn { task, at } => self.line(*at, types::WITHDRAWN, &About { by: None, task: task.as_str() }),
            Note::Thawed { scope, by, at } => {
                self.line(*at, types::THAWED, &Frozen { by, scope: scope.to_string(), why: None });
            }
            Note::Delivered(delivery) => {
                let delivered = Delivered {
                    attempts: delivery.attempts,
                    bytes: delivery.bytes,
                    config: &delivery.config,
                    from: delivery.from,
                    given_up: delivery.given_up.as_deref(),
                    lane: delivery.lane,
                    replay: delivery.replay,
                    seq: delivery.seq,
                    sha256: hex(&delivery.sha256),
                    status: delivery.status,
                    task: delivery.task.as_str(),
                    webhook: &delivery.webhook_id,
                };
                self.line(delivery.at, types::DELIVERED, &delivered);
            }
        }
    }
}
