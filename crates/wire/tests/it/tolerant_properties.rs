//! Properties of the tolerant reader: it never panics, never invents, and reads what is valid as the strict readers do.

use std::collections::BTreeSet;

use chancery_protocol::{Message, Operation, Part, PartContent, Reply, Task, TaskEvent, Version};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v0_3::rest::V0_3Rest;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::tolerant::{self, ClaimedForm};
use chancery_wire::{Codec, Frames, TaskNames};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value};

use crate::any_model;
use crate::any_model::lost::Form;

const REST: ClaimedForm = ClaimedForm { version: Version::V0_3, is_rest: true, is_strict: false };

/// Failures are printed whole; nothing is kept between runs. `PROPTEST_CASES` sets how many are tried.
fn settings() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

fn claims() -> [ClaimedForm; 4] {
    [Version::V1_0.into(), Version::V0_3.into(), Version::Original.into(), REST]
}

/// An event as a stream of this form has it. Nothing, where it is not one frame there.
fn written(codec: &dyn Codec, event: &TaskEvent) -> Option<String> {
    let mut frames = Frames::bare();
    let face = TaskNames {
        task_id: "t".into(),
        context_id: "c".into(),
        client_task_id: Some("mine".into()),
        artifacts: Vec::new(),
        stays_open: false,
    };
    codec.encode_event(&mut frames, &face, event);
    let text = String::from_utf8(frames.take()).expect("JSON is UTF-8");
    let mut payloads = text.lines().filter_map(|line| line.strip_prefix("data: "));
    payloads.next().filter(|_| payloads.next().is_none()).map(str::to_owned)
}

fn event_is_exact(codec: &dyn Codec, own: ClaimedForm, claims: &[ClaimedForm], event: &TaskEvent) -> Result<(), TestCaseError> {
    let Some(text) = written(codec, event) else { return Ok(()) };
    let Ok(strict) = codec.decode_event(&text) else { return Ok(()) };
    for claimed in claims {
        let read =
            tolerant::event(*claimed, &text).map_err(|fault| TestCaseError::fail(format!("{claimed:?}: {fault}: {text}")))?;
        let Some(read) = read else { return Err(TestCaseError::fail(format!("{claimed:?}: nothing in {text}"))) };
        prop_assert_eq!(&read.value, &strict, "{:?}: {}", claimed, text);
        prop_assert!(*claimed != own || read.leniencies.is_empty(), "{:?} in {}", read.leniencies, text);
    }
    Ok(())
}

fn reply_is_exact(
    codec: &dyn Codec,
    form: Form,
    own: ClaimedForm,
    claims: &[ClaimedForm],
    reply: &Reply,
) -> Result<(), TestCaseError> {
    let operation = match reply {
        Reply::Sent(_) => Operation::SendMessage,
        Reply::Task(_) => Operation::GetTask,
        Reply::Tasks(_) => Operation::ListTasks,
        _ => return Ok(()),
    };
    if form.reply(reply).is_none() {
        return Ok(());
    }
    let mut out = Vec::new();
    codec.encode_reply(&mut out, reply);
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    let Ok(strict) = codec.decode_reply(operation, &text) else { return Ok(()) };
    for claimed in claims {
        let read = tolerant::reply(*claimed, operation, &text);
        let read = read.map_err(|fault| TestCaseError::fail(format!("{claimed:?}: {fault}: {text}")))?;
        // The version of a call is that of its question.
        let same = format!("{:?}", read.value).replace("Plain(V1_0)", "").replace("Plain(V0_3)", "");
        prop_assert_eq!(same, format!("{strict:?}").replace("Plain(V1_0)", "").replace("Plain(V0_3)", ""), "{}", text);
        prop_assert!(*claimed != own || read.leniencies.is_empty(), "{:?} in {}", read.leniencies, text);
    }
    Ok(())
}

/// The names in which 1.0 and other versions differ by their spelling.
fn snake(name: &str) -> String {
    name.chars().flat_map(|one| one.is_ascii_uppercase().then_some('_').into_iter().chain([one.to_ascii_lowercase()])).collect()
}

/// Departs from the text of the version: one choice per member, until the choices are used up.
fn deviate(value: &mut Value, choices: &mut std::slice::Iter<'_, u8>) {
    match value {
        Value::Object(members) => {
            let mut changed = Map::new();
            for (name, mut value) in std::mem::take(members) {
                if name != "metadata" && name != "data" {
                    deviate(&mut value, choices);
                }
                match (choices.next().copied().unwrap_or(0) % 12, &value) {
                    (1, _) => changed.insert(snake(&name), value),
                    (2, _) => changed.insert(name, Value::Null),
                    (3, _) => None,
                    (4, Value::Bool(yes)) => changed.insert(name, Value::String(yes.to_string())),
                    (5, Value::String(_)) => changed.insert(name, Value::from(17)),
                    (6, Value::String(text)) => {
                        let word = text.trim_start_matches("TASK_STATE_").trim_start_matches("ROLE_");
                        changed.insert(name, Value::String(word.to_ascii_lowercase().replace('_', "-")))
                    }
                    (7, Value::Object(_)) => changed.insert(name, Value::String("plain".to_owned())),
                    _ => changed.insert(name, value),
                };
            }
            *members = changed;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| deviate(item, choices)),
        _ => {}
    }
}

/// Every string in a text, and every number and boolean as it is spelled.
fn strings(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            all.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(members) => members.values().for_each(|member| strings(member, all)),
        Value::Number(_) | Value::Bool(_) => {
            all.insert(value.to_string());
        }
        Value::Null => {}
    }
}

