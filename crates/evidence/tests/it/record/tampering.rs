//! A bundle that somebody changed on its way, with all the digests of the format made right again: each change is found and named.

use std::collections::BTreeSet;

use chancery_core::RecordedWrite;
use chancery_evidence::bundle::{BundleEvent, BundleFaultCode, Stamp, check, pack, seal, unpack, verify};
use chancery_evidence::export::{ExportSelection, export};
use chancery_evidence::record::{hex, sha256, types};
use chancery_protocol::TraceId;
use serde_json::{Value, json};

use crate::record::listed_record::{ListedRecord, TRACE, at};

pub(crate) async fn bundle(wanted: ExportSelection) -> Vec<u8> {
    let record = ListedRecord::new(16, 1000).busy();
    export(&record, &wanted, at(1000)).await.unwrap()
}

/// The events without what their place gave them.
pub(crate) fn opened(bundle: &[u8]) -> Vec<BundleEvent> {
    let text = |event: &Value, name: &str| event[name].as_str().map(str::to_owned);
    let events = check(bundle).unwrap().events;
    let bare = events.iter().map(|event| BundleEvent {
        kind: text(event, "type").unwrap(),
        time: text(event, "time").unwrap(),
        subject: text(event, "subject"),
        data: event["data"].clone(),
    });
    bare.collect()
}

pub(crate) fn sealed(events: &[BundleEvent]) -> Vec<u8> {
    let text = |text: &str| text.to_owned();
    let stamp = Stamp {
        source: text("urn:chancery:record"),
        run: text("forged"),
        producer: text("chancery"),
        producer_version: text("0"),
        git: text("unknown"),
    };
    seal(&stamp, events).unwrap()
}

pub(crate) async fn found(wanted: ExportSelection, change: impl FnOnce(&mut Vec<BundleEvent>)) -> (BundleFaultCode, String) {
    let mut events = opened(&bundle(wanted).await);
    assert!(verify(&sealed(&events), &[]).is_ok(), "unchanged it is sound");
    change(&mut events);
    let forged = sealed(&events);
    check(&forged).expect("its format is sound");
    let fault = verify(&forged, &[]).map(|(_, report)| report).expect_err("it was changed");
    (fault.code, fault.message)
}

pub(crate) fn all() -> ExportSelection {
    ExportSelection::Between(None, None)
}

/// Takes out an entry and its link, and moves the links after it.
pub(crate) fn remove_entry(events: &mut Vec<BundleEvent>, seq: usize) {
    events.remove(seq);
    for event in events.iter_mut().filter(|event| event.kind == types::LINKS) {
        let links = event.data["links"].as_array_mut().unwrap();
        links.retain(|link| link["seq"] != seq);
        for link in links.iter_mut() {
            let at = link["seq"].as_u64().unwrap();
            link["seq"] = json!(if at > seq as u64 { at - 1 } else { at });
        }
    }
}

pub(crate) fn links(events: &mut [BundleEvent]) -> &mut Value {
    &mut events.iter_mut().find(|event| event.kind == types::LINKS).unwrap().data
}

#[tokio::test]
async fn a_byte_that_was_flipped_anywhere_is_found() {
    let bundle = bundle(ExportSelection::Task("task-7".to_owned())).await;
    let mut unnoticed = 0;
    for place in (0..bundle.len()).step_by(11) {
        let mut flipped = bundle.clone();
        flipped[place] ^= 0x20;
        // Some bits of a gzip mean nothing, and change nothing.
        if verify(&flipped, &[]).is_ok() {
            assert_eq!(unpack(&flipped).unwrap(), unpack(&bundle).unwrap(), "byte {place}");
            unnoticed += 1;
        }
    }
    assert!(unnoticed < 40, "{unnoticed} of {} bytes mean nothing", bundle.len());
    let (manifest, events) = unpack(&bundle).unwrap();
    for place in (0..events.len()).step_by(7) {
        let mut flipped = events.clone();
        flipped[place] ^= 1;
        assert_eq!(verify(&pack(&manifest, &flipped).unwrap(), &[]).unwrap_err().code, BundleFaultCode::IntegrityManifestHash);
    }
    let cut = verify(&bundle[..bundle.len() - 9], &[]).unwrap_err();
    assert_eq!(cut.code, BundleFaultCode::IntegrityGzip);
}

#[tokio::test]
async fn a_changed_entry_is_found_whatever_of_it_was_changed() {
    let (code, message) = found(all(), |events| events[20].data["task"] = json!("another")).await;
    assert_eq!(code, BundleFaultCode::ChainAltered, "{message}");
    let (code, message) = found(all(), |events| {
        let event = events.iter_mut().find(|event| event.data["state"] == "TASK_STATE_CANCELED").unwrap();
        event.data["state"] = json!("TASK_STATE_COMPLETED");
    })
    .await;
    assert!(code == BundleFaultCode::ChainAltered && message.contains("entry 7 "), "{message}");
    let (code, message) = found(all(), |events| events[0].subject = Some("another".to_owned())).await;
    assert!(code == BundleFaultCode::ChainAltered && message.contains("its subject"), "{message}");
    let (code, _) = found(ExportSelection::Task("task-7".to_owned()), |events| {
        let last = events.iter_mut().rfind(|event| types::ENTRIES.contains(&event.kind.as_str())).unwrap();
        last.data["by"] = json!("nobody");
    })
    .await;
    assert_eq!(code, BundleFaultCode::ChainAltered, "the last of all");
}

