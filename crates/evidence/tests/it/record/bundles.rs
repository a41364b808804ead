//! Bundles of a task, of a trace and of a stretch of time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use chancery_core::{Block, Checkpoint, Record, RecordNote, StoreError};
use chancery_evidence::bundle::{BundleFaultCode, BundleReport, verify};
use chancery_evidence::export::{ExportFault, ExportSelection, examine, export};
use chancery_protocol::{Timestamp, TraceId};

use crate::record::listed_record::{ListedRecord, TRACE, at};

async fn bundled(record: &ListedRecord, wanted: &ExportSelection) -> (Vec<serde_json::Value>, BundleReport) {
    let bundle = export(record, wanted, at(1000)).await.unwrap();
    assert_eq!(export(record, wanted, at(2000)).await.unwrap(), bundle, "the same entries make the same bytes");
    let (checked, report) = verify(&bundle, &[]).unwrap();
    (checked.events, report)
}

#[tokio::test]
async fn a_task_is_exported_with_all_that_is_about_it_and_nothing_else() {
    for segment in [5, 16, 1000] {
        let record = ListedRecord::new(segment, 1000).busy();
        let (events, report) = bundled(&record, &ExportSelection::Task("task-7".to_owned())).await;
        assert_eq!(report.entries, 9, "segments of {segment}");
        let entries = events.iter().filter(|event| event["data"]["task"].is_string());
        assert!(entries.into_iter().all(|event| event["data"]["task"] == "task-7"));
        assert_eq!(report.packets, 0, "it is of 1.0");
        assert_eq!(report.keys.len(), 1);
    }
}

#[tokio::test]
async fn a_trace_is_exported_with_all_its_tasks_and_the_refusals_in_it() {
    let record = ListedRecord::new(16, 1000).busy();
    let (events, report) = bundled(&record, &ExportSelection::Trace(TraceId(TRACE), BTreeSet::new())).await;
    assert_eq!(report.entries, 10 * 9 + 1 + 1, "with a refusal and a look at memory");
    assert!(events.iter().any(|event| event["data"]["refused"] == "BUDGET_EXCEEDED"));
    assert_eq!(report.packets, 4 * 5, "four of the tasks are of 0.3");
}

