//! Delegations that the node made: entries of our own type, with lineage and attribution, that make no packet for the adapter.

use std::collections::BTreeSet;
use std::sync::Arc;

use chancery_core::lineage::{AgentPath, Attribution};
use chancery_core::{Append, Delegated, LineageRecord, RecordNote, RecordedWrite};
use chancery_evidence::bundle::verify;
use chancery_evidence::export::{ExportSelection, export};
use chancery_evidence::record::{text_of, types};
use chancery_protocol::{TraceId, Version};
use serde_json::{Value, json};

use crate::record::listed_record::{self, ListedRecord, TRACE, at, rewrite};

/// A task of 0.3 that the agent `planner` asked `echo` for.
fn delegated(parent: bool, remote: bool) -> (Append, RecordNote) {
    let task = listed_record::record("task-1", Version::V0_3, 1);
    let kinship = LineageRecord {
        root: if parent { "task-0".into() } else { "task-1".into() },
        trace: TraceId(TRACE + 1),
        made: false,
        parent: parent.then(|| "task-0".into()),
        depth: u32::from(parent),
        path: if parent { AgentPath::new(["planner".into()]) } else { AgentPath::default() },
        attribution: if parent { Attribution::Verified } else { Attribution::Root },
        claimed: None,
        skill: None,
        allowance: None,
    };
    let note =
        RecordNote::Delegated(Box::new(Delegated { task: Arc::clone(&task), kinship: Arc::new(kinship), remote, at: at(10) }));
    (Append { notes: vec![note.clone()], ..listed_record::creation(&task, 1) }, note)
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn a_delegation_is_in_the_bundles_of_its_task_and_its_trace_with_lineage_and_attribution() {
    let record = ListedRecord::new(1000, 1000);
    let (made, _) = delegated(true, true);
    record.commit(&[RecordedWrite::Append(&made)]);
    for wanted in [ExportSelection::Task("task-1".to_owned()), ExportSelection::Trace(TraceId(TRACE + 1), BTreeSet::new())] {
        let bundle = export(&record, &wanted, at(1000)).await.unwrap();
        let (checked, report) = verify(&bundle, &[]).unwrap();
        let found = of_kind(&checked.events, types::DELEGATED);
        assert_eq!(found.len(), 1, "{wanted:?}");
        let expected = json!({
            "agent": "echo", "attribution": "verified", "caller": "bob", "delegator": "planner", "depth": 1, "parent": "task-0",
            "path": ["planner"], "protocol_version": "0.3", "remote": true, "root": "task-0", "task": "task-1", "tenant": "acme",
            "trace": format!("{:032x}", TRACE + 1),
        });
        assert_eq!((&found[0]["data"], &found[0]["subject"]), (&expected, &json!("task-1")));
        assert_eq!(report.packets, 1, "the request makes a packet, the delegation makes none");
        let packet = of_kind(&checked.events, "assay.adapter.a2a.task.requested")[0];
        assert_eq!(packet["data"]["handoff"]["visible"], false, "what the node knows does not change what the wire said");
    }
}

#[test]
fn where_a_caller_asked_the_node_itself_delegates_and_no_agent_is_named() {
    let record = ListedRecord::new(1000, 1000);
    let (_, note) = delegated(false, true);
    record.commit(&[RecordedWrite::Note(&note)]);
    let text = text_of(&record.blocks.lock().unwrap()[0]).unwrap();
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    let canonical = chancery_identity::jcs::canonical(&line).unwrap();
    assert_eq!(text.trim_end().as_bytes(), canonical, "members are in the order of RFC 8785");
    let data = &line["data"];
    assert_eq!((&data["attribution"], &data["path"], &data["depth"]), (&json!("root"), &json!([]), &json!(0)));
    assert!(data["delegator"].is_null() && data["parent"].is_null(), "{data}");
}

#[tokio::test]
async fn a_delegation_with_another_lineage_is_found_out() {
    let record = ListedRecord::new(1000, 1000);
    let (made, _) = delegated(true, false);
    record.commit(&[RecordedWrite::Append(&made)]);
    let bundle = export(&record, &ExportSelection::Task("task-1".to_owned()), at(1000)).await.unwrap();
    assert!(verify(&bundle, &[]).is_ok());
    rewrite(&mut record.blocks.lock().unwrap()[0], "\"delegator\":\"planner\"", "\"delegator\":\"another\"");
    let fault = export(&record, &ExportSelection::Task("task-1".to_owned()), at(1000)).await.unwrap_err();
    assert!(fault.to_string().contains("the record is damaged"), "{fault}");
}
