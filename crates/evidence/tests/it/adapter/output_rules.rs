//! §3 and §4 of the sheet: what becomes of each field, what is substituted, counted and noted; and the edges of §6.3 and §6.4.

use chancery_evidence::adapter::{ConversionMode, EventType, LossinessLevel, digest_canonical_json};
use serde_json::{Value, json};

use super::golden::HANDOFF_DEFAULT;
use super::{BOTH, convert, converted, data, packet};

const AGENT: &str = "missing agent.id -> substituted unknown-agent";
const GENERIC: &str = "unsupported event_type -> emitted generic A2A message event";
const TASK: &str = "missing task.id -> substituted unknown-task";
const ARTIFACT: &str = "missing artifact.id -> substituted unknown-artifact";
const MESSAGE: &str = "missing message.id -> substituted unknown-message";

#[test]
fn each_event_type_is_mapped_and_is_about_its_own_id() {
    for mode in BOTH {
        for (upstream, mapped, about) in [
            ("agent.capabilities", EventType::AgentCapabilities, "agent-1"),
            ("task.requested", EventType::TaskRequested, "task-1"),
            ("task.updated", EventType::TaskUpdated, "task-1"),
            ("artifact.shared", EventType::ArtifactShared, "artifact-1"),
        ] {
            let event = &converted(&packet(upstream, json!({})), mode).events[0];
            assert_eq!(event.event_type, mapped, "3.1");
            assert_eq!(event.subject.as_deref(), Some(about), "3.1");
            assert_eq!(event.assayrunid, format!("a2a:{about}"), "4.2");
            assert_eq!(event.id, format!("a2a:{about}:0"), "4.2");
            assert_eq!(event.data.upstream_event_type.as_deref(), Some(upstream), "4.3");
        }
    }
    for other in ["message", "Task.requested", "task.requested ", "assay.adapter.a2a.task.requested", ""] {
        let batch = converted(&packet(other, json!({})), ConversionMode::Lenient);
        assert_eq!(batch.events[0].event_type, EventType::Message, "3.1: {other}");
        assert_eq!(batch.events[0].subject.as_deref(), Some("message-1"), "3.1");
        assert_eq!(batch.events[0].data.upstream_event_type.as_deref(), Some(other), "4.3");
        assert_eq!(batch.lossiness.notes, [GENERIC], "3.3");
    }
}

