//! Properties over packets nobody thought of: nothing panics, nothing is promoted, and lenient takes whatever strict takes.

use chancery_evidence::adapter::{Adapter, AdapterErrorKind, Batch, ConversionMode, canonical_json_bytes, digest_canonical_json};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use super::{BOTH, convert};

/// The frozen rules once more, written against the packet and not against the adapter.
fn hold_to_the_frozen_rules(packet: &Value, batch: &Batch) {
    let at = |path: &str| path.split('/').try_fold(packet, |value, key| value.as_object()?.get(key));
    let is_true = |path| at(path) == Some(&json!(true));
    let is_text = |path| at(path).is_some_and(Value::is_string);
    let card = is_true("attributes/assay_g4/agent_card/visible");
    let discovery = json!({"agent_card_visible": card, "agent_card_source_kind": if card { "attributes" } else { "unknown" },
        "extended_card_access_visible": is_true("attributes/assay_g4/extended_card_access/visible"), "signature_material_visible": false});
    let data = &batch.events[0].data;
    assert_eq!(serde_json::to_value(data.discovery).unwrap(), discovery, "{packet}");
    let visible = at("event_type") == Some(&json!("task.requested")) && at("task/kind") == Some(&json!("delegation"));
    let handoff = json!({"visible": visible, "source_kind": if visible { "typed_payload" } else { "unknown" },
        "task_ref_visible": visible && is_text("task/id"), "message_ref_visible": visible && is_text("message/id")});
    assert_eq!(serde_json::to_value(data.handoff).unwrap(), handoff, "{packet}");
    assert_eq!(data.unmapped_fields_count, batch.lossiness.unmapped_fields_count, "{packet}");
    assert_eq!(batch.events.len(), 1);
}

/// Both conversions of the same bytes, held against each other.
fn hold_strict_against_lenient(bytes: &[u8]) -> [Result<Batch, String>; 2] {
    let [strict, lenient] = BOTH.map(|mode| convert(bytes, mode));
    match (&strict, &lenient) {
        (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient),
        (Ok(_), Err(error)) => panic!("strict takes what lenient does not: {error}"),
        (Err(strict), Err(lenient)) => assert_eq!(strict, lenient, "both fail before the modes part"),
        (Err(strict), Ok(lenient)) => {
            assert!(!lenient.lossiness.notes.is_empty());
            assert!(
                matches!(strict.kind, AdapterErrorKind::Measurement | AdapterErrorKind::StrictLossinessViolation),
                "{strict}"
            );
        }
    }
    [strict, lenient].map(|outcome| outcome.map_err(|error| error.to_string()))
}

