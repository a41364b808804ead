//! No bundle is written that a reader would not take.

use std::sync::Arc;

use chancery_core::RecordedWrite;
use chancery_evidence::bundle::{BundleEvent, SealFault, Stamp, check, limits, seal, unpack, verify};
use chancery_evidence::export::{ExportFault, ExportSelection, export};
use chancery_protocol::{Artifact, Part, TaskEvent, Version};
use serde_json::json;

use crate::record::listed_record::{self, ListedRecord, at};

fn stamp() -> Stamp {
    let text = |text: &str| text.to_owned();
    Stamp { source: text("urn:x"), run: text("r"), producer: text("p"), producer_version: text("1"), git: text("unknown") }
}

fn event(padding: usize) -> BundleEvent {
    let (kind, time) = ("x".to_owned(), "2026-11-01T00:00:00Z".to_owned());
    BundleEvent { kind, time, subject: None, data: json!("x".repeat(padding)) }
}

/// How long the line of an event is beside its padding.
fn frame() -> usize {
    let (_, lines) = unpack(&seal(&stamp(), &[event(0)]).unwrap()).unwrap();
    lines.len() - 1
}

#[test]
fn a_line_is_as_long_as_it_may_be_and_no_longer() {
    let padding = limits::LINE_BYTES - frame();
    check(&seal(&stamp(), &[event(padding)]).unwrap()).unwrap();
    let fault = seal(&stamp(), &[event(0), event(padding + 1)]).unwrap_err();
    assert!(matches!(fault, SealFault::TooLong { seq: 1, bytes } if bytes == limits::LINE_BYTES + 1), "{fault}");
}

#[test]
fn there_are_no_more_events_than_a_reader_takes() {
    let fault = seal(&stamp(), &vec![event(0); limits::EVENTS + 1]).unwrap_err();
    assert!(matches!(fault, SealFault::TooMuch("the list of events", _)), "{fault}");
}

/// A task with an artifact of such a name, before and after others.
fn recorded(name: &str) -> ListedRecord {
    let record = ListedRecord::new(1000, 1000);
    let task = listed_record::record("t", Version::V0_3, 1);
    let mut work = listed_record::working(&task, 1);
    let entry = Arc::make_mut(&mut work.entries[0]);
    let TaskEvent::Artifact(chunk) = &mut entry.event else { panic!("an artifact") };
    chunk.artifact = Arc::new(Artifact::new(name, vec![Part::text("x")]));
    record.commit(&[
        RecordedWrite::Append(&listed_record::creation(&task, 1)),
        RecordedWrite::Append(&work),
        RecordedWrite::Append(&listed_record::ending(&task, 1)),
    ]);
    record.commit(&[RecordedWrite::Note(&listed_record::card("1.0"))]);
    record
}

#[tokio::test]
async fn an_entry_that_is_too_long_is_named_instead_of_written() {
    let record = recorded(&"a".repeat(600_000));
    for wanted in [ExportSelection::Between(None, None), ExportSelection::Task("t".to_owned())] {
        let fault = export(&record, &wanted, at(1000)).await.unwrap_err();
        assert!(matches!(fault, ExportFault::Unwritable(_)) && fault.to_string().contains("entry 2 of 2026-"), "{fault}");
    }
    let rest = export(&record, &ExportSelection::Between(Some(at(12)), None), at(1000)).await.unwrap();
    verify(&rest, &[]).unwrap();
}
