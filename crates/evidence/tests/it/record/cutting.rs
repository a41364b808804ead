//! A bundle that somebody made shorter on its way, and that says it was asked for no more: what can be found is, and what cannot is named.

use std::collections::BTreeSet;

use chancery_core::{FreezeScope, Record as _, RecordNote, RecordedWrite};
use chancery_evidence::bundle::{BundleEvent, BundleFaultCode, BundleReport, verify};
use chancery_evidence::export::{ExportSelection, export};
use chancery_evidence::record::types;
use chancery_protocol::Version;
use serde_json::json;

use crate::record::listed_record::{self, ListedRecord, at};
use crate::record::tampering::{found, links, opened, remove_entry, sealed};

fn task(id: &str) -> ExportSelection {
    ExportSelection::Task(id.to_owned())
}

fn named(tasks: &[&str]) -> BTreeSet<String> {
    tasks.iter().map(|task| (*task).to_owned()).collect()
}

/// A task with something else between its beginning, its end and what became of a notification.
fn interrupted(record: &ListedRecord, others: usize) {
    let (task, thaw) = (
        listed_record::record("t", Version::V1_0, 1),
        RecordNote::Thawed { scope: FreezeScope::Everything, by: "operator".into(), at: at(12) },
    );
    record.commit(&[
        RecordedWrite::Append(&listed_record::creation(&task, 1)),
        RecordedWrite::Append(&listed_record::working(&task, 1)),
    ]);
    (0..others).for_each(|_| record.commit(&[RecordedWrite::Note(&thaw)]));
    record.commit(&[RecordedWrite::Append(&listed_record::ending(&task, 1)), RecordedWrite::Note(&thaw)]);
    record.commit(&[RecordedWrite::Note(&listed_record::delivery("t", None))]);
}

/// Leaves only the entries of these indexes, with all that ties them to their record.
fn keep_only(events: &mut Vec<BundleEvent>, kept: impl Fn(u64) -> bool) {
    let indexes: Vec<_> = links(events)["links"].as_array().unwrap().iter().map(|link| link["index"].as_u64().unwrap()).collect();
    for (seq, _) in indexes.iter().enumerate().rev().filter(|(_, index)| !kept(**index)) {
        remove_entry(events, seq);
    }
    events.retain(|event| event.kind != types::PROOF || kept(event.data["index"].as_u64().unwrap()));
}

async fn report(record: &ListedRecord, wanted: ExportSelection, change: impl FnOnce(&mut Vec<BundleEvent>)) -> BundleReport {
    let mut events = opened(&export(record, &wanted, at(1000)).await.unwrap());
    change(&mut events);
    verify(&sealed(&events), &[]).unwrap().1
}

#[tokio::test]
async fn a_stretch_of_time_shows_one_entry_on_either_side_and_no_other() {
    for since in [at(51), at(5_000_000)] {
        let wanted = ExportSelection::Between(Some(at(50)), None);
        let (code, message) = found(wanted, |events| links(events)["scope"]["since"] = json!(since.micros())).await;
        assert!(code == BundleFaultCode::ChainUnlinked && message.starts_with("entry 45 is too early"), "{code} {message}");
    }
    for until in [at(63), at(-5_000_000)] {
        let wanted = ExportSelection::Between(None, Some(at(70)));
        let (code, message) = found(wanted, |events| links(events)["scope"]["until"] = json!(until.micros())).await;
        assert!(code == BundleFaultCode::ChainUnlinked && message.starts_with("entry 62 is too late"), "{code} {message}");
    }
}

#[tokio::test]
async fn what_was_asked_for_is_told_with_what_was_found() {
    let record = ListedRecord::new(16, 1000).busy();
    let stretch = report(&record, ExportSelection::Between(Some(at(50)), Some(at(70))), |_| {}).await.scope;
    assert_eq!((stretch.since, stretch.until), (Some(at(50).micros()), Some(at(70).micros())));
    let of_task = report(&record, task("task-7"), |_| {}).await.scope;
    assert_eq!((of_task.task.as_deref(), of_task.trace, of_task.since), (Some("task-7"), None, None));
    let (code, message) = found(task("task-7"), |events| links(events)["scope"]["task"] = json!("task-8")).await;
    assert!(code == BundleFaultCode::ChainUnlinked && message.contains("task-8"), "{code} {message}");
}

#[tokio::test]
async fn a_record_is_not_said_to_begin_where_no_segment_does() {
    // task-7 has the entries 63 to 71, and a segment begins with 64.
    for kept_from in [65, 66, 71] {
        let (code, message) = found(task("task-7"), |events| {
            keep_only(events, |index| index >= kept_from);
            links(events)["scope"]["kept_from"] = json!(kept_from);
        })
        .await;
        assert_eq!((code, message), (BundleFaultCode::ChainMissing, format!("entries 0 to {} are missing", kept_from - 1)));
    }
    let (code, message) = found(task("task-7"), |events| links(events)["scope"]["kept_from"] = json!(64)).await;
    assert!(code == BundleFaultCode::ChainOrder && message.contains("entry 63"), "it has an entry from before: {code} {message}");
    // Where one does begin, nobody can tell whether the record did. The task is named.
    let record = ListedRecord::new(16, 1000).busy();
    let cut = report(&record, task("task-7"), |events| {
        keep_only(events, |index| index >= 64);
        links(events)["scope"]["kept_from"] = json!(64);
    });
    assert_eq!(cut.await.cut, named(&["task-7"]));
}

#[tokio::test]
async fn the_bundle_of_a_task_whose_beginning_was_forgotten_shows_where_the_record_begins() {
    let record = ListedRecord::new(4, 1000);
    interrupted(&record, 10);
    record.forget(8).await.unwrap();
    let forgotten = report(&record, task("t"), |_| {}).await;
    assert_eq!((forgotten.scope.kept_from, forgotten.first, forgotten.cut), (8, Some(14), named(&["t"])));
    for kept_from in [1, 7, 9, 14] {
        let mut events = opened(&export(&record, &task("t"), at(1000)).await.unwrap());
        links(&mut events)["scope"]["kept_from"] = json!(kept_from);
        let fault = verify(&sealed(&events), &[]).unwrap_err();
        assert_eq!(fault.code, BundleFaultCode::ChainMissing, "{kept_from}: {fault}");
    }
    // Also one whose first entry is there only to show where a stretch begins.
    let record = ListedRecord::new(1, 1000).busy();
    record.forget(66).await.unwrap();
    let stretch = report(&record, ExportSelection::Between(Some(at(72)), None), |_| {}).await;
    assert_eq!((stretch.scope.kept_from, stretch.first), (66, Some(66)));
}

#[tokio::test]
async fn a_task_whose_end_is_not_there_is_named() {
    let record = ListedRecord::new(1000, 1000);
    interrupted(&record, 1);
    let whole = report(&record, task("t"), |_| {}).await;
    assert_eq!((whole.first, whole.last, whole.cut, whole.open), (Some(0), Some(11), named(&[]), named(&[])));
    let no_end = report(&record, task("t"), |events| keep_only(events, |index| index < 4)).await;
    assert_eq!((no_end.last, no_end.cut, no_end.open), (Some(3), named(&[]), named(&["t"])));
    let neither = report(&record, task("t"), |events| keep_only(events, |index| index == 11)).await;
    assert_eq!((neither.first, neither.cut, neither.open), (Some(11), named(&["t"]), named(&["t"])));
    // A stretch of time shows its own end, and most tasks go on after it.
    let stretch = report(&record, ExportSelection::Between(None, Some(at(11))), |_| {}).await;
    assert_eq!(stretch.open, named(&[]));
}