#[tokio::test]
async fn a_back_dated_entry_is_found() {
    let (code, message) = found(all(), |events| events[30].time = events[0].time.clone()).await;
    assert!(code == BundleFaultCode::ChainAltered && message.contains("entry 30"), "{message}");
    let (code, _) = found(all(), |events| events[30].time = "yesterday".to_owned()).await;
    assert_eq!(code, BundleFaultCode::ChainAltered);
    // With all later links made right again.
    let hour_ago = "2026-09-21T13:13:20.000000Z";
    let (code, message) = found(all(), |events| {
        events[30].time = hour_ago.to_owned();
        relink(events, 30);
    })
    .await;
    assert!(code == BundleFaultCode::ChainBackDated && message.contains("entry 30 says"), "{code} {message}");
    let (code, message) = found(ExportSelection::Task("task-7".to_owned()), |events| {
        events[5].time = hour_ago.to_owned();
        relink(events, 5);
    })
    .await;
    assert_eq!(code, BundleFaultCode::ChainBackDated, "{message}");
    // And as somebody would who gives it the word that the node has for a clock that was set back: nobody signed that.
    let (code, message) = found(all(), |events| {
        events[30].time = hour_ago.to_owned();
        (events[30].kind, events[30].subject) = (types::CLOCK.to_owned(), None);
        events[30].data = json!({ "before": 0 });
        relink(events, 30);
    })
    .await;
    assert!(matches!(code, BundleFaultCode::ChainAltered | BundleFaultCode::ChainBackDated), "{code} {message}");
}

/// Makes the links after an entry right again, as somebody would who knows the format but not the key.
fn relink(events: &mut [BundleEvent], changed: usize) {
    let hash = |event: &BundleEvent, link: &Value| {
        let at = chancery_protocol::Timestamp::parse(&event.time).unwrap().micros();
        let whole = json!({
            "at": at, "data": event.data, "index": link["index"], "prev": link["prev"], "type": event.kind,
        });
        hex(&sha256(&chancery_identity::jcs::canonical(&whole).unwrap()))
    };
    let place = events.iter().position(|event| event.kind == types::LINKS).unwrap();
    let mut links = events[place].data["links"].as_array().unwrap().clone();
    for next in changed + 1..links.len() {
        if links[next]["index"].as_u64().unwrap() == links[next - 1]["index"].as_u64().unwrap() + 1 {
            links[next]["prev"] = json!(hash(&events[next - 1], &links[next - 1]));
        }
    }
    events[place].data["links"] = json!(links);
}

#[tokio::test]
async fn removed_entries_are_found_with_and_without_their_links() {
    let (code, message) = found(all(), |events| drop(events.remove(25))).await;
    assert_eq!(code, BundleFaultCode::ChainAltered, "the links no longer fit: {message}");
    let (code, message) = found(all(), |events| remove_entry(events, 25)).await;
    assert_eq!((code, message.as_str()), (BundleFaultCode::ChainMissing, "entries 25 to 25 are missing"));
    let (code, message) = found(all(), |events| remove_entry(events, 187)).await;
    assert_eq!((code, message.as_str()), (BundleFaultCode::ChainMissing, "entries 187 to 187 are missing"));
    let (code, message) = found(all(), |events| remove_entry(events, 0)).await;
    assert_eq!((code, message.as_str()), (BundleFaultCode::ChainMissing, "entries 0 to 0 are missing"));
    let (code, message) = found(all(), |events| {
        remove_entry(events, 0);
        links(events)["scope"]["kept_from"] = json!(1);
    })
    .await;
    assert!(code == BundleFaultCode::ChainMissing && message.starts_with("entries 0 to "), "no segment begins there: {message}");
    let between = || ExportSelection::Between(Some(at(50)), Some(at(70)));
    let (code, message) = found(between(), |events| remove_entry(events, 0)).await;
    assert_eq!(
        (code, message.as_str()),
        (BundleFaultCode::ChainMissing, "entries 0 to 44 are missing"),
        "nothing shows where it begins"
    );
    let (code, message) = found(between(), |events| {
        remove_entry(events, 19);
        events.retain(|event| event.kind != types::PROOF || event.data["index"] != 63);
    })
    .await;
    assert!(
        matches!(code, BundleFaultCode::ChainMissing | BundleFaultCode::ChainUnsigned),
        "nothing shows where it ends: {code} {message}"
    );
    let (code, message) = found(ExportSelection::Task("task-7".to_owned()), |events| remove_entry(events, 5)).await;
    assert!(code == BundleFaultCode::ChainMissing && message.contains("update 3 of task task-7"), "{message}");
    let (code, message) = found(ExportSelection::Trace(TraceId(TRACE), BTreeSet::new()), |events| remove_entry(events, 90)).await;
    assert_eq!(code, BundleFaultCode::ChainMissing, "a refusal: {message}");
}