fn part_texts<'a>(part: &'a Part, all: &mut Vec<&'a str>) {
    match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => all.push(text),
        PartContent::Raw(_) | PartContent::Data(_) => {}
    }
    all.extend(part.filename.as_deref().into_iter().chain(part.media_type.as_deref()));
}

fn message_texts<'a>(message: &'a Message, all: &mut Vec<&'a str>) {
    all.push(message.message_id.as_str());
    all.extend(message.context_id.as_ref().map(|id| id.as_str()));
    all.extend(message.task_id.as_ref().map(|id| id.as_str()));
    message.parts.iter().for_each(|part| part_texts(part, all));
    all.extend(message.extensions.iter().map(String::as_str));
}

fn task_texts<'a>(task: &'a Task, all: &mut Vec<&'a str>) {
    all.extend([task.id.as_str(), task.context_id.as_str()]);
    task.history.iter().chain(&task.status.message).for_each(|message| message_texts(message, all));
    for artifact in &task.artifacts {
        artifact_texts(artifact, all);
    }
}

fn artifact_texts<'a>(artifact: &'a chancery_protocol::Artifact, all: &mut Vec<&'a str>) {
    all.push(artifact.artifact_id.as_str());
    all.extend(artifact.name.as_deref().into_iter().chain(artifact.description.as_deref()));
    artifact.parts.iter().for_each(|part| part_texts(part, all));
}

/// What an event says, in the reader's words.
fn texts(event: &TaskEvent) -> Vec<&str> {
    let mut all = Vec::new();
    match event {
        TaskEvent::Created(task) => task_texts(task, &mut all),
        TaskEvent::Said(message) | TaskEvent::Replied(message) => message_texts(message, &mut all),
        TaskEvent::Status(change) => change.status.message.iter().for_each(|message| message_texts(message, &mut all)),
        TaskEvent::Artifact(chunk) => artifact_texts(&chunk.artifact, &mut all),
    }
    all
}

fn invents_nothing(claimed: ClaimedForm, text: &str) -> Result<(), TestCaseError> {
    let Ok(Some(read)) = tolerant::event(claimed, text) else { return Ok(()) };
    let mut said = BTreeSet::new();
    strings(&serde_json::from_str(text).expect("what was read is JSON"), &mut said);
    for one in texts(&read.value.1) {
        // Artifacts without an id are named by their place. In the original that is the number alone.
        let place = one.strip_prefix("artifact-").or_else(|| (claimed.version == Version::Original).then_some(one));
        let is_supplied = one.is_empty() || place.is_some_and(|place| place.parse::<usize>().is_ok());
        prop_assert!(is_supplied || said.contains(one), "{claimed:?} invents {one:?} in {text}");
    }
    Ok(())
}

fn never_panics(text: &str) {
    for claimed in claims() {
        let _ = tolerant::event(claimed, text).map_err(|fault| assert!(fault.shape.len() <= 512));
        for operation in Operation::ALL {
            let _ = tolerant::reply(claimed, operation, text);
        }
    }
    let _ = tolerant::card(text);
    let _ = tolerant::envelope(text, "\"1\"");
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn a_valid_event_is_read_as_its_strict_reader_reads_it(event in any_model::event()) {
        let both = [Version::V1_0.into(), Version::V0_3.into()];
        event_is_exact(&V1_0, Version::V1_0.into(), &both, &event)?;
        event_is_exact(&V0_3, Version::V0_3.into(), &both, &event)?;
        event_is_exact(&Original, Version::Original.into(), &[Version::Original.into()], &event)?;
        event_is_exact(&V0_3Rest, REST, &[REST], &event)?;
    }

    #[test]
    fn a_valid_reply_is_read_as_its_strict_reader_reads_it(reply in any_model::reply()) {
        let both = [Version::V1_0.into(), Version::V0_3.into()];
        reply_is_exact(&V1_0, Form::V1_0, Version::V1_0.into(), &both, &reply)?;
        reply_is_exact(&V0_3, Form::V0_3, Version::V0_3.into(), &both, &reply)?;
        reply_is_exact(&Original, Form::Original, Version::Original.into(), &[Version::Original.into()], &reply)?;
        reply_is_exact(&V0_3Rest, Form::V0_3Rest, REST, &[REST], &reply)?;
    }

    #[test]
    fn a_deviating_event_is_read_without_inventing_or_is_refused(
        event in any_model::event(),
        choices in prop::collection::vec(any::<u8>(), 0..40),
        unwrap in any::<bool>(),
    ) {
        for codec in [&V1_0 as &dyn Codec, &V0_3, &V0_3Rest, &Original] {
            let Some(text) = written(codec, &event) else { continue };
            let mut value: Value = serde_json::from_str(&text).expect("our own JSON");
            deviate(&mut value, &mut choices.iter());
            if unwrap && let Some(inner) = value.as_object().filter(|all| all.len() == 1).and_then(|all| all.values().next()) {
                value = inner.clone();
            }
            let text = value.to_string();
            never_panics(&text);
            for claimed in claims() {
                invents_nothing(claimed, &text)?;
            }
        }
    }

    #[test]
    fn no_json_makes_the_reader_panic_or_invent(json in any_model::loose_json()) {
        never_panics(&json);
        for claimed in claims() {
            invents_nothing(claimed, &json)?;
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", ":", ",", "\\", "null", "1e9", "\"task\":", "\"kind\":\"task\"", "\"parts\":[", "\"text\":",
            "\"status\":{\"state\":\"working\"}", "\"id\":\"t\"", "\"url\":\"u\"", "\u{1e}", "é", "\"result\":", "\"error\":",
        ]), 0..40).prop_map(|pieces| pieces.concat()),
    ]) {
        never_panics(&text);
    }
}
