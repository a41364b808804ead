//! What real frameworks answered, as it was captured: every answer is read, whichever version is claimed, and nothing of it is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use chancery_protocol::{Message, Operation, Part, Reply, Sent, Task, TaskEvent, Version};
use chancery_wire::tolerant::{self, ClaimedForm, EventReader};
use serde_json::Value;

/// A captured answer.
struct Captured {
    framework: String,
    operation: String,
    is_ok: bool,
    is_stream: bool,
    body: String,
}

impl Captured {
    fn is_rest(&self) -> bool {
        self.framework.ends_with("-rest")
    }

    /// Versions by trial may lead to any claim. Over REST there is one form, that of 0.3.
    fn claims(&self) -> Vec<ClaimedForm> {
        match self.is_rest() {
            true => vec![ClaimedForm { version: Version::V0_3, is_rest: true, is_strict: false }],
            false => vec![Version::V1_0.into(), Version::V0_3.into()],
        }
    }

    fn name(&self) -> String {
        format!("{}/{}", self.framework, self.operation)
    }
}

fn captured() -> Vec<Captured> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/frameworks");
    let mut all = Vec::new();
    for framework in fs::read_dir(&folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        for file in fs::read_dir(framework.path()).unwrap().map(Result::unwrap) {
            let text = fs::read_to_string(file.path()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            all.push(Captured {
                framework: framework.file_name().into_string().unwrap(),
                operation: file.path().file_stem().unwrap().to_str().unwrap().to_owned(),
                is_ok: head.starts_with("HTTP/1.1 200"),
                is_stream: head.contains("text/event-stream"),
                body: body.to_owned(),
            });
        }
    }
    assert!(all.len() > 50, "the captured answers are there");
    all
}

/// The data of each event of a stream.
fn payloads(body: &str) -> Vec<String> {
    let body = body.replace("\r\n", "\n");
    let data = |block: &str| block.lines().filter_map(|line| line.strip_prefix("data:")).collect::<Vec<_>>().join("\n");
    body.split("\n\n").map(data).filter(|data| !data.is_empty()).collect()
}

/// The text of each part in JSON of any version.
fn said(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            all.extend(members.get("text").and_then(Value::as_str).map(str::to_owned));
            members.iter().filter(|(name, _)| *name != "metadata").for_each(|(_, member)| said(member, all));
        }
        Value::Array(items) => items.iter().for_each(|item| said(item, all)),
        _ => {}
    }
}

fn read_message(message: &Message, all: &mut BTreeSet<String>) {
    read_parts(&message.parts, all);
}

fn read_parts(parts: &[Part], all: &mut BTreeSet<String>) {
    all.extend(parts.iter().filter_map(Part::as_text).map(str::to_owned));
}

fn read_task(task: &Task, all: &mut BTreeSet<String>) {
    task.history.iter().chain(&task.status.message).for_each(|message| read_message(message, all));
    task.artifacts.iter().for_each(|artifact| read_parts(&artifact.parts, all));
}

fn read_event(event: &TaskEvent, all: &mut BTreeSet<String>) {
    match event {
        TaskEvent::Created(task) => read_task(task, all),
        TaskEvent::Said(message) | TaskEvent::Replied(message) => read_message(message, all),
        TaskEvent::Status(change) => change.status.message.iter().for_each(|message| read_message(message, all)),
        TaskEvent::Artifact(chunk) => read_parts(&chunk.artifact.parts, all),
    }
}

#[test]
fn every_event_of_every_framework_is_read_and_nothing_of_it_is_lost() {
    let mut seen = 0;
    for captured in captured().iter().filter(|one| one.is_stream && one.is_ok) {
        for claimed in captured.claims() {
            let mut reader = EventReader::new(claimed);
            for payload in payloads(&captured.body) {
                let payload = payload.trim();
                let text = match captured.is_rest() {
                    true => payload,
                    false => match tolerant::envelope(payload, "1").unwrap().outcome {
                        Ok(result) => result,
                        Err(_) => continue,
                    },
                };
                let read = reader.read(text).unwrap_or_else(|fault| panic!("{}: {claimed:?}: {fault}", captured.name())).unwrap();
                let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
                said(&serde_json::from_str(text).unwrap(), &mut expected);
                read_event(&read.value.1, &mut found);
                assert_eq!(found, expected, "{}: {claimed:?}: {text}", captured.name());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn every_answer_of_every_framework_is_read_and_nothing_of_it_is_lost() {
    let mut seen = 0;
    for captured in captured().iter().filter(|one| !one.is_stream && one.is_ok && one.operation != "card") {
        let operation = match captured.operation.as_str() {
            "get" => Operation::GetTask,
            "cancel" => Operation::CancelTask,
            _ => Operation::SendMessage,
        };
        for claimed in captured.claims() {
            let text = match captured.is_rest() {
                true => captured.body.trim(),
                false => match tolerant::envelope(captured.body.trim(), "1").unwrap().outcome {
                    Ok(result) => result,
                    Err(_) => continue,
                },
            };
            let read = tolerant::reply(claimed, operation, text);
            let read = read.unwrap_or_else(|fault| panic!("{}: {claimed:?}: {fault}", captured.name()));
            let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
            said(&serde_json::from_str(text).unwrap(), &mut expected);
            match &read.value {
                Reply::Sent(Sent::Task(shown)) | Reply::Task(shown) => read_task(&shown.task, &mut found),
                Reply::Sent(Sent::Message(message)) => read_message(message, &mut found),
                other => panic!("{other:?}"),
            }
            assert_eq!(found, expected, "{}: {claimed:?}: {text}", captured.name());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn every_card_of_every_framework_is_read() {
    for captured in captured().iter().filter(|one| one.operation == "card" && one.is_ok) {
        let read = tolerant::card(&captured.body).unwrap_or_else(|fault| panic!("{}: {fault}", captured.name()));
        assert!(!read.value.card.supported_interfaces.is_empty(), "{}", captured.name());
        assert!(!read.value.card.name.is_empty(), "{}", captured.name());
    }
}
