//! What agents send is read by its shape. Tests are named by the laws that they show.

use chancery_protocol::{Dialect, Operation, Part, PartContent, Reply, Sent, Task, TaskEvent, TaskState, Timestamp, Version};
use chancery_wire::tolerant::{self, ClaimedForm, EventReader, Leniency, ReadAnswer, Unreadable};
use std::sync::Arc;

const BOTH: [Version; 2] = [Version::V1_0, Version::V0_3];

fn read(claimed: impl Into<ClaimedForm>, text: &str) -> ReadAnswer<(Option<chancery_wire::TaskNames>, TaskEvent)> {
    match tolerant::event(claimed, text) {
        Ok(Some(read)) => read,
        other => panic!("{other:?}: {text}"),
    }
}

fn event(claimed: Version, text: &str) -> TaskEvent {
    read(claimed, text).value.1
}

fn unreadable(text: &str) -> Unreadable {
    tolerant::event(Version::V1_0, text).unwrap_err()
}

fn task(claimed: Version, text: &str) -> Arc<Task> {
    match event(claimed, text) {
        TaskEvent::Created(task) => task,
        other => panic!("{other:?}"),
    }
}

fn sent(claimed: Version, text: &str) -> Sent {
    match tolerant::reply(claimed, Operation::SendMessage, text).unwrap().value {
        Reply::Sent(sent) => sent,
        other => panic!("{other:?}"),
    }
}

fn fetched(claimed: Version, text: &str) -> Arc<Task> {
    match tolerant::reply(claimed, Operation::GetTask, text).unwrap().value {
        Reply::Task(shown) => shown.task,
        other => panic!("{other:?}"),
    }
}

fn parts(event: &TaskEvent) -> &[Part] {
    match event {
        TaskEvent::Replied(message) => &message.parts,
        TaskEvent::Artifact(chunk) => &chunk.artifact.parts,
        other => panic!("{other:?}"),
    }
}

const STATUS: &str = r#""status":{"state":"TASK_STATE_WORKING"}"#;
const ARTIFACT: &str = r#""artifact":{"artifactId":"a","parts":[{"text":"x"}]}"#;
const MESSAGE: &str = r#""messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]"#;
const NAMES: &str = r#""taskId":"t","contextId":"c""#;

