//! Puts what a store is about to write into words, a line for each thing.

use std::borrow::Cow;

use chancery_core::{
    Append, CardObserved, Decision, Delegated, Delivered, Fact, Freeze, LogEntry, RecordLines, RecordNote, RecordedWrite, Rule,
    TaskRecord, Verdict,
};
use chancery_protocol::{Message, TaskEvent, Timestamp, Version};

use super::content::content_of;
use super::line_writer::LineWriter;
use super::words::{Kind, Name};

/// Room for what most calls leave behind when they begin, and for what most writes do, so that it is not moved as it grows.
const BEGINNING_BYTES: usize = 384;
const TYPICAL_BYTES: usize = 128;

#[derive(Debug, Default)]
pub struct EntryWriter {
    pen: LineWriter,
}

impl EntryWriter {
    pub fn write(what: RecordedWrite<'_>) -> RecordLines {
        let begins = matches!(what, RecordedWrite::Append(append) if append.creation.is_some());
        let mut writer = Self { pen: LineWriter::with_room(if begins { BEGINNING_BYTES } else { TYPICAL_BYTES }) };
        match what {
            RecordedWrite::Append(append) => writer.append(append),
            RecordedWrite::Decision(decision) => writer.decision(decision),
            RecordedWrite::Freeze(freeze) => writer.freeze(freeze),
            RecordedWrite::Note(note) => writer.note(note),
        }
        writer.pen.into_lines()
    }

    /// The clock was set back to `at`. It had said `before`.
    pub(super) fn clock(at: Timestamp, before: Timestamp) -> RecordLines {
        let mut pen = LineWriter::default();
        pen.line(at, Kind::Clock, |pen| pen.name(Name::Before).time(before));
        pen.into_lines()
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
            self.pen.line(at, Kind::Routed, |pen| {
                pen.name(Name::Peer).text(&link.peer);
                id(pen, Name::RemoteContext, link.context.as_ref().map(|context| context.as_str()));
                id(pen, Name::RemoteTask, link.task.as_ref().map(|task| task.as_str()));
                pen.name(Name::Task).id(task.id.as_str());
            });
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
        self.pen.line(entry.at, Kind::Requested, |pen| {
            pen.name(Name::Agent).text(&task.agent);
            if let Some(kinship) = kinship {
                pen.name(Name::Attribution).value(kinship.attribution.into());
            }
            pen.name(Name::Caller).text(&task.owner.name);
            pen.name(Name::Context).id(task.context_id.as_str());
            if let Some(kinship) = kinship {
                pen.name(Name::Depth).number(kinship.depth.into());
            }
            said(pen, message.map(|message| &**message));
            id(pen, Name::Parent, kinship.and_then(|kinship| kinship.parent.as_ref()).map(|parent| parent.as_str()));
            pen.name(Name::ProtocolVersion).value(task.dialect.version().into());
            id(pen, Name::Root, kinship.map(|kinship| kinship.root.as_str()).filter(|root| *root != task.id.as_str()));
            text(pen, Name::Skill, kinship.and_then(|kinship| kinship.skill.as_deref()));
            pen.name(Name::Task).id(task.id.as_str());
            pen.name(Name::Tenant).text(&task.owner.tenant);
            if let Some(kinship) = kinship {
                pen.name(Name::Trace).trace(kinship.trace);
            }
        });
        if let Some(governed) = governed {
            self.admitted(entry.at, None, &governed.verdicts, Some(task.id.as_str()));
        }
    }

    fn admitted(&mut self, at: Timestamp, decision: Option<&str>, verdicts: &[Verdict], task: Option<&str>) {
        self.pen.line(at, Kind::Admitted, |pen| {
            id(pen, Name::Decision, decision);
            rules(pen, verdicts);
            id(pen, Name::Task, task);
        });
    }