/// `CHANCERY_SEED=…` repeats a run.
#[expect(clippy::print_stdout, reason = "a failure is repeated with the seed")]
fn seeded() -> StdRng {
    let seed = std::env::var("CHANCERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| rand::rng().next_u64());
    println!("CHANCERY_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

fn one_of<'a, T>(random: &mut StdRng, choices: &'a [T]) -> &'a T {
    &choices[random.random_range(0..choices.len())]
}

/// Words that mean something in packets, now and then at the wrong place or of the wrong type.
fn some_value(random: &mut StdRng, depth: usize) -> Value {
    const WORDS: [&str; 12] = [
        "a2a",
        "0.2",
        "1.0",
        "task.requested",
        "task.updated",
        "artifact.shared",
        "agent.capabilities",
        "delegation",
        "unknown-task",
        "",
        "2026-02-27T10:00:00Z",
        "é\u{0}",
    ];
    const KEYS: [&str; 20] = [
        "id",
        "kind",
        "role",
        "name",
        "status",
        "media_type",
        "capabilities",
        "visible",
        "agent_card",
        "extended_card_access",
        "assay_g4",
        "agent",
        "task",
        "message",
        "artifact",
        "attributes",
        "event_type",
        "version",
        "timestamp",
        "extra",
    ];
    match random.random_range(0..if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 | 2 => Value::Bool(random.random()),
        3 => json!(random.random::<i64>()),
        4 | 5 => json!(one_of(random, &WORDS)),
        6 => (0..random.random_range(0..4)).map(|_| some_value(random, depth - 1)).collect(),
        _ => (0..random.random_range(0..5))
            .map(|_| ((*one_of(random, &KEYS)).to_owned(), some_value(random, depth - 1)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// Mostly a packet: each part is what it should be, or missing, or anything.
fn some_packet(random: &mut StdRng) -> Value {
    let kinds = ["task.requested", "task.requested", "task.updated", "artifact.shared", "agent.capabilities", "message"];
    let text = |random: &mut StdRng| json!(one_of(random, &["x", "y", "unknown-task", ""]));
    let mut packet = Map::new();
    packet.insert("protocol".to_owned(), json!("a2a"));
    packet.insert("version".to_owned(), json!(one_of(random, &["0.2", "0.2.0", "0.3.1", "1.0"])));
    packet.insert("event_type".to_owned(), json!(one_of(random, &kinds)));
    for part in ["agent", "task", "artifact", "message"] {
        packet.insert(part.to_owned(), json!({"id": text(random), "kind": one_of(random, &["delegation", "analysis"])}));
    }
    let flag = |random: &mut StdRng| json!({"visible": one_of(random, &[json!(true), json!(false), json!("true"), json!(1)])});
    let g4 = json!({"agent_card": flag(random), "extended_card_access": flag(random)});
    packet.insert("attributes".to_owned(), json!({"assay_g4": g4}));
    for key in ["version", "event_type", "agent", "task", "artifact", "message", "attributes", "timestamp", "extra", "discovery"]
    {
        match random.random_range(0..10) {
            0 => drop(packet.insert(key.to_owned(), some_value(random, 4))),
            1 => drop(packet.remove(key)),
            2 => {
                if let Some(Value::Object(part)) = packet.get_mut(key) {
                    let member = one_of(random, &["id", "kind", "assay_g4", "capabilities"]);
                    part.insert((*member).to_owned(), some_value(random, 3));
                }
            }
            _ => {}
        }
    }
    Value::Object(packet)
}

#[test]
fn random_packets_show_what_the_frozen_rules_say_and_no_more() {
    let mut random = seeded();
    let count = if std::env::var_os("CHANCERY_SOAK").is_some() { 1_000_000 } else { 100_000 };
    let (mut taken, mut handed, mut carded) = (0, 0, 0);
    for _ in 0..count {
        let packet = some_packet(&mut random);
        let [_, lenient] = hold_strict_against_lenient(packet.to_string().as_bytes());
        let Ok(batch) = lenient else { continue };
        hold_to_the_frozen_rules(&packet, &batch);
        taken += 1;
        handed += usize::from(batch.events[0].data.handoff.visible);
        carded += usize::from(batch.events[0].data.discovery.agent_card_visible);
    }
    // Or the test would show nothing.
    assert!(taken > count / 2 && handed > count / 100 && carded > count / 100, "{taken} {handed} {carded}");
}

#[test]
fn packets_with_a_broken_byte_never_panic() {
    let mut random = seeded();
    for _ in 0..20_000 {
        let mut bytes = some_packet(&mut random).to_string().into_bytes();
        for _ in 0..random.random_range(1..4) {
            let place = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[place] = random.random(),
                1 => bytes.truncate(place.max(1)),
                _ => bytes.insert(place, *one_of(&mut random, b"{}[]\",:\\0e-")),
            }
        }
        let _ = hold_strict_against_lenient(&bytes);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = hold_strict_against_lenient(&bytes);
    }

    #[test]
    fn the_canonical_form_of_a_canonical_form_is_itself(value in any_json()) {
        let once = canonical_json_bytes(&value).unwrap();
        let read: Value = serde_json::from_slice(&once).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(canonical_json_bytes(&read).unwrap(), once);
    }

    #[test]
    fn any_attributes_are_taken_and_have_one_digest(attributes in any_json()) {
        let packet = json!({"protocol": "a2a", "version": "0.2", "event_type": "agent.capabilities", "agent": {"id": "a"}, "attributes": attributes});
        let packet = packet.to_string();
        let batch = convert(packet.as_bytes(), ConversionMode::Strict).unwrap();
        let again = convert(packet.as_bytes(), ConversionMode::Lenient).unwrap();
        prop_assert_eq!(digest_canonical_json(&batch).unwrap(), digest_canonical_json(&again).unwrap());
        // What was put in order stays in that order.
        let sorted = batch.events[0].data.attributes.clone().unwrap();
        let packet = json!({"protocol": "a2a", "version": "0.2", "event_type": "agent.capabilities", "agent": {"id": "a"}, "attributes": sorted});
        let twice = convert(packet.to_string().as_bytes(), ConversionMode::Strict).unwrap();
        prop_assert_eq!(twice.events[0].data.attributes.as_ref(), Some(&sorted));
    }

    #[test]
    fn unknown_members_are_counted_and_never_refused(extras in prop::collection::btree_map("x[a-z]{1,8}", any::<String>(), 1..5)) {
        let mut packet = super::packet("task.requested", json!({}));
        packet.as_object_mut().unwrap().extend(extras.iter().map(|(key, text)| (key.clone(), json!(text))));
        let batch = convert(packet.to_string().as_bytes(), ConversionMode::Strict).unwrap();
        prop_assert_eq!(batch.lossiness.unmapped_fields_count as usize, extras.len());
    }
}

#[test]
fn an_adapter_can_be_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Adapter>();
    shared::<chancery_evidence::adapter::MemoryRawPayloads>();
}
