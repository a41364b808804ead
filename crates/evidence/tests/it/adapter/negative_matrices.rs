//! The negative matrices of the two freezes, and which packets show what: `discovery` by G4-A, `handoff` by K1-A.

use chancery_evidence::adapter::{Batch, ConversionMode, digest_canonical_json};
use serde_json::{Value, json};

use super::golden::{DISCOVERY_AGENT_CARD, DISCOVERY_DEFAULT, DISCOVERY_EXTENDED, HANDOFF_DEFAULT, HANDOFF_PARTIAL, fixture};
use super::{BOTH, convert, converted, packet, refused};

fn discovery(batch: &Batch) -> String {
    digest_canonical_json(&batch.events[0].data.discovery).unwrap()
}

fn handoff(batch: &Batch) -> String {
    digest_canonical_json(&batch.events[0].data.handoff).unwrap()
}

#[test]
fn discovery_matrix() {
    let card = json!({"assay_g4": {"agent_card": {"visible": true}}});
    let g4 = |inside: Value| json!({"attributes": {"assay_g4": inside}});
    for (row, changes, expected) in [
        ("N1", json!({"attributes": {"priority": "high", "session": "alpha"}}), DISCOVERY_DEFAULT),
        ("N2", g4(json!("bad")), DISCOVERY_DEFAULT),
        ("N2", g4(json!([{"agent_card": {"visible": true}}])), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"priority": "nested"})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": true})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": {}})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": {"visible": "true"}})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": {"visible": 1}})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": {"visible": [true]}})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": {"Visible": true}})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"agent_card": [{"visible": true}]})), DISCOVERY_DEFAULT),
        ("N2", g4(json!({"visible": true})), DISCOVERY_DEFAULT),
        ("N2", json!({"attributes": [card.clone()]}), DISCOVERY_DEFAULT),
        ("N2", json!({"attributes": {"agent_card": {"visible": true}}}), DISCOVERY_DEFAULT),
        ("N3", json!({"extra_top_level": 1}), DISCOVERY_DEFAULT),
        ("N3", json!({"assay_g4": {"agent_card": {"visible": true}}, "agent_card": {"visible": true}}), DISCOVERY_DEFAULT),
        ("N3", json!({"discovery": {"agent_card_visible": true}}), DISCOVERY_DEFAULT),
        ("N4", json!({"attributes": card.clone()}), DISCOVERY_AGENT_CARD),
        ("N5", json!({"attributes": {}}), DISCOVERY_DEFAULT),
        ("N6", g4(json!({"signature_material": {"visible": true}, "signature_material_visible": true})), DISCOVERY_DEFAULT),
        ("N7", g4(json!({"agent_card": {"visible": false}})), DISCOVERY_DEFAULT),
        ("N7", g4(json!({"agent_card": {"visible": true, "more": 1}, "more": 1})), DISCOVERY_AGENT_CARD),
        ("4.5", g4(json!({"extended_card_access": {"visible": true}})), DISCOVERY_EXTENDED),
        ("6.4", g4(json!({"extended_card_access": {"visible": "true"}})), DISCOVERY_DEFAULT),
        ("4.1", json!({"agent": {"id": "a", "capabilities": ["agent.describe"]}}), DISCOVERY_DEFAULT),
    ] {
        // Neither the event type nor the mode plays a part.
        for event_type in ["agent.capabilities", "task.requested", "task.updated", "artifact.shared", "message"] {
            let packet = packet(event_type, changes.clone());
            for mode in BOTH.into_iter().filter(|mode| event_type != "message" || *mode == ConversionMode::Lenient) {
                assert_eq!(discovery(&converted(&packet, mode)), expected, "{row} {mode:?}: {packet}");
            }
        }
    }
    let packet = fixture("a2a_happy_task_requested");
    let [strict, lenient] = BOTH.map(|mode| discovery(&convert(&packet, mode).unwrap()));
    assert_eq!((strict.as_str(), lenient.as_str()), (DISCOVERY_DEFAULT, DISCOVERY_DEFAULT), "N5");
}