    fn update(&mut self, task: &TaskRecord, LogEntry { seq, at, event }: &LogEntry) {
        // With whom, and in what, is said again of tasks below 1.0 only, for the packets that are made of their updates.
        let older = task.dialect.version() != Version::V1_0;
        let agent = older.then_some(&*task.agent);
        let version = |pen: &mut LineWriter| {
            if older {
                pen.name(Name::ProtocolVersion).value(task.dialect.version().into());
            }
        };
        match event {
            TaskEvent::Created(_) => {}
            TaskEvent::Said(message) | TaskEvent::Replied(message) => self.pen.line(*at, Kind::Said, |pen| {
                text(pen, Name::Agent, agent);
                said(pen, Some(message));
                version(pen);
                pen.name(Name::Seq).number(*seq);
                pen.name(Name::Task).id(task.id.as_str());
            }),
            TaskEvent::Status(change) => self.pen.line(*at, Kind::Updated, |pen| {
                text(pen, Name::Agent, agent);
                said(pen, change.status.message.as_deref());
                version(pen);
                pen.name(Name::Seq).number(*seq);
                pen.name(Name::State).value(change.status.state.into());
                pen.name(Name::Task).id(task.id.as_str());
            }),
            TaskEvent::Artifact(chunk) => self.pen.line(*at, Kind::Shared, |pen| {
                let content = content_of(&chunk.artifact.parts);
                text(pen, Name::Agent, agent);
                pen.name(Name::Append).flag(chunk.append);
                pen.name(Name::Artifact).id(chunk.artifact.artifact_id.as_str());
                pen.name(Name::Bytes).number(content.bytes);
                pen.name(Name::LastChunk).flag(chunk.last_chunk);
                pen.name(Name::Parts).number(content.parts as u64);
                version(pen);
                pen.name(Name::Seq).number(*seq);
                pen.name(Name::Sha256).digest(&content.sha256);
                pen.name(Name::Task).id(task.id.as_str());
            }),
        }
    }

    fn decision(&mut self, decision: &Decision) {
        let task = decision.task.as_ref().map(|task| task.as_str());
        let is_look = |verdict: &Verdict| verdict.rule == Rule::Memory;
        for Verdict { passed, facts: found, .. } in decision.verdicts.iter().filter(|verdict| is_look(verdict)) {
            self.pen.line(decision.at, Kind::Looked, |pen| {
                pen.name(Name::Agent).text(&decision.agent);
                pen.name(Name::Caller).text(&decision.caller);
                pen.name(Name::Decision).id(&decision.id);
                pen.name(Name::Facts).list(|pen| facts(pen, found));
                pen.name(Name::Granted).flag(*passed);
                text(pen, Name::Refused, decision.refused.as_deref());
                id(pen, Name::Task, task);
                pen.name(Name::Tenant).text(&decision.tenant);
            });
        }
        if !decision.verdicts.is_empty() && decision.verdicts.iter().all(is_look) {
            return;
        }
        let Some(refused) = &decision.refused else {
            return self.admitted(decision.at, Some(&decision.id), &decision.verdicts, task);
        };
        self.pen.line(decision.at, Kind::Refused, |pen| {
            pen.name(Name::Agent).text(&decision.agent);
            pen.name(Name::Caller).text(&decision.caller);
            pen.name(Name::Decision).id(&decision.id);
            pen.name(Name::Refused).text(refused);
            id(pen, Name::Root, decision.root.as_ref().map(|root| root.as_str()));
            rules(pen, &decision.verdicts);
            id(pen, Name::Task, task);
            pen.name(Name::Tenant).text(&decision.tenant);
            if let Some(trace) = decision.trace {
                pen.name(Name::Trace).trace(trace);
            }
        });
    }

    fn freeze(&mut self, freeze: &Freeze) {
        self.pen.line(freeze.at, Kind::Frozen, |pen| {
            pen.name(Name::By).text(&freeze.by);
            pen.name(Name::Scope).text(&freeze.scope.to_string());
            // Operators write what they like there.
            text(pen, Name::Why, freeze.why.as_deref());
        });
    }

    fn note(&mut self, note: &RecordNote) {
        match note {
            RecordNote::CardObserved(card) => self.card(card),
            RecordNote::Cancelled { task, by, at } => self.pen.line(*at, Kind::Cancelled, |pen| {
                pen.name(Name::By).text(by);
                pen.name(Name::Task).id(task.as_str());
            }),
            RecordNote::Withdrawn { task, at } => {
                self.pen.line(*at, Kind::Withdrawn, |pen| pen.name(Name::Task).id(task.as_str()))
            }
            RecordNote::Thawed { scope, by, at } => self.pen.line(*at, Kind::Thawed, |pen| {
                pen.name(Name::By).text(by);
                pen.name(Name::Scope).text(&scope.to_string());
            }),
            RecordNote::Delivered(delivery) => self.delivered(delivery),
            RecordNote::Delegated(delegation) => self.delegated(delegation),
        }
    }

    fn card(&mut self, card: &CardObserved) {
        self.pen.line(card.at, Kind::CardObserved, |pen| {
            pen.name(Name::Agent).text(&card.agent);
            pen.name(Name::Bytes).number(card.bytes);
            if card.extended {
                pen.name(Name::Extended).flag(true);
            }
            pen.name(Name::ProtocolVersion).text(&card.protocol_version);
            pen.name(Name::Sha256).digest(&card.sha256);
            pen.name(Name::Url).text(&card.url);
        });
    }

