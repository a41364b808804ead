//! What is written: canonical, without content, linked, and the same whatever went wrong in between.

use chancery_core::{Block, RecordLines, RecordedWrite};
use chancery_evidence::export::{ExportSelection, examine, export};
use chancery_evidence::record::{Entry, NOTHING, entries_of, merkle, sha256, text_of, types};
use chancery_evidence::{bundle, record};
use chancery_protocol::Version;
use serde_json::{Value, json};

use crate::record::listed_record::{self, ListedRecord, at};

fn entries(blocks: &[Block]) -> Vec<Entry> {
    let (mut prev, mut all) = (NOTHING, Vec::new());
    for block in blocks {
        let entries = entries_of(block, prev).unwrap();
        prev = block.hash;
        all.extend(entries);
    }
    all
}

#[test]
fn every_entry_is_hashed_over_its_canonical_form_with_the_hash_before_it() {
    let record = ListedRecord::new(1000, 1000).busy();
    let blocks = record.blocks.lock().unwrap().clone();
    let entries = entries(&blocks);
    let mut prev = NOTHING;
    for (number, entry) in entries.iter().enumerate() {
        let whole = json!({
            "at": entry.at.micros(), "data": entry.data, "index": number, "prev": record::hex(&prev), "type": entry.kind,
        });
        let canonical = chancery_identity::jcs::canonical(&whole).unwrap();
        assert_eq!(entry.hash, sha256(&canonical), "{}", String::from_utf8_lossy(&canonical));
        prev = entry.hash;
    }
    for block in &blocks {
        for line in text_of(block).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                line.as_bytes(),
                chancery_identity::jcs::canonical(&value).unwrap(),
                "each line is canonical as it stands"
            );
        }
    }
    let kinds: std::collections::BTreeSet<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    let missing: Vec<_> = types::ENTRIES.iter().filter(|kind| !kinds.contains(*kind)).collect();
    let elsewhere = [&types::WITHDRAWN, &types::CLOCK, &types::DELEGATED];
    assert_eq!(missing, elsewhere, "the rest of the types are all here");
}

#[test]
fn facts_are_recorded_and_content_is_not() {
    let record = ListedRecord::new(1000, 1000).busy();
    let blocks = record.blocks.lock().unwrap().clone();
    let text: String = blocks.iter().map(|block| text_of(block).unwrap()).collect();
    assert!(!text.contains("secret"), "content is in the record");
    let kept: Vec<u8> = blocks.iter().flat_map(|block| block.entries.clone()).collect();
    assert!(!String::from_utf8_lossy(&kept).contains("secret"), "content is in the record");
    let entries = entries(&blocks);
    let first = &entries[0].data;
    assert_eq!(first["attribution"], "inferred");
    assert_eq!(first["message"]["bytes"], 17);
    assert_eq!(first["protocol_version"], "0.3");
    let admitted = &entries[1].data;
    assert_eq!(admitted["rules"][0]["facts"][0], json!(["large", "18446744073709551615"]), "too large for every reader");
    let artifact = entries.iter().find(|entry| entry.kind == types::ARTIFACT).unwrap();
    assert_eq!((&artifact.data["parts"], &artifact.data["bytes"]), (&json!(2), &json!(15 + 11)));
    let mut digested = vec![b't'];
    digested.extend(15_u64.to_be_bytes());
    digested.extend(b"a secret answer");
    digested.push(b'd');
    digested.extend(11_u64.to_be_bytes());
    digested.extend(br#"{"a":[1,2]}"#);
    assert_eq!(artifact.data["sha256"], record::hex(&sha256(&digested)));
    let refused = entries.iter().find(|entry| entry.kind == types::REFUSED).unwrap();
    assert_eq!(refused.data["rules"][0], json!({ "facts": [["left", 0]], "passed": false, "rule": "budget" }));
}

#[test]
fn deliveries_and_looks_at_memory_have_types_of_their_own() {
    let record = ListedRecord::new(1000, 1000).busy();
    let entries = entries(&record.blocks.lock().unwrap());
    let of = |kind: &str| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.data.clone()).collect::<Vec<_>>();
    let taken = json!({
        "attempts": 2, "bytes": 77, "config": "hook", "from": 4, "lane": 3, "replay": false, "seq": 5, "sha256": "08".repeat(32),
        "status": 204, "task": "task-3", "webhook": "msg_3",
    });
    let mut given_up = taken.clone();
    given_up.as_object_mut().unwrap().remove("status");
    given_up["given_up"] = json!("exhausted");
    assert_eq!(of(types::DELIVERED), [taken, given_up]);
    let facts = json!([["look", "resolve"], ["witness", "abc"]]);
    let seen = json!({
        "agent": "echo", "caller": "eve", "decision": "look-1", "facts": facts, "granted": true, "task": "task-4", "tenant": "acme",
    });
    let mut not_seen = seen.clone();
    not_seen.as_object_mut().unwrap().remove("task");
    (not_seen["granted"], not_seen["refused"]) = (json!(false), json!("PERMISSION_DENIED"));
    assert_eq!(of(types::LOOKED), [seen, not_seen], "a look that was let is never taken for a refusal");
}

