//! Clocks are set, also back: the record says so and goes on. What is back-dated without that word is found.

use chancery_core::{Block, RecordNote, RecordedWrite};
use chancery_evidence::bundle::verify;
use chancery_evidence::export::{ExportFault, ExportSelection, examine, export};
use chancery_evidence::record::{BACK_DATED_MICROS, Entry, NOTHING, RecordFault, entries_of, text_of, types};
use chancery_protocol::Version;
use serde_json::json;

use crate::record::listed_record::{self, ListedRecord, at};

const HOUR: i64 = 60 * 60 * 1_000_000;

fn thawed(micros: i64) -> RecordNote {
    RecordNote::Thawed { scope: chancery_core::FreezeScope::Everything, by: "operator".into(), at: at(micros) }
}

fn entries(blocks: &[Block]) -> Vec<Entry> {
    let (mut prev, mut all) = (NOTHING, Vec::new());
    for block in blocks {
        all.extend(entries_of(block, prev).unwrap());
        prev = block.hash;
    }
    all
}

#[tokio::test]
async fn a_clock_that_is_set_back_is_noted_and_the_record_stays_whole() {
    for segment in [1, 2, 3, 1000] {
        let record = ListedRecord::new(segment, 2);
        let task = listed_record::record("t", Version::V1_0, 1);
        record.commit(&[RecordedWrite::Append(&listed_record::creation(&task, 1))]);
        record.commit(&[RecordedWrite::Note(&thawed(HOUR))]);
        // A process that ended leaves the time to the next one, also if its last segment is sealed.
        record.restart();
        record.commit(&[RecordedWrite::Append(&listed_record::working(&task, 1)), RecordedWrite::Note(&thawed(12))]);
        let all = entries(&record.blocks.lock().unwrap());
        let clocks: Vec<_> = all.iter().filter(|entry| entry.kind == types::CLOCK).collect();
        assert_eq!(clocks.len(), 1, "once: {all:?}");
        assert_eq!((clocks[0].index, clocks[0].at, &clocks[0].data), (3, at(11), &json!({ "before": at(HOUR).micros() })));
        examine(&record).await.unwrap();
        for wanted in [ExportSelection::Between(None, None), ExportSelection::Task("t".to_owned())] {
            let bundle = export(&record, &wanted, at(20)).await.unwrap();
            let (checked, report) = verify(&bundle, &[]).unwrap();
            assert!(checked.events.iter().any(|event| event["type"] == types::CLOCK), "segments of {segment}: {report:?}");
        }
    }
}

#[tokio::test]
async fn a_little_is_not_worth_a_word() {
    let record = ListedRecord::new(1000, 1000);
    record.commit(&[RecordedWrite::Note(&thawed(BACK_DATED_MICROS)), RecordedWrite::Note(&thawed(0))]);
    assert_eq!(record.blocks.lock().unwrap()[0].count, 2);
    record.commit(&[RecordedWrite::Note(&thawed(BACK_DATED_MICROS)), RecordedWrite::Note(&thawed(-1))]);
    assert_eq!(record.blocks.lock().unwrap()[1].count, 3);
    examine(&record).await.unwrap();
}

/// Twice set back by a little: what is between the two entries of a task is not in its bundle.
#[tokio::test]
async fn a_task_whose_clock_went_back_in_small_steps_is_not_taken_for_back_dated() {
    let step = BACK_DATED_MICROS / 10 * 9 / 10;
    let record = ListedRecord::new(1000, 1000);
    let task = listed_record::record("t", Version::V1_0, 2 * step);
    record.commit(&[RecordedWrite::Append(&listed_record::creation(&task, 2 * step))]);
    record.commit(&[RecordedWrite::Note(&thawed(10 * step))]);
    record.commit(&[RecordedWrite::Append(&listed_record::working(&task, 1))]);
    assert!(entries(&record.blocks.lock().unwrap()).iter().all(|entry| entry.kind != types::CLOCK));
    examine(&record).await.unwrap();
    for wanted in [ExportSelection::Between(None, None), ExportSelection::Task("t".to_owned())] {
        verify(&export(&record, &wanted, at(30 * step)).await.unwrap(), &[]).unwrap();
    }
}

/// An entry that says it happened before those that were recorded earlier, with every hash made right: nothing was signed yet.
#[tokio::test]
async fn a_back_dated_entry_without_that_word_is_named() {
    for word in [None, Some(json!({ "before": 5 }))] {
        let record = ListedRecord::new(1000, 1000);
        record.commit(&[
            RecordedWrite::Note(&thawed(HOUR)),
            RecordedWrite::Note(&thawed(HOUR + 1)),
            RecordedWrite::Note(&thawed(HOUR + 2)),
        ]);
        let mut block = record.blocks.lock().unwrap()[0].clone();
        let mut lines: Vec<_> = text_of(&block).unwrap().lines().map(str::to_owned).collect();
        lines[1] = lines[1].replace(&at(HOUR + 1).micros().to_string(), &at(0).micros().to_string());
        if let Some(data) = word {
            lines[1] = format!(r#"{{"at":{},"data":{data},"type":"{}"}}"#, at(0).micros(), types::CLOCK);
        }
        block.entries = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        block.hash = entries_of(&block, NOTHING).unwrap().last().unwrap().hash;
        record.blocks.lock().unwrap()[0] = block;
        let fault = examine(&record).await.unwrap_err();
        assert!(matches!(fault, ExportFault::Record(RecordFault::BackDated { index: 1 })), "{fault}");
    }
}