#[test]
fn law_1_2_1_the_wrapper_says_what_it_is_then_the_kind_then_the_members() {
    type Fits = fn(&TaskEvent) -> bool;
    let cases: [(Fits, [String; 3]); 4] = [
        (
            |event| matches!(event, TaskEvent::Created(_)),
            [
                format!(r#"{{"task":{{"id":"t","contextId":"c",{STATUS}}}}}"#),
                format!(r#"{{"kind":"task","id":"t","contextId":"c",{STATUS}}}"#),
                format!(r#"{{"id":"t","contextId":"c",{STATUS}}}"#),
            ],
        ),
        (
            |event| matches!(event, TaskEvent::Replied(_)),
            [
                format!(r#"{{"message":{{{MESSAGE}}}}}"#),
                format!(r#"{{"kind":"message",{MESSAGE}}}"#),
                format!(r#"{{{MESSAGE}}}"#),
            ],
        ),
        (
            |event| matches!(event, TaskEvent::Status(_)),
            [
                format!(r#"{{"statusUpdate":{{{NAMES},{STATUS}}}}}"#),
                format!(r#"{{"kind":"status-update",{NAMES},{STATUS},"final":true}}"#),
                format!(r#"{{{NAMES},{STATUS}}}"#),
            ],
        ),
        (
            |event| matches!(event, TaskEvent::Artifact(_)),
            [
                format!(r#"{{"artifactUpdate":{{{NAMES},{ARTIFACT}}}}}"#),
                format!(r#"{{"kind":"artifact-update",{NAMES},{ARTIFACT}}}"#),
                format!(r#"{{{NAMES},{ARTIFACT}}}"#),
            ],
        ),
    ];
    for (fits, texts) in cases {
        for claimed in BOTH {
            let [wrapped, by_kind, by_members] = texts.each_ref().map(|text| event(claimed, text));
            assert!(fits(&wrapped), "{wrapped:?}");
            assert_eq!((&wrapped, &wrapped), (&by_kind, &by_members), "whatever says it, it is the same");
        }
    }
    let leniencies = |claimed: Version, text: &str| read(claimed, text).leniencies;
    let unwrapped = format!(r#"{{"kind":"status-update",{NAMES},{STATUS},"final":true}}"#);
    assert!(leniencies(Version::V1_0, &unwrapped).contains(&Leniency::NoWrapper));
    let wrapped = format!(r#"{{"statusUpdate":{{{NAMES},{STATUS}}}}}"#);
    assert!(leniencies(Version::V1_0, &wrapped).is_empty(), "what is as it should be costs nothing");
    assert!(leniencies(Version::V0_3, &wrapped).contains(&Leniency::WrapperOfOtherVersion));
    assert!(leniencies(Version::V0_3, &format!(r#"{{{NAMES},{STATUS}}}"#)).contains(&Leniency::NoKind));
}

#[test]
fn law_1_2_1_two_wrappers_at_once_and_none_of_the_shapes_are_unreadable() {
    let two = unreadable(&format!(r#"{{"task":{{"id":"t",{STATUS}}},"message":{{{MESSAGE}}}}}"#));
    assert_eq!(two.to_string(), "has both task and message");
    let none = unreadable(r#"{"wat":1,"secret text with spaces":2}"#);
    assert_eq!(none.to_string(), "neither a task nor a message nor an update; its members are wat");
    assert_eq!(none.shape, r#"{"wat":1,"23":1}"#);
    for text in ["7", "[]", "\"task\"", "{", "nonsense", r#"{"status":{"state":"working"}}"#] {
        assert!(tolerant::event(Version::V0_3, text).is_err(), "{text}");
    }
}

#[test]
fn law_1_2_1_a_task_is_read_with_and_without_its_wrapper_whatever_asked_for_it() {
    let bare = format!(r#"{{"id":"t","contextId":"c",{STATUS}}}"#);
    let wrapped = format!(r#"{{"task":{bare}}}"#);
    let old = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}"#;
    for claimed in BOTH {
        let expected = fetched(claimed, &bare);
        for text in [&*bare, &*wrapped, old] {
            assert_eq!(fetched(claimed, text), expected, "{text}");
            assert!(
                matches!(sent(claimed, text), Sent::Task(shown) if shown.task == expected && shown.dialect == Dialect::Plain(claimed)),
                "{text}"
            );
        }
        let update = format!(r#"{{"statusUpdate":{{{NAMES},{STATUS},"final":true}}}}"#);
        assert_eq!(fetched(claimed, &update), expected, "an update is a picture of its task");
        assert!(matches!(sent(claimed, &update), Sent::Task(shown) if shown.task == expected));
        assert!(tolerant::reply(claimed, Operation::GetTask, &format!(r#"{{"message":{{{MESSAGE}}}}}"#)).is_err());
        let page = format!(r#"{{"tasks":[{wrapped},{bare}],"totalSize":"2"}}"#);
        let Reply::Tasks(page) = tolerant::reply(claimed, Operation::ListTasks, &page).unwrap().value else { panic!() };
        assert!(page.tasks.iter().all(|shown| shown.task == expected) && page.tasks.len() == 2 && page.total_size == 2);
    }
}

#[test]
fn law_1_2_2_states_and_roles_of_either_version_are_read_in_either() {
    let words = ["TASK_STATE_CANCELED", "canceled", "cancelled", "TASK_STATE_CANCELLED", "Canceled"];
    for (claimed, word) in BOTH.into_iter().flat_map(|claimed| words.map(|word| (claimed, word))) {
        let text = format!(r#"{{"task":{{"id":"t","contextId":"c","status":{{"state":"{word}"}}}}}}"#);
        assert_eq!(task(claimed, &text).status.state, TaskState::Canceled, "{word}");
    }
    for role in ["ROLE_AGENT", "agent"] {
        let text = format!(r#"{{"message":{{"messageId":"m","role":"{role}","parts":[{{"kind":"text","text":"x"}}]}}}}"#);
        assert_eq!(event(Version::V1_0, &text), event(Version::V0_3, &text));
    }
    assert_eq!(
        unreadable(r#"{"task":{"id":"t","status":{"state":"dreaming"}}}"#).to_string(),
        "task.status.state: no task state"
    );
}

#[test]
fn law_1_2_2_members_are_read_in_both_spellings_and_null_is_absent() {
    let text = r#"{"artifact_update":{"task_id":"t","context_id":"c","append":null,"last_chunk":true,"metadata":null,
        "artifact":{"artifact_id":"a","name":null,"parts":[{"text":"x","media_type":"text/plain","data":null}],"metadata":null}}}"#;
    let same = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","lastChunk":true,
        "artifact":{"artifactId":"a","parts":[{"text":"x","mediaType":"text/plain"}]}}}"#;
    for claimed in BOTH {
        assert_eq!(read(claimed, text).value, read(claimed, same).value);
    }
    let leniencies = read(Version::V0_3, text).leniencies;
    assert!(
        leniencies.contains(&Leniency::NullMember) && leniencies.contains(&Leniency::SpellingOfOtherVersion),
        "{leniencies:?}"
    );
    let two = unreadable(r#"{"statusUpdate":{"taskId":"t","task_id":"u","status":{"state":"working"}}}"#);
    assert_eq!(two.to_string(), "statusUpdate.taskId: is there twice, with two values");
}

#[test]
fn law_1_2_2_a_part_is_what_its_content_member_says() {
    let part = |claimed: Version, part: &str| {
        let text = format!(r#"{{"artifactUpdate":{{{NAMES},"artifact":{{"artifactId":"a","parts":[{part}]}}}}}}"#);
        parts(&event(claimed, &text))[0].clone()
    };
    let raw = |media_type: Option<&str>| Part {
        filename: Some("n".to_owned()),
        media_type: media_type.map(str::to_owned),
        ..Part::new(PartContent::Raw("hi".into()))
    };
    for claimed in BOTH {
        for text in [r#"{"text":"x"}"#, r#"{"kind":"text","text":"x"}"#, r#"{"type":"text","text":"x","data":null,"url":""}"#] {
            assert_eq!(part(claimed, text), Part::text("x"), "{text}");
        }
        for data in [r#"{"data":{"a":1.50}}"#, r#"{"kind":"data","data":{"a":1.50}}"#, r#"{"type":"data","data":{"a":1.50}}"#] {
            let PartContent::Data(json) = part(claimed, data).content else { panic!("{data}") };
            assert_eq!(json.text(), r#"{"a":1.50}"#, "numbers keep their spelling");
        }
        for file in [
            r#"{"raw":"aGk=","filename":"n","mediaType":"a/b"}"#,
            r#"{"kind":"file","file":{"bytes":"aGk=","name":"n","mimeType":"a/b"}}"#,
            r#"{"file":{"bytes":"aGk=","uri":null,"name":"n","mime_type":"a/b"}}"#,
            r#"{"type":"file","file":{"fileWithBytes":"aGk=","name":"n","mimeType":"a/b"}}"#,
        ] {
            assert_eq!(part(claimed, file), raw(Some("a/b")), "{file}");
        }
        for link in [r#"{"url":"http://h/"}"#, r#"{"kind":"file","file":{"uri":"http://h/"}}"#] {
            assert_eq!(part(claimed, link).content, PartContent::Url("http://h/".to_owned()), "{link}");
        }
        assert_eq!(part(claimed, r#"{"data":null}"#).content, Part::data(&serde_json::Value::Null).content);
        let wrapped = r#"{"kind":"data","data":{"value":[1]},"metadata":{"data_part_compat":true}}"#;
        let text = format!(r#"{{{NAMES},"artifact":{{"artifactId":"a","parts":[{wrapped}]}}}}"#);
        assert_eq!(parts(&event(claimed, &text)), [Part::data(&serde_json::json!([1]))], "as 0.3 writes what is no object");
    }
    for odd in [r#"{"text":"x","url":"y"}"#, "{}", r#"{"kind":"text"}"#, r#"{"kind":"file","file":{}}"#, r#"{"text":{}}"#, "7"] {
        let text = format!(r#"{{"artifactUpdate":{{{NAMES},"artifact":{{"artifactId":"a","parts":[{{"text":"a"}},{odd}]}}}}}}"#);
        let path = unreadable(&text).path;
        assert!(path.starts_with("artifactUpdate.artifact.parts[1]"), "{path}: {odd}");
    }
}

#[test]
fn law_1_2_2_kind_and_final_are_read_and_not_passed_on() {
    let text = format!(r#"{{"kind":"status-update",{NAMES},"status":{{"state":"TASK_STATE_COMPLETED"}},"final":true,"x":1.0}}"#);
    let TaskEvent::Status(change) = event(Version::V1_0, &text) else { panic!() };
    let unknown: Vec<_> = change.unknown.iter().map(|(name, value)| (name, value.text())).collect();
    assert_eq!(unknown, [("x", "1.0")]);
}

#[test]
fn law_1_2_3_a_time_never_makes_an_event_unreadable() {
    let timestamp = |claimed: Version, time: &str| {
        let text =
            format!(r#"{{"task":{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING","timestamp":{time}}}}}}}"#);
        let read = read(claimed, &text);
        let TaskEvent::Created(task) = read.value.1 else { panic!() };
        (task.status.timestamp, read.leniencies)
    };
    let at = |text: &str| Some(Timestamp::parse(text).unwrap());
    for claimed in BOTH {
        let (time, leniencies) = timestamp(claimed, r#""2026-11-16T15:34:05.623625""#);
        assert_eq!(time, at("2026-11-16T15:34:05.623625Z"), "without a zone it is UTC");
        assert!(leniencies.contains(&Leniency::TimeWithoutZone));
        assert_eq!(timestamp(claimed, r#""2026-11-16T17:34:05.5+02:00""#).0, at("2026-11-16T15:34:05.5Z"));
        assert_eq!(timestamp(claimed, "null").0, None);
        for odd in [r#""""#, r#""yesterday""#, "1763307245", "{}"] {
            let (time, leniencies) = timestamp(claimed, odd);
            assert_eq!(time, None, "{odd}");
            assert!(leniencies.contains(&Leniency::UnreadableTime), "{odd}");
        }
    }
}

#[test]
fn law_1_2_4_missing_ids_are_supplied_or_left_empty() {
    let text = r#"{"id":"t","status":{"state":"completed","message":{"parts":[{"text":"done"}]}},
        "artifacts":[{"parts":[{"text":"one"}]},{"artifactId":"mine","parts":[]},{"artifactId":null,"parts":[{"text":"three"}]}],
        "history":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    for claimed in BOTH {
        let task = fetched(claimed, text);
        assert_eq!((task.context_id.as_str(), task.history[0].message_id.as_str()), ("", ""));
        let ids: Vec<_> = task.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        assert_eq!(ids, ["artifact-1", "mine", "artifact-3"], "by their place");
        assert_eq!(fetched(claimed, text), task, "the same on every reading");
        assert!(tolerant::reply(claimed, Operation::GetTask, text).unwrap().leniencies.contains(&Leniency::MissingId));
    }
    let read = read(Version::V1_0, r#"{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}"#);
    assert_eq!(read.value.0, None, "an update that names no task belongs to the task of its stream");
    let nameless = unreadable(r#"{"task":{"status":{"state":"TASK_STATE_WORKING"}}}"#);
    assert_eq!(nameless.to_string(), "task.id: is required");
}

#[test]
fn law_1_2_4_artifacts_without_ids_in_one_stream_are_told_apart_and_pieces_are_not() {
    let mut reader = EventReader::new(Version::V0_3);
    let mut id = |rest: &str| {
        let text = format!(r#"{{"taskId":"t","artifact":{{"parts":[{{"text":"x"}}]}}{rest}}}"#);
        match reader.read(&text).unwrap().unwrap().value.1 {
            TaskEvent::Artifact(chunk) => chunk.artifact.artifact_id.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let ids = [id(r#","append":true"#), id(r#","append":true"#), id(""), id(r#","append":"true""#), id(r#","append":false"#)];
    assert_eq!(ids, ["artifact-1", "artifact-1", "artifact-2", "artifact-2", "artifact-3"]);
}

#[test]
fn law_1_2_5_control_bytes_around_json_are_stripped_and_nothing_is_no_event() {
    let text = format!("\u{1e}\0{{\"statusUpdate\":{{{NAMES},{STATUS}}}}}\u{3}\n");
    for claimed in BOTH {
        assert!(matches!(event(claimed, &text), TaskEvent::Status(_)));
        assert!(read(claimed, &text).leniencies.contains(&Leniency::ControlBytes));
    }
    for nothing in ["", " \n", "{}", " { } ", "[DONE]", "\u{1e}{}"] {
        for claimed in [Version::V1_0, Version::V0_3, Version::Original] {
            assert_eq!(tolerant::event(claimed, nothing), Ok(None), "{nothing:?}");
        }
    }
}

#[test]
fn law_1_2_6_the_envelope_may_be_missing_or_odd() {
    let open = |text: &'static str| {
        let envelope = tolerant::envelope(text, "\"1\"").unwrap();
        (envelope.outcome, envelope.leniencies.into_iter().collect::<Vec<_>>())
    };
    use Leniency::{NoEnvelope, NullError, OtherCallId};
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":"1","result":{"a":1}}"#), (Ok(r#"{"a":1}"#), vec![]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":"1","error":null,"result":{}}"#), (Ok("{}"), vec![NullError]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":"1","result":null}"#), (Ok("null"), vec![]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), (Ok("{}"), vec![OtherCallId]));
    assert_eq!(open(r#"{"id":"1","result":{}}"#), (Ok("{}"), vec![NoEnvelope]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","method":"m","params":{"task":{}}}"#), (Ok(r#"{"task":{}}"#), vec![NoEnvelope]));
    assert_eq!(open(r#"{"task":{}}"#), (Ok(r#"{"task":{}}"#), vec![NoEnvelope]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":"1","error":{"code":1}}"#), (Err(r#"{"code":1}"#), vec![]));
    assert_eq!(open(r#"{"error":{"code":1}}"#), (Err(r#"{"code":1}"#), vec![NoEnvelope]));
    assert_eq!(open(r#"{"jsonrpc":"2.0","id":"1","result":{},"error":{"code":1}}"#).0, Err(r#"{"code":1}"#));
    for odd in ["", "7", "[]", "<html>"] {
        assert!(tolerant::envelope(odd, "\"1\"").is_err(), "{odd}");
    }
}

#[test]
fn law_1_2_11_pieces_keep_whether_they_are_appended() {
    for (append, expected) in [("true", true), ("false", false), ("null", false), (r#""true""#, true), ("0", false)] {
        let text = format!(r#"{{"artifactUpdate":{{{NAMES},{ARTIFACT},"append":{append},"lastChunk":{append}}}}}"#);
        let TaskEvent::Artifact(chunk) = event(Version::V1_0, &text) else { panic!() };
        assert_eq!((chunk.append, chunk.last_chunk), (expected, expected), "{append}");
    }
    let empty = format!(r#"{{"kind":"artifact-update",{NAMES},"artifact":{{"artifactId":"a","parts":null}},"append":true}}"#);
    assert_eq!(parts(&event(Version::V1_0, &empty)), [], "an empty last chunk adds nothing");
}

#[test]
fn law_1_2_12_ids_are_kept_byte_for_byte() {
    let text = r#"{"id":"29b6:01\u00e9/%2F ","contextId":17,"status":{"state":"working"}}"#;
    let task = fetched(Version::V1_0, text);
    assert_eq!((task.id.as_str(), task.context_id.as_str()), ("29b6:01é/%2F ", "17"));
}

#[test]
fn law_1_2_13_history_metadata_and_unknown_members_are_kept() {
    let text = r#"{"task":{"id":"t","status":{"state":"completed","y":0.10},"x":12345678901234567890,"metadata":{"k":1.0e5},
        "history":[{"role":"agent","messageId":"m","parts":[{"text":"answer","metadata":{"adk_type":"f"},"p":[ 1.0 ]}],"z":{}}]}}"#;
    for claimed in BOTH {
        let task = fetched(claimed, text);
        assert_eq!(task.unknown.get("x").unwrap().text(), "12345678901234567890");
        assert_eq!(task.status.unknown.get("y").unwrap().text(), "0.10");
        assert_eq!(task.metadata.as_ref().unwrap().text(), r#"{"k":1.0e5}"#);
        let message = &task.history[0];
        assert_eq!((message.first_text(), message.unknown.get("z").unwrap().text()), (Some("answer"), "{}"));
        assert_eq!(message.parts[0].metadata.as_ref().unwrap().text(), r#"{"adk_type":"f"}"#);
        assert_eq!(message.parts[0].unknown.get("p").unwrap().text(), "[ 1.0 ]");
    }
}

#[test]
fn numbers_for_text_and_text_for_booleans_are_read() {
    let text = r#"{"statusUpdate":{"taskId":7,"contextId":true,"status":{"state":"working","message":{"messageId":1.50,"role":"agent","parts":[{"text":3}]}}}}"#;
    let read = read(Version::V1_0, text);
    let TaskEvent::Status(change) = &read.value.1 else { panic!() };
    let message = change.status.message.as_ref().unwrap();
    assert_eq!((message.message_id.as_str(), message.first_text()), ("1.50", Some("3")));
    assert_eq!(read.value.0.unwrap().task_id.as_str(), "7");
    assert!(read.leniencies.contains(&Leniency::NumberAsString));
}

#[test]
fn plain_text_in_the_place_of_a_message_is_the_agents() {
    let text = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"working","message":"thinking"}}}"#;
    let TaskEvent::Status(change) = event(Version::V1_0, text) else { panic!() };
    assert_eq!(change.status.message.unwrap().first_text(), Some("thinking"));
}

#[test]
fn what_is_of_the_wrong_type_and_adds_nothing_is_left_out() {
    let text = format!(r#"{{"statusUpdate":{{{NAMES},{STATUS},"metadata":[]}}}}"#);
    let read = read(Version::V1_0, &text);
    assert!(read.leniencies.contains(&Leniency::DroppedMember));
}

#[test]
fn over_rest_both_names_of_the_parts_are_read() {
    let rest = ClaimedForm { version: Version::V0_3, is_rest: true, is_strict: false };
    for name in ["content", "parts"] {
        let text = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_AGENT","{name}":[{{"text":"x"}}]}}}}"#);
        assert_eq!(parts(&read(rest, &text).value.1), [Part::text("x")], "{name} over 0.3 REST");
        assert_eq!(parts(&event(Version::V1_0, &text)), [Part::text("x")], "{name} in 1.0");
        assert_eq!(parts(&event(Version::V0_3, &text)), [Part::text("x")], "{name} in 0.3");
    }
    let data = r#"{"msg":{"role":"agent","content":[{"data":{"data":{"a":1}}},{"file":{"fileWithUri":"http://h/"}}]}}"#;
    let read = read(rest, data).value.1;
    assert_eq!(parts(&read)[0], Part::data(&serde_json::json!({"a": 1})));
    assert_eq!(parts(&read)[1].content, PartContent::Url("http://h/".to_owned()));
}

#[test]
fn the_original_is_read_as_it_was_where_it_is_claimed() {
    let update = r#"{"id":"t","status":{"state":"working"},"final":false}"#;
    assert!(matches!(event(Version::Original, update), TaskEvent::Status(_)));
    assert!(read(Version::Original, update).leniencies.is_empty());
    let loose = r#"{"id":"t","status":{"state":"working","timestamp":"2026-01-01T00:00:00"},"final":false}"#;
    assert!(matches!(event(Version::Original, loose), TaskEvent::Status(_)), "an update calls its task by id");
    let task = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"x"}]}]}"#;
    assert_eq!(self::task(Version::Original, task).artifacts.len(), 1, "a task of a later version is not cut to an update");
}

#[test]
fn a_strict_reader_refuses_what_deviates_and_names_the_member() {
    let strict = |version| ClaimedForm { version, is_rest: false, is_strict: true };
    let text = r#"{"task":{"id":"t","contextId":"c","status":{"state":"my secret"}}}"#;
    let fault = tolerant::event(strict(Version::V1_0), text).unwrap_err();
    assert_eq!(fault.path, "task.status.state");
    assert!(!fault.to_string().contains("secret") && !fault.shape.contains("secret"), "{fault:?}");
    let bare = r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#;
    assert!(tolerant::reply(strict(Version::V1_0), Operation::SendMessage, bare).is_err());
    assert!(tolerant::event(strict(Version::V0_3), &format!(r#"{{"statusUpdate":{{{NAMES},{STATUS}}}}}"#)).is_err());
    assert_eq!(tolerant::event(strict(Version::V1_0), "{}"), Ok(None));
}