/// Lines as they are kept, and as they are written out.
const GOLDEN: [(&str, &str); 5] = [
    (
        "00065bfeda25e00c8b050a6465636973696f6e2d31a103018d030305046c65667406000404970ca0440204a80801a1e220704d75d6a5a86c51a987b4280006",
        r#"{"at":1790000000000012,"data":{"decision":"decision-1","rules":[{"facts":[["left",0]],"passed":false,"rule":"budget"}],"task":"01a1e220-704d-75d6-a5a8-6c51a987b428"},"type":"chancery.decision.admitted"}"#,
    ),
    (
        "00065bfeda25e00c94018706119105036d2d329606019e40a409b48e0b6cda2cbaf2d97ac90c4d79fe8ded299884dd27c1ff68951fa5ac8ad22002a30603a80801a1e220704d75d6a5a86c51a987b4280004",
        r#"{"at":1790000000000012,"data":{"message":{"bytes":17,"id":"m-2","parts":1,"role":"user","sha256":"b48e0b6cda2cbaf2d97ac90c4d79fe8ded299884dd27c1ff68951fa5ac8ad220"},"seq":3,"task":"01a1e220-704d-75d6-a5a8-6c51a987b428"},"type":"chancery.message"}"#,
    ),
    (
        "00065bfeda25e00d940187060e9105036d2d339606019e41a4093b7ffc29c56916f7669b4e3493cbfe89a0593c7c756961cd692f19f8077844e202a30604a64fa80801a1e220704d75d6a5a86c51a987b4280001",
        r#"{"at":1790000000000013,"data":{"message":{"bytes":14,"id":"m-3","parts":1,"role":"agent","sha256":"3b7ffc29c56916f7669b4e3493cbfe89a0593c7c756961cd692f19f8077844e2"},"seq":4,"state":"TASK_STATE_INPUT_REQUIRED","task":"01a1e220-704d-75d6-a5a8-6c51a987b428"},"type":"chancery.task.updated"}"#,
    ),
    (
        "00065bfeda25e00da30605a64ea80801a1e220704d75d6a5a86c51a987b4280001",
        r#"{"at":1790000000000013,"data":{"seq":5,"state":"TASK_STATE_CANCELED","task":"01a1e220-704d-75d6-a5a8-6c51a987b428"},"type":"chancery.task.updated"}"#,
    ),
    (
        "00065bfeda25e00d86050861636d652f616461a80801a1e220704d75d6a5a86c51a987b428000b",
        r#"{"at":1790000000000013,"data":{"by":"acme/ada","task":"01a1e220-704d-75d6-a5a8-6c51a987b428"},"type":"chancery.decision.cancelled"}"#,
    ),
];

