//! Packets from traffic below 1.0: made by rule, and never saying more than the freezes allow.

use chancery_evidence::adapter::{Adapter, ConversionMode};
use chancery_evidence::bundle::verify;
use chancery_evidence::export::{ExportSelection, export};
use chancery_evidence::packets::{event_of, packet_of};
use chancery_evidence::record::types;
use chancery_protocol::Timestamp;
use serde_json::{Value, json};

use crate::record::listed_record::{ListedRecord, at};

#[tokio::test]
async fn a_task_of_0_3_is_told_through_the_adapter_as_well() {
    let record = ListedRecord::new(1000, 1000).busy();
    let bundle = export(&record, &ExportSelection::Task("task-3".to_owned()), at(1000)).await.unwrap();
    let (checked, report) = verify(&bundle, &[]).unwrap();
    let packets: Vec<&Value> =
        checked.events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("assay.")).collect();
    let kinds: Vec<_> = packets.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "assay.adapter.a2a.task.requested",
        "assay.adapter.a2a.artifact.shared",
        "assay.adapter.a2a.message",
        "assay.adapter.a2a.task.updated",
        "assay.adapter.a2a.task.updated",
    ];
    assert_eq!((kinds, report.packets), (expected.to_vec(), 5));
    for packet in &packets {
        let data = &packet["data"];
        assert_eq!((&data["adapter_id"], &data["protocol_version"]), (&json!("assay-adapter-a2a"), &json!("0.3")));
        assert_eq!(data["handoff"]["visible"], false, "nothing on the wire says so");
        assert_eq!(data["discovery"]["agent_card_visible"], false);
        assert_eq!(packet["assayrunid"], packets[0]["assayrunid"], "they are stamped anew");
    }
    assert_eq!(packets[3]["data"]["task"], json!({ "id": "task-3", "status": "input-required" }));
    assert_eq!(packets[0]["data"]["unmapped_fields_count"], 0);
    assert_eq!(packets[2]["data"]["unmapped_fields_count"], 1, "a message has no type of its own there");
}

#[test]
fn only_versions_from_0_2_to_below_1_0_make_packets() {
    let data = |version: &str| json!({ "agent": "a", "task": "t", "protocol_version": version, "state": "TASK_STATE_WORKING" });
    for (version, made) in [("0.3", true), ("0.3.0", true), ("1.0", false), ("1.0.1", false), ("original", false), ("0.1", false)]
    {
        assert_eq!(packet_of(types::UPDATED, at(0), &data(version)).is_some(), made, "{version}");
    }
    assert_eq!(packet_of(types::UPDATED, at(0), &json!({ "task": "t" })), None);
    assert_eq!(packet_of(types::ADMITTED, at(0), &data("0.3")), None, "decisions are ours alone");
}

#[test]
fn a_card_that_was_fetched_is_visible_and_nothing_more_is_said_of_it() {
    let data = json!({ "agent": "far", "bytes": 9, "protocol_version": "0.3", "sha256": "00", "url": "https://far.example/" });
    let (packet, mode) = packet_of(types::CARD, Timestamp::from_micros(0), &data).unwrap();
    assert_eq!(mode, ConversionMode::Strict);
    assert_eq!(packet["attributes"], json!({ "assay_g4": { "agent_card": { "visible": true } } }));
    assert_eq!(packet["agent"], json!({ "id": "far" }));
}

#[test]
fn an_extended_card_that_was_fetched_sets_its_own_flag_and_not_that_of_the_public_card() {
    let data = json!({ "agent": "far", "bytes": 9, "extended": true, "protocol_version": "0.3", "sha256": "00", "url": "https://far.example/" });
    let (packet, _) = packet_of(types::CARD, at(0), &data).unwrap();
    assert_eq!(packet["attributes"], json!({ "assay_g4": { "extended_card_access": { "visible": true } } }));
    let event = event_of(&Adapter::default(), types::CARD, at(0), &data).unwrap().unwrap();
    let discovery = serde_json::to_value(event.data.discovery).unwrap();
    let expected = json!({
        "agent_card_source_kind": "unknown", "agent_card_visible": false,
        "extended_card_access_visible": true, "signature_material_visible": false,
    });
    assert_eq!(discovery, expected);
    let newer = json!({ "agent": "far", "extended": true, "protocol_version": "1.0" });
    assert_eq!(packet_of(types::CARD, at(0), &newer), None, "the adapter takes no 1.0");
}