#[test]
fn the_envelope_has_the_frozen_members_in_the_frozen_order() {
    let batch = converted(&packet("task.updated", json!({"timestamp": "2026-01-02T03:04:05Z"})), ConversionMode::Strict);
    let printed = serde_json::to_string(&batch.events[0]).unwrap();
    let envelope = r#"{"specversion":"1.0","type":"assay.adapter.a2a.task.updated","source":"urn:assay:adapter:a2a","id":"a2a:task-1:0","time":"2026-01-02T03:04:05Z","datacontenttype":"application/json","subject":"task-1","assayrunid":"a2a:task-1","assayseq":0,"assayproducer":"assay","assayproducerversion":"5.4.0","assaygit":"unknown","assaypii":false,"assaysecrets":false,"assaycontenthash":null,"data":{"adapter_id":"assay-adapter-a2a","adapter_version":"5.4.0","protocol":"a2a","protocol_name":"a2a","protocol_version":"0.2","upstream_event_type":"task.updated","agent":"#;
    assert!(printed.starts_with(envelope), "4.2: {printed}");
    let lossiness = serde_json::to_string(&batch.lossiness).unwrap();
    assert!(lossiness.starts_with(r#"{"lossiness_level":"none","unmapped_fields_count":0,"raw_payload_ref":{"sha256":""#), "4.1");
    assert!(lossiness.ends_with(r#","media_type":"application/json"},"notes":[]}"#), "4.1");
    let whole = serde_json::to_string(&batch).unwrap();
    assert!(whole.starts_with(r#"{"events":[{"specversion""#), "4.1");
}

#[test]
fn times_are_converted_to_utc_and_unreadable_ones_replaced_in_silence() {
    const DEFAULT: &str = "2023-11-16T02:00:00Z";
    for (said, time) in [
        (json!("2026-02-27T10:00:00Z"), "2026-02-27T10:00:00Z"),
        (json!("2026-02-27T10:00:00+02:00"), "2026-02-27T08:00:00Z"),
        (json!("2026-02-27T10:00:00.5Z"), "2026-02-27T10:00:00.500Z"),
        (json!("2026-02-27T10:00:00.000Z"), "2026-02-27T10:00:00Z"),
        (json!("2026-02-27T10:00:00.0001Z"), "2026-02-27T10:00:00.000100Z"),
        (json!("2026-02-27T10:00:00.1234567899Z"), "2026-02-27T10:00:00.123456789Z"),
        (json!("2026-02-27t10:00:00z"), "2026-02-27T10:00:00Z"),
        (json!("2026-02-27 10:00:00Z"), "2026-02-27T10:00:00Z"),
        (json!("2016-12-31T23:59:60Z"), "2016-12-31T23:59:60Z"),
        (json!("2026-02-27T10:00:00"), DEFAULT),
        (json!("2026-02-30T10:00:00Z"), DEFAULT),
        (json!("yesterday"), DEFAULT),
        (json!(""), DEFAULT),
        (json!(1_700_000_000), DEFAULT),
        (json!({}), DEFAULT),
        (Value::Null, DEFAULT),
    ] {
        for mode in BOTH {
            let batch = converted(&packet("task.updated", json!({"timestamp": said})), mode);
            assert_eq!(batch.events[0].time, time, "3.2: {said}");
            assert_eq!(batch.lossiness.unmapped_fields_count, 0, "3.2");
            assert!(batch.lossiness.notes.is_empty(), "3.2");
        }
    }
}

#[test]
fn substitutions_are_counted_and_noted_in_order() {
    let bare = json!({"protocol": "a2a", "version": "0.2"});
    let with = |changes: Value| {
        let mut packet = bare.clone();
        packet.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        packet
    };
    for (section, packet, subject, count, notes) in [
        ("6.4", bare.clone(), "unknown-message", 3, vec![AGENT, GENERIC, MESSAGE]),
        (
            "6.4",
            with(json!({"event_type": 5, "agent": {"id": "a"}, "message": {"role": "user"}})),
            "unknown-message",
            2,
            vec![GENERIC, MESSAGE],
        ),
        ("3.3", with(json!({"event_type": "task.requested"})), "unknown-task", 2, vec![AGENT, TASK]),
        ("6.4", with(json!({"event_type": "task.updated", "x": 1, "y": 2})), "unknown-task", 4, vec![AGENT, TASK]),
        ("3.3", with(json!({"event_type": "artifact.shared"})), "unknown-artifact", 2, vec![AGENT, ARTIFACT]),
        ("3.3", with(json!({"event_type": "agent.capabilities"})), "unknown-agent", 1, vec![AGENT]),
        ("3.3", with(json!({"event_type": "agent.capabilities", "agent": "a"})), "unknown-agent", 1, vec![AGENT]),
        ("3.3", with(json!({"event_type": "agent.capabilities", "agent": {"id": 1}})), "unknown-agent", 1, vec![AGENT]),
    ] {
        let batch = converted(&packet, ConversionMode::Lenient);
        assert_eq!(batch.events[0].subject.as_deref(), Some(subject), "{section}: {packet}");
        assert_eq!(batch.lossiness.notes, notes, "{section}: {packet}");
        assert_eq!(batch.lossiness.unmapped_fields_count, count, "{section}: {packet}");
        assert_eq!(batch.events[0].data.unmapped_fields_count, count, "3.3: the same number in both places");
    }
    let event = data(&converted(&bare, ConversionMode::Lenient));
    assert_eq!(event.get("upstream_event_type"), None, "6.4");
    assert_eq!(event["message"], json!({"id": "unknown-message"}), "6.4");
}

#[test]
fn unknown_members_are_counted_without_a_note_and_levels_follow_the_count() {
    for mode in BOTH {
        for (extras, level) in [
            (0, LossinessLevel::None),
            (1, LossinessLevel::Low),
            (2, LossinessLevel::Low),
            (3, LossinessLevel::High),
            (40, LossinessLevel::High),
        ] {
            let changes: serde_json::Map<_, _> = (0..extras).map(|n| (format!("extra{n}"), json!({"id": n}))).collect();
            let batch = converted(&packet("task.updated", Value::Object(changes)), mode);
            assert_eq!(batch.lossiness.lossiness_level, level, "3.3: {extras}");
            assert_eq!(batch.lossiness.unmapped_fields_count, extras, "3.3");
            assert!(batch.lossiness.notes.is_empty(), "3.3");
        }
        let inside = json!({"agent": {"id": "a", "extra": 1, "name": 5, "capabilities": [1]}, "task": {"id": "t", "kind": []}});
        let batch = converted(&packet("task.updated", inside), mode);
        assert_eq!(batch.lossiness.unmapped_fields_count, 0, "3.3: nothing inside members counts");
    }
}

#[test]
fn fields_are_copied_with_their_id_or_dropped_with_it() {
    let all = json!({"agent": {"id": "a", "name": "n", "role": "r", "extra": 1}, "task": {"id": "t", "status": "s", "kind": "delegation"},
        "artifact": {"id": "f", "name": "n", "media_type": "m"}, "message": {"id": "m", "role": "r"}});
    let without_ids =
        json!({"agent": {"id": "a"}, "task": {"status": "s", "kind": "k"}, "artifact": {"name": "n"}, "message": {"role": "r"}});
    for mode in BOTH {
        let batch = converted(&packet("agent.capabilities", all.clone()), mode);
        let copied = data(&batch);
        assert_eq!(copied["agent"], json!({"id": "a", "name": "n", "role": "r"}), "4.3");
        for part in ["task", "artifact", "message"] {
            assert_eq!(copied[part], all[part], "4.3, 6.4");
        }
        assert_eq!(digest_canonical_json(&batch.events[0].data.handoff).unwrap(), HANDOFF_DEFAULT, "6.4");

        let batch = converted(&packet("agent.capabilities", without_ids.clone()), mode);
        let dropped = data(&batch);
        for part in ["task", "artifact", "message", "attributes"] {
            assert_eq!(dropped.get(part), None, "4.3, 6.4");
        }
        assert_eq!(batch.lossiness.lossiness_level, LossinessLevel::None, "6.4");
    }
    let artifact = json!({"artifact": {"name": "n"}, "task": {"status": "s", "kind": "k"}});
    let batch = converted(&packet("artifact.shared", artifact), ConversionMode::Lenient);
    assert_eq!(data(&batch)["artifact"], json!({"id": "unknown-artifact", "name": "n"}), "6.4");
    assert_eq!(data(&batch).get("task"), None, "6.4");
    assert_eq!(batch.lossiness.unmapped_fields_count, 1, "6.4");
}

#[test]
fn an_empty_string_is_there() {
    let batch = converted(&packet("task.updated", json!({"task": {"id": ""}})), ConversionMode::Strict);
    assert_eq!(batch.events[0].subject.as_deref(), Some(""), "3");
    assert_eq!(batch.events[0].assayrunid, "a2a:", "3");
    assert_eq!(batch.events[0].id, "a2a::0", "3");
}

#[test]
fn capabilities_are_the_strings_of_the_array_sorted() {
    for (said, kept) in [
        (json!(["b", 1, "a", "B", "é", "a", null, "z"]), Some(json!(["B", "a", "a", "b", "z", "é"]))),
        (json!([]), Some(json!([]))),
        (json!([1, {}]), Some(json!([]))),
        (json!("a"), None),
        (json!({"0": "a"}), None),
    ] {
        let batch =
            converted(&packet("agent.capabilities", json!({"agent": {"id": "a", "capabilities": said}})), ConversionMode::Strict);
        assert_eq!(data(&batch)["agent"].get("capabilities"), kept.as_ref(), "4.3: {said}");
    }
}

#[test]
fn attributes_are_any_json_with_keys_and_arrays_of_strings_sorted() {
    for (said, kept) in [
        ("null", "null"),
        (r#""s""#, r#""s""#),
        ("5", "5"),
        ("[]", "[]"),
        (r#"["b","a"]"#, r#"["a","b"]"#),
        (r#"["b","a","b"]"#, r#"["a","b","b"]"#),
        (r#"["b",1,"a"]"#, r#"["b",1,"a"]"#),
        ("{}", "{}"),
        (r#"{"b":1,"a":[["d","c"],{"z":["y","x"],"k":-0}]}"#, r#"{"a":[["c","d"],{"k":-0.0,"z":["x","y"]}],"b":1}"#),
    ] {
        let packet = packet("task.updated", json!({})).to_string().replacen('{', &format!("{{\"attributes\":{said},"), 1);
        for mode in BOTH {
            let batch = convert(packet.as_bytes(), mode).unwrap();
            let printed = serde_json::to_string(&batch.events[0].data).unwrap();
            assert!(printed.contains(&format!(r#""attributes":{kept},"discovery":"#)), "4.4, 6.4: {printed}");
        }
    }
}

#[test]
fn the_order_of_keys_and_capabilities_changes_the_reference_and_nothing_else() {
    let one =
        r#"{"protocol":"a2a","version":"0.2","event_type":"agent.capabilities","agent":{"id":"a","capabilities":["x","y"]}}"#;
    let other =
        r#"{"agent":{"capabilities":["y","x"],"id":"a"},"event_type":"agent.capabilities","version":"0.2","protocol":"a2a"}"#;
    let [one, other] = [one, other].map(|packet| convert(packet.as_bytes(), ConversionMode::Strict).unwrap());
    assert_eq!(digest_canonical_json(&one.events[0].data).unwrap(), digest_canonical_json(&other.events[0].data).unwrap(), "6.3");
    assert_ne!(one.lossiness.raw_payload_ref, other.lossiness.raw_payload_ref, "6.3");
}