#[test]
fn handoff_matrix() {
    let delegation = || json!({"id": "task-1", "kind": "delegation"});
    let kind = |kind: Value| json!({"task": {"id": "task-1000", "kind": kind}, "message": {"id": "msg-analysis"}});
    for (row, event_type, changes) in [
        ("N1", "artifact.shared", json!({"task": delegation()})),
        ("4.1 (3)", "agent.capabilities", json!({"task": delegation()})),
        ("N5", "task.requested", json!({})),
        ("N5", "task.requested", kind(json!("analysis"))),
        ("N5", "task.requested", kind(json!("Delegation"))),
        ("N5", "task.requested", kind(json!("delegation "))),
        ("N5", "task.requested", kind(json!(true))),
        ("N5", "task.requested", kind(json!(["delegation"]))),
        ("N6", "task.requested", json!({"agent": {"id": "a", "role": "delegation"}})),
        (
            "N6",
            "task.requested",
            json!({"attributes": {"task": {"kind": "delegation"}, "handoff": {"visible": true}, "kind": "delegation"}}),
        ),
        (
            "N6",
            "task.requested",
            json!({"attributes": {"assay_g4": {"agent_card": {"visible": true}, "handoff": {"visible": true}}}}),
        ),
        ("N6", "task.requested", json!({"handoff": {"visible": true}, "kind": "delegation"})),
        ("N6", "task.requested", json!({"message": {"id": "m", "kind": "delegation"}})),
        (
            "N7",
            "task.updated",
            json!({"task": {"id": "task-999", "status": "running", "kind": "delegation"}, "message": {"id": "msg-update", "role": "assistant"}}),
        ),
    ] {
        for mode in BOTH {
            let batch = converted(&packet(event_type, changes.clone()), mode);
            assert_eq!(handoff(&batch), HANDOFF_DEFAULT, "{row} {mode:?}: {changes}");
        }
    }
    for message in [json!({"id": "message-1"}), json!({})] {
        let fallback = packet("delegation", json!({"task": delegation(), "message": message}));
        assert_eq!(handoff(&converted(&fallback, ConversionMode::Lenient)), HANDOFF_DEFAULT, "N2");
    }
    let without_id = packet("task.requested", json!({"task": {"kind": "delegation"}}));
    assert_eq!(refused(&without_id, ConversionMode::Strict), "Measurement: missing required field: task.id", "N3");
    assert_eq!(handoff(&converted(&without_id, ConversionMode::Lenient)), HANDOFF_PARTIAL, "N4");
    let no_task = packet("task.requested", json!({"task": null}));
    assert_eq!(handoff(&converted(&no_task, ConversionMode::Lenient)), HANDOFF_DEFAULT, "6.4");
}

#[test]
fn references_of_a_handoff_are_those_the_packet_had_itself() {
    let id = |id: Value| json!({"id": id, "kind": "delegation"});
    // (task, message, task_ref_visible, message_ref_visible)
    for (task, message, task_ref, message_ref) in [
        (id(json!("t")), json!({"id": "m"}), true, true),
        (id(json!("t")), json!({"role": "user"}), true, false),
        (id(json!("t")), json!({"id": 7}), true, false),
        (id(json!(7)), json!({"id": "m"}), false, true),
        (id(json!("unknown-task")), json!({"id": "unknown-message"}), true, true),
        (id(json!("")), json!({"id": ""}), true, true),
    ] {
        let batch = converted(&packet("task.requested", json!({"task": task, "message": message})), ConversionMode::Lenient);
        let expected = json!({"visible": true, "source_kind": "typed_payload", "task_ref_visible": task_ref, "message_ref_visible": message_ref});
        assert_eq!(serde_json::to_value(batch.events[0].data.handoff).unwrap(), expected, "4.6: {task} {message}");
    }
}