    fn delegated(&mut self, delegation: &Delegated) {
        let Delegated { task, kinship, remote, at } = delegation;
        self.pen.line(*at, Kind::Delegated, |pen| {
            pen.name(Name::Agent).text(&task.agent);
            pen.name(Name::Attribution).value(kinship.attribution.into());
            pen.name(Name::Caller).text(&task.owner.name);
            text(pen, Name::Delegator, delegation.delegator().map(|agent| &**agent));
            pen.name(Name::Depth).number(kinship.depth.into());
            id(pen, Name::Parent, kinship.parent.as_ref().map(|parent| parent.as_str()));
            pen.name(Name::Path).list(|pen| kinship.path.to_vec().iter().for_each(|agent| pen.text(agent)));
            pen.name(Name::ProtocolVersion).value(task.dialect.version().into());
            pen.name(Name::Remote).flag(*remote);
            pen.name(Name::Root).id(kinship.root.as_str());
            text(pen, Name::Skill, kinship.skill.as_deref());
            pen.name(Name::Task).id(task.id.as_str());
            pen.name(Name::Tenant).text(&task.owner.tenant);
            pen.name(Name::Trace).trace(kinship.trace);
        });
    }

    fn delivered(&mut self, delivery: &Delivered) {
        self.pen.line(delivery.at, Kind::Delivered, |pen| {
            pen.name(Name::Attempts).number(delivery.attempts.into());
            pen.name(Name::Bytes).number(delivery.bytes);
            pen.name(Name::Config).id(&delivery.config);
            pen.name(Name::From).number(delivery.from);
            text(pen, Name::GivenUp, delivery.given_up.as_deref());
            pen.name(Name::Lane).number(delivery.lane);
            pen.name(Name::Replay).flag(delivery.replay);
            pen.name(Name::Seq).number(delivery.seq);
            pen.name(Name::Sha256).digest(&delivery.sha256);
            if let Some(status) = delivery.status {
                pen.name(Name::Status).number(status.into());
            }
            pen.name(Name::Task).id(delivery.task.as_str());
            pen.name(Name::Webhook).id(&delivery.webhook_id);
        });
    }
}

fn text(pen: &mut LineWriter, name: Name, text: Option<&str>) {
    if let Some(text) = text {
        pen.name(name).text(text);
    }
}

fn id(pen: &mut LineWriter, name: Name, id: Option<&str>) {
    if let Some(id) = id {
        pen.name(name).id(id);
    }
}

/// A message, without what it says.
fn said(pen: &mut LineWriter, message: Option<&Message>) {
    let Some(message) = message else { return };
    let content = content_of(&message.parts);
    pen.name(Name::Message).object(|pen| {
        pen.name(Name::Bytes).number(content.bytes);
        pen.name(Name::Id).id(message.message_id.as_str());
        pen.name(Name::Parts).number(content.parts as u64);
        pen.name(Name::Role).value(message.role.into());
        pen.name(Name::Sha256).digest(&content.sha256);
    });
}

/// What each rule said, in the order they were asked.
fn rules(pen: &mut LineWriter, verdicts: &[Verdict]) {
    pen.name(Name::Rules).list(|pen| {
        for Verdict { rule, passed, facts: found } in verdicts {
            let found = (!found.is_empty()).then_some(|pen: &mut LineWriter| facts(pen, found));
            if *passed {
                pen.passed(*rule, found);
                continue;
            }
            pen.object(|pen| {
                if let Some(facts) = found {
                    pen.name(Name::Facts).list(facts);
                }
                pen.name(Name::Passed).flag(false);
                pen.name(Name::Rule).value((*rule).into());
            });
        }
    });
}

/// Pairs of a name and a value, in the order they were found.
fn facts(pen: &mut LineWriter, facts: &[(Cow<'static, str>, Fact)]) {
    for (name, fact) in facts {
        pen.list(|pen| {
            pen.text(name);
            match fact {
                Fact::Number(number) => pen.number(*number),
                Fact::Text(text) => pen.text(text),
                Fact::Name(name) => pen.text(name),
                Fact::Usd(amount) => pen.text(&amount.to_string()),
                Fact::Path(path) => pen.text(&path.to_string()),
                Fact::Scopes(scopes) => pen.text(&scopes.to_string()),
            }
        });
    }
}