#[tokio::test]
async fn a_stretch_of_time_has_no_gaps_and_ends_where_it_was_told_to() {
    let record = ListedRecord::new(16, 1000).busy();
    let (_, all) = bundled(&record, &ExportSelection::Between(None, None)).await;
    assert_eq!((all.first, all.entries), (Some(0), 20 * 9 + 8));
    let (events, some) = bundled(&record, &ExportSelection::Between(Some(at(50)), Some(at(70)))).await;
    assert_eq!((some.first, some.entries), (Some(5 * 9 - 1), 2 * 9 + 2), "with one more on either side");
    let tasks: Vec<_> = events[..some.entries].iter().filter_map(|event| event["data"]["task"].as_str()).collect();
    assert_eq!((tasks[0], tasks[tasks.len() - 1]), ("task-4", "task-7"));
    assert!(tasks[1..tasks.len() - 1].iter().all(|task| ["task-5", "task-6"].contains(task)), "{tasks:?}");
    let (_, rest) = bundled(&record, &ExportSelection::Between(Some(at(900)), None)).await;
    assert_eq!((rest.entries, rest.last), (8, Some(187)));
    let (_, start) = bundled(&record, &ExportSelection::Between(None, Some(at(10)))).await;
    assert_eq!((start.first, start.entries), (Some(0), 9 + 1));
    // Segments may end anywhere.
    for segment in [1, 2, 3, 5, 9] {
        let record = ListedRecord::new(segment, 1000).busy();
        let (_, again) = bundled(&record, &ExportSelection::Between(Some(at(50)), Some(at(70)))).await;
        assert_eq!((again.first, again.entries), (some.first, some.entries), "segments of {segment}");
    }
    let ages = ExportSelection::Between(Some(Timestamp::from_micros(i64::MIN)), Some(Timestamp::from_micros(i64::MAX)));
    assert_eq!(bundled(&record, &ages).await.1.entries, all.entries, "times of no use are taken, too");
    for nothing in [(Some(at(5_000)), None), (None, Some(at(-5))), (Some(at(55)), Some(at(55)))] {
        let wanted = ExportSelection::Between(nothing.0, nothing.1);
        assert!(matches!(export(&record, &wanted, at(1000)).await, Err(ExportFault::Nothing)), "{wanted:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_is_too_much_is_said() {
    let record = ListedRecord::new(16, 1000).busy();
    let nothing = export(&record, &ExportSelection::Task("no-such".to_owned()), at(1000)).await;
    assert!(matches!(nothing, Err(ExportFault::Nothing)), "{nothing:?}");
    let empty = ListedRecord::new(16, 1000);
    assert_eq!(examine(&empty).await.unwrap().end, 0);
    assert!(matches!(export(&empty, &ExportSelection::Between(None, None), at(1)).await, Err(ExportFault::Nothing)));
}

#[tokio::test]
async fn the_key_that_must_have_signed_can_be_named() {
    let record = ListedRecord::new(16, 1000).busy();
    let bundle = export(&record, &ExportSelection::Task("task-7".to_owned()), at(1000)).await.unwrap();
    let key = verify(&bundle, &[]).unwrap().1.keys.pop_first().unwrap();
    assert!(verify(&bundle, &["another", &key]).is_ok());
    assert_eq!(verify(&bundle, &["another"]).unwrap_err().code, BundleFaultCode::CheckpointKey);
}

#[tokio::test]
async fn a_record_whose_old_segments_went_is_still_checked_from_its_seals_on() {
    let record = ListedRecord::new(16, 4).busy();
    record.forget(64).await.unwrap();
    record.restart();
    let stand = examine(&record).await.unwrap();
    assert_eq!((stand.first, stand.end), (64, 188));
    assert_eq!(stand.sealed_segments, 11, "the seals stay");
    let (_, report) = bundled(&record, &ExportSelection::Between(None, None)).await;
    assert_eq!((report.first, report.entries), (Some(64), 124));
    let (_, cut) = bundled(&record, &ExportSelection::Task("task-7".to_owned())).await;
    assert_eq!(cut.entries, 8, "its request is gone with its segment");
    assert_eq!((cut.scope.kept_from, cut.cut), (64, BTreeSet::from(["task-7".to_owned()])), "and the bundle says so");
    let (_, whole) = bundled(&record, &ExportSelection::Task("task-12".to_owned())).await;
    assert_eq!((whole.entries, whole.scope.kept_from, whole.cut), (9, 64, BTreeSet::new()));
    let cut = ["task-3", "task-4", "task-7"].map(str::to_owned);
    assert_eq!(report.cut, BTreeSet::from(cut), "of all that is left, also if that is only a delivery or a look");
    // What names the trace of this one is gone; whoever knows its tasks gets the rest.
    let of_trace =
        |known: &[&str]| ExportSelection::Trace(TraceId(TRACE + 1), known.iter().map(|task| (*task).to_owned()).collect());
    let (_, unnamed) = bundled(&record, &of_trace(&[])).await;
    let (_, named) = bundled(&record, &of_trace(&["task-7"])).await;
    assert_eq!((named.entries - unnamed.entries, named.cut), (8, cut_of("task-7")));
}

fn cut_of(task: &str) -> BTreeSet<String> {
    BTreeSet::from([task.to_owned()])
}

/// A record whose first segments go while it is read.
#[derive(Debug)]
struct Tidied {
    record: ListedRecord,
    reads: AtomicU32,
    goes_at: u32,
}

#[async_trait]
impl Record for Tidied {
    async fn note(&self, note: RecordNote) -> Result<(), StoreError> {
        self.record.note(note).await
    }

    async fn sign(&self, at: Timestamp) -> Result<(), StoreError> {
        self.record.sign(at).await
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        if self.reads.fetch_add(1, Ordering::Relaxed) == self.goes_at {
            self.record.forget(64).await?;
        }
        // A few at once, so that it happens in between.
        self.record.blocks(from, limit.min(5)).await
    }

    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError> {
        self.record.checkpoints(after).await
    }

    async fn forget(&self, before: u64) -> Result<u64, StoreError> {
        self.record.forget(before).await
    }
}

#[tokio::test]
async fn segments_that_go_while_somebody_reads_them_are_no_fault() {
    for goes_at in 0..6 {
        let tidied = || Tidied { record: ListedRecord::new(16, 4).busy(), reads: AtomicU32::new(0), goes_at };
        let stand = examine(&tidied()).await.unwrap_or_else(|fault| panic!("before read {goes_at}: {fault}"));
        assert!([0, 64].contains(&stand.first) && stand.end == 188, "{stand:?}");
        let bundle = export(&tidied(), &ExportSelection::Task("task-12".to_owned()), at(1000)).await.unwrap();
        assert_eq!(verify(&bundle, &[]).unwrap().1.entries, 9);
        // What is gone without that it was told to go is a fault, whenever one looks.
        let record = tidied();
        record.record.blocks.lock().unwrap().remove(20);
        assert!(matches!(examine(&record).await, Err(ExportFault::Record(_))));
    }
}