/// What lies in databases can always be read: the numbers of the words do not change.
#[test]
fn shorthand_stays_what_it_is() {
    let task = listed_record::record("01a1e220-704d-75d6-a5a8-6c51a987b428", Version::V1_0, 1);
    let lines = record::EntryWriter::write(RecordedWrite::Append(&listed_record::ending(&task, 1)));
    let (short, long): (Vec<_>, Vec<_>) = GOLDEN.into_iter().unzip();
    assert_eq!(record::hex(&lines.0), short.concat());
    let block = Block { first: 0, count: 5, at: at(0), hash: NOTHING, entries: [&[1], &*lines.0].concat() };
    assert_eq!(text_of(&block).unwrap().lines().collect::<Vec<_>>(), long);
    assert_eq!(RecordLines::default().0.capacity(), 0, "without a record nothing is made");
}

#[tokio::test]
async fn a_transaction_that_failed_leaves_no_trace_and_a_restart_goes_on_where_the_record_ends() {
    let (calm, rough) = (ListedRecord::new(7, 3), ListedRecord::new(7, 3));
    for number in 0..12 {
        let task = listed_record::record(&format!("t-{number}"), Version::V1_0, number);
        let made = listed_record::creation(&task, number);
        calm.commit(&[RecordedWrite::Append(&made)]);
        if number % 2 == 0 {
            rough.fail(&[RecordedWrite::Append(&made), RecordedWrite::Append(&made), RecordedWrite::Append(&made)]);
        }
        if number % 3 == 0 {
            rough.restart();
        }
        rough.commit(&[RecordedWrite::Append(&made)]);
    }
    assert_eq!(*calm.blocks.lock().unwrap(), *rough.blocks.lock().unwrap());
    let (calm, rough) = (examine(&calm).await.unwrap(), examine(&rough).await.unwrap());
    assert_eq!(calm, rough);
    assert_eq!((calm.end, calm.sealed_segments), (24, 3));
}

#[tokio::test]
async fn checkpoints_come_by_number_and_when_asked_and_segments_are_sealed_with_their_root() {
    use chancery_core::Record as _;
    let record = ListedRecord::new(10, 4);
    for number in 0..9 {
        let task = listed_record::record(&format!("t-{number}"), Version::V1_0, number);
        record.commit(&[RecordedWrite::Append(&listed_record::creation(&task, number))]);
    }
    let ends: Vec<_> = record.checkpoints.lock().unwrap().iter().map(|one| (one.end, one.sealed)).collect();
    assert_eq!(ends, [(4, false), (8, false), (10, true), (14, false), (18, false)]);
    record.sign(at(5)).await.unwrap();
    assert_eq!(record.checkpoints.lock().unwrap().len(), 5, "what is signed is not signed again");
    record.note(listed_record::card("1.0")).await.unwrap();
    record.sign(at(6)).await.unwrap();
    let newest = record.checkpoints.lock().unwrap().last().unwrap().clone();
    assert_eq!((newest.end, newest.sealed), (19, false));

    let hashes: Vec<_> = entries(&record.blocks.lock().unwrap()).iter().map(|entry| entry.hash).collect();
    let bodies: Vec<_> = record.checkpoints.lock().unwrap().iter().map(|one| record::signed_body(one).unwrap()).collect();
    assert_eq!(bodies[2].root, record::hex(&merkle::root(&hashes[..10])));
    assert_eq!(bodies[5].root, record::hex(&merkle::root(&hashes[10..])));
    assert_eq!(bodies[5].before, record::hex(&hashes[9]));
    assert_eq!(examine(&record).await.unwrap().signed, 19);
    let bundle = export(&record, &ExportSelection::Between(None, None), at(9)).await.unwrap();
    assert_eq!(bundle::verify(&bundle, &[]).unwrap().1.entries, 19);
}