#[tokio::test]
async fn entries_that_changed_places_or_stand_twice_are_found() {
    let (code, message) = found(all(), |events| events.swap(40, 41)).await;
    assert_eq!(code, BundleFaultCode::ChainAltered, "{message}");
    let exchange_links = |events: &mut Vec<BundleEvent>, one: u64, other: u64| {
        events.swap(one as usize, other as usize);
        for event in events.iter_mut().filter(|event| event.kind == types::LINKS) {
            for link in event.data["links"].as_array_mut().unwrap() {
                match link["seq"].as_u64().unwrap() {
                    seq if seq == one => link["seq"] = json!(other),
                    seq if seq == other => link["seq"] = json!(one),
                    _ => {}
                }
            }
        }
    };
    let (code, message) = found(all(), |events| exchange_links(events, 40, 41)).await;
    assert!(code == BundleFaultCode::ChainOrder && message == "entry 40 stands after entry 41", "{message}");
    let (code, message) = found(all(), |events| {
        let twice = events[187].clone();
        events.insert(188, twice);
        let links = events.iter_mut().find(|event| event.kind == types::LINKS).unwrap();
        let links = links.data["links"].as_array_mut().unwrap();
        let mut again = links.last().unwrap().clone();
        again["seq"] = json!(188);
        links.push(again);
    })
    .await;
    assert_eq!((code, message.as_str()), (BundleFaultCode::ChainDuplicate, "entry 187 stands there twice"));
}

#[tokio::test]
async fn exchanged_removed_and_forged_checkpoints_and_proofs_are_found() {
    let checkpoints = |events: &[BundleEvent]| -> Vec<usize> {
        let places = events.iter().enumerate().filter(|(_, event)| event.kind == types::CHECKPOINT);
        places.map(|(place, _)| place).collect()
    };
    let (code, message) = found(all(), |events| {
        let places = checkpoints(events);
        events.swap(places[0], places[1]);
    })
    .await;
    assert_eq!(code, BundleFaultCode::CheckpointSwapped, "{message}");
    // Of another record of the same node, with the same numbers.
    let other = ListedRecord::new(16, 1000);
    other.commit(&[RecordedWrite::Note(&crate::record::listed_record::card("1.0"))]);
    let wanted = || ExportSelection::Task("task-7".to_owned());
    let other = export(&other.busy(), &wanted(), at(1000)).await.unwrap();
    let theirs: Vec<_> = opened(&other).into_iter().filter(|event| event.kind == types::CHECKPOINT).collect();
    let (code, message) = found(wanted(), move |events| {
        for (place, theirs) in checkpoints(events).into_iter().zip(theirs) {
            events[place] = theirs;
        }
    })
    .await;
    assert!(matches!(code, BundleFaultCode::ChainAltered | BundleFaultCode::CheckpointSwapped), "{code} {message}");
    let (code, _) = found(all(), |events| {
        let place = checkpoints(events)[0];
        events.remove(place);
    })
    .await;
    assert_eq!(code, BundleFaultCode::ChainUnsigned);
    let (code, _) = found(all(), |events| {
        let place = checkpoints(events)[0];
        let body = events[place].data["body"].as_str().unwrap().replace("\"sealed\":true", "\"sealed\":false");
        events[place].data["body"] = json!(body);
    })
    .await;
    assert_eq!(code, BundleFaultCode::CheckpointSignature);
    let (code, _) =
        found(ExportSelection::Task("task-7".to_owned()), |events| events.retain(|event| event.kind != types::PROOF)).await;
    assert_eq!(code, BundleFaultCode::ChainUnsigned);
    let (code, _) = found(ExportSelection::Task("task-7".to_owned()), |events| {
        let proof = events.iter_mut().find(|event| event.kind == types::PROOF).unwrap();
        let path = proof.data["path"].as_array_mut().unwrap();
        path.pop();
    })
    .await;
    assert_eq!(code, BundleFaultCode::ChainAltered);
    let (code, _) = found(all(), |events| events.retain(|event| event.kind != types::LINKS)).await;
    assert_eq!(code, BundleFaultCode::ChainUnlinked);
}

#[tokio::test]
async fn packets_are_what_their_entries_make_no_less_and_no_more() {
    let first = |events: &[BundleEvent]| events.iter().position(|event| event.kind.starts_with("assay.")).unwrap();
    let (code, _) = found(all(), |events| {
        let place = first(events);
        events[place].data["handoff"]["visible"] = json!(true);
    })
    .await;
    assert_eq!(code, BundleFaultCode::PacketMismatch);
    let (code, _) = found(all(), |events| {
        let place = first(events);
        events.remove(place);
    })
    .await;
    assert_ne!(code, BundleFaultCode::ContractInvalidEvent);
    let (code, _) = found(all(), |events| {
        let more = events[first(events)].clone();
        events.push(more);
    })
    .await;
    assert_eq!(code, BundleFaultCode::PacketMismatch);
}
