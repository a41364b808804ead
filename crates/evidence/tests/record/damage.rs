//! A record that somebody changed where it is kept: each change is found and named.

use crate::house::{ListedRecord, at, ring};
use chancery_core::{Block, Checkpoint, RecordEnd, Scribe as _};
use chancery_evidence::export::{ExportFault, Wanted, examine, export};
use chancery_evidence::record::{Entry, NOTHING, RecordFault, entries_of};

async fn found(change: impl FnOnce(&mut Vec<Block>, &mut Vec<Checkpoint>)) -> RecordFault {
    let record = ListedRecord::new(16, 5).busy();
    examine(&record).await.unwrap();
    change(&mut record.blocks.lock().unwrap(), &mut record.checkpoints.lock().unwrap());
    let exported = export(&record, &Wanted::Between(None, None), at(1000)).await;
    assert!(matches!(exported, Err(ExportFault::Record(_))), "a damaged record is not exported: {exported:?}");
    match examine(&record).await {
        Err(ExportFault::Record(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_changed_letter_is_found_in_its_block() {
    let fault = found(|blocks, _| blocks[3].entries = blocks[3].entries.replacen("INPUT_REQ", "AUTH_REQ", 1)).await;
    assert_eq!(fault, RecordFault::Altered { from: 11, to: 15 });
    let fault = found(|blocks, _| blocks[0].entries = blocks[0].entries.replacen("\"at\":1790", "\"at\":1780", 1)).await;
    assert_eq!(fault, RecordFault::Altered { from: 0, to: 1 }, "back-dated");
    let fault = found(|blocks, _| blocks[0].entries = blocks[0].entries.replacen("{\"at\"", "{\"at", 1)).await;
    assert!(matches!(fault, RecordFault::Unreadable(_)), "{fault}");
}

#[tokio::test]
async fn blocks_that_are_gone_exchanged_or_there_twice_are_found() {
    let fault = found(|blocks, _| drop(blocks.remove(4))).await;
    assert_eq!(fault, RecordFault::Missing { from: 16, to: 17 });
    let fault = found(|blocks, _| {
        let line = blocks[3].entries.lines().next().unwrap().to_owned();
        blocks[3].entries = blocks[3].entries.replacen(&format!("{line}\n"), "", 1);
    })
    .await;
    assert_eq!(fault, RecordFault::Altered { from: 11, to: 15 }, "an entry is gone from its block");
    let fault = found(|blocks, _| {
        let (first, second) = (blocks[2].entries.clone(), blocks[5].entries.clone());
        (blocks[2].entries, blocks[5].entries) = (second, first);
    })
    .await;
    assert!(matches!(fault, RecordFault::Altered { from: 9, .. }), "{fault}");
    let fault = found(|blocks, _| {
        let twice = blocks[6].clone();
        blocks.insert(7, twice);
    })
    .await;
    assert_eq!(fault, RecordFault::Twice(fault_first()));
}

fn fault_first() -> u64 {
    let record = ListedRecord::new(16, 5).busy();
    record.blocks.lock().unwrap()[6].first
}

#[tokio::test]
async fn an_end_that_was_cut_off_is_missed_as_far_as_it_was_signed() {
    let fault = found(|blocks, _| blocks.truncate(blocks.len() - 3)).await;
    assert!(matches!(fault, RecordFault::Gone { to: 182.., .. } | RecordFault::Gone { .. }), "{fault}");
    let fault = found(|blocks, checkpoints| {
        // A whole segment, with all that was signed in it but its seal.
        let seal = checkpoints.iter().find(|one| one.sealed).unwrap().clone();
        blocks.retain(|block| block.first >= seal.end || block.first < 8);
    })
    .await;
    assert!(matches!(fault, RecordFault::Missing { to: 15, .. }), "{fault}");
}

/// The blocks as somebody would leave them who changes an entry and makes all hashes after it right again.
fn recomputed(blocks: &[Block], from: &str, to: &str) -> Vec<Block> {
    let mut prev = NOTHING;
    let mut changed = false;
    let rewrite = |block: &Block| {
        let mut block = block.clone();
        if !changed && block.entries.contains(from) {
            block.entries = block.entries.replacen(from, to, 1);
            changed = true;
        }
        let entries: Vec<Entry> = entries_of(&block, prev).unwrap();
        prev = entries.last().unwrap().hash;
        block.hash = prev;
        block
    };
    blocks.iter().map(rewrite).collect()
}

#[tokio::test]
async fn rows_that_were_changed_with_all_later_hashes_made_right_disagree_with_what_was_signed() {
    let fault = found(|blocks, _| *blocks = recomputed(blocks, "CANCELED", "COMPLETED")).await;
    assert!(matches!(fault, RecordFault::Disagrees { number: 2, index: 9 }), "{fault}");
    let fault = found(|blocks, _| *blocks = recomputed(blocks, "BUDGET_EXCEEDED", "POLICY_DENIED")).await;
    assert!(matches!(fault, RecordFault::Disagrees { .. }), "{fault}");
}

#[tokio::test]
async fn checkpoints_that_were_exchanged_forged_or_moved_are_found() {
    let fault = found(|_, checkpoints| checkpoints.swap(0, 1)).await;
    assert!(matches!(fault, RecordFault::OutOfPlace(1)), "{fault}");
    let fault = found(|_, checkpoints| {
        let (body, signature) = (checkpoints[1].body.clone(), checkpoints[1].signature.clone());
        (checkpoints[0].body, checkpoints[0].signature) = (body, signature);
    })
    .await;
    assert!(matches!(fault, RecordFault::Checkpoint(_)), "{fault}");
    let fault = found(|_, checkpoints| checkpoints[0].signature[5] ^= 1).await;
    assert!(fault.to_string().contains("checkpoint 1 is not signed"), "{fault}");
    let fault = found(|_, checkpoints| {
        let body = &mut checkpoints[0].body;
        *body = body.replacen("\"count\":5", "\"count\":6", 1);
    })
    .await;
    assert!(fault.to_string().contains("checkpoint 1 is not signed"), "{fault}");
    // One that is rightly signed, by the node's own key, for another record.
    let other = ListedRecord::new(16, 5).busy();
    let theirs = other.checkpoints.lock().unwrap()[0].clone();
    let fault = found(move |blocks, checkpoints| {
        checkpoints[0] = theirs;
        *blocks = recomputed(blocks, "CANCELED", "COMPLETED");
    })
    .await;
    assert!(matches!(fault, RecordFault::Disagrees { .. }), "{fault}");
}

#[tokio::test]
async fn a_restart_over_a_damaged_record_goes_on_and_does_not_cover_it_up() {
    let record = ListedRecord::new(1000, 5).busy();
    let changed = recomputed(&record.blocks.lock().unwrap(), "CANCELED", "COMPLETED");
    *record.blocks.lock().unwrap() = changed;
    record.recorder.take_keys(&ring(), at(0));
    record.restart();
    let record = record.busy();
    let fault = examine(&record).await.unwrap_err();
    assert!(matches!(fault, ExportFault::Record(RecordFault::Disagrees { number: 2, .. })), "{fault}");
    drop(record.recorder.go_on(RecordEnd::default()));
}
