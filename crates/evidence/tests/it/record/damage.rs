//! A record that somebody changed where it is kept: each change is found and named.

use chancery_core::{Block, Checkpoint, RecordEnd, RecordedWrite, Scribe as _};
use chancery_evidence::export::{ExportFault, ExportSelection, examine, export};
use chancery_evidence::record::{Entry, NOTHING, RecordFault, entries_of, text_of};
use chancery_protocol::Version;

use crate::record::listed_record::{self, ListedRecord, at, rewrite, ring};

async fn found(change: impl FnOnce(&mut Vec<Block>, &mut Vec<Checkpoint>)) -> RecordFault {
    let record = ListedRecord::new(16, 5).busy();
    examine(&record).await.unwrap();
    change(&mut record.blocks.lock().unwrap(), &mut record.checkpoints.lock().unwrap());
    let exported = export(&record, &ExportSelection::Between(None, None), at(1000)).await;
    assert!(matches!(exported, Err(ExportFault::Record(_))), "a damaged record is not exported: {exported:?}");
    match examine(&record).await {
        Err(ExportFault::Record(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_changed_letter_is_found_in_its_block() {
    let fault = found(|blocks, _| rewrite(&mut blocks[3], "INPUT_REQ", "AUTH_REQ")).await;
    assert_eq!(fault, RecordFault::Altered { from: 11, to: 15 });
    let fault = found(|blocks, _| rewrite(&mut blocks[0], "\"at\":1790", "\"at\":1780")).await;
    assert_eq!(fault, RecordFault::Altered { from: 0, to: 1 }, "back-dated");
    let fault = found(|blocks, _| rewrite(&mut blocks[0], "{\"at\"", "{\"at")).await;
    assert!(matches!(fault, RecordFault::Unreadable(_)), "{fault}");
}

/// In shorthand a byte can stand for a word, a length or a part of a digest: whatever it becomes is noticed.
#[tokio::test]
async fn every_byte_that_is_changed_where_it_is_kept_is_found() {
    let record = ListedRecord::new(1000, 1000);
    let task = listed_record::record("01a1e220-704d-75d6-a5a8-6c51a987b428", Version::V0_3, 1);
    record.commit(&[RecordedWrite::Append(&listed_record::creation(&task, 1))]);
    record.commit(&[
        RecordedWrite::Append(&listed_record::working(&task, 1)),
        RecordedWrite::Append(&listed_record::ending(&task, 1)),
    ]);
    let whole = record.blocks.lock().unwrap().clone();
    for (number, kept) in whole.iter().enumerate() {
        for place in 0..kept.entries.len() {
            for flip in [1, 0x80] {
                let mut block = kept.clone();
                block.entries[place] ^= flip;
                record.blocks.lock().unwrap()[number] = block;
                let fault = match examine(&record).await {
                    Err(ExportFault::Record(fault)) => fault,
                    other => panic!("byte {place} of block {number} with {flip}: {other:?}"),
                };
                assert!(matches!(fault, RecordFault::Altered { .. } | RecordFault::Unreadable(_)), "{fault}");
            }
        }
        for length in 0..kept.entries.len() {
            record.blocks.lock().unwrap()[number].entries = kept.entries[..length].to_vec();
            assert!(examine(&record).await.is_err(), "block {number} cut to {length}");
        }
        record.blocks.lock().unwrap()[number] = kept.clone();
    }
    examine(&record).await.unwrap();
}

/// As records were kept before there was a shorthand.
#[tokio::test]
async fn a_record_of_lines_in_json_is_the_same_record_and_goes_on_in_shorthand() {
    let (short, long) = (ListedRecord::new(16, 5).busy(), ListedRecord::new(16, 5).busy());
    for block in long.blocks.lock().unwrap().iter_mut() {
        let text = text_of(block).unwrap();
        assert!(block.entries.len() * 2 < text.len(), "{} bytes for {}", block.entries.len(), text.len());
        block.entries = text.into_bytes();
        assert_eq!(text_of(block).unwrap().into_bytes(), block.entries);
    }
    long.restart();
    let (mut short, long) = (short.busy(), long.busy());
    short.recorder.take_keys(&ring(), at(0));
    let (ours, theirs) = (examine(&short).await.unwrap(), examine(&long).await.unwrap());
    assert_eq!((ours.end, ours.hash), (theirs.end, theirs.hash));
    let long_blocks = long.blocks.lock().unwrap().clone();
    assert!(long_blocks.first().unwrap().entries.starts_with(b"{"));
    assert_eq!(long_blocks.last(), short.blocks.get_mut().unwrap().last());
}

#[tokio::test]
async fn blocks_that_are_gone_exchanged_or_there_twice_are_found() {
    let fault = found(|blocks, _| drop(blocks.remove(4))).await;
    assert_eq!(fault, RecordFault::Missing { from: 16, to: 17 });
    let fault = found(|blocks, _| {
        let line = text_of(&blocks[3]).unwrap().lines().next().unwrap().to_owned();
        rewrite(&mut blocks[3], &format!("{line}\n"), "");
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
        if !changed && text_of(&block).unwrap().contains(from) {
            rewrite(&mut block, from, to);
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

#[tokio::test]
async fn checkpoints_that_were_removed_are_named() {
    let removed = async |change: fn(&mut Vec<Checkpoint>)| found(|_, checkpoints| change(checkpoints)).await.to_string();
    let one = removed(|checkpoints| drop(checkpoints.remove(0))).await;
    assert_eq!(one, "checkpoint 1 was removed: after checkpoint 0 comes checkpoint 2");
    let two = removed(|checkpoints| drop(checkpoints.drain(..2))).await;
    assert!(two.starts_with("checkpoints 1 to 2 were removed"), "{two}");
    let open = removed(|checkpoints| drop(checkpoints.remove(checkpoints.len() - 2))).await;
    assert!(open.contains("removed: after checkpoint"), "{open}");
}

/// As a store keeps them: a seal takes the place of those before it in its segment.
fn tidied(checkpoints: &mut Vec<Checkpoint>) {
    let sealed = checkpoints.iter().filter(|one| one.sealed).map(|one| one.end).max().unwrap_or(0);
    checkpoints.retain(|one| one.sealed || one.end > sealed);
}

#[tokio::test]
async fn a_seal_that_was_removed_is_missed_also_where_its_entries_are_forgotten() {
    let record = ListedRecord::new(8, 3).busy().busy();
    tidied(&mut record.checkpoints.lock().unwrap());
    let stand = examine(&record).await.unwrap();
    assert!(stand.sealed_segments > 2, "{stand:?}");
    let seals: Vec<_> = record.checkpoints.lock().unwrap().iter().filter(|one| one.sealed).cloned().collect();
    // Nothing but the seals says what was in the first segments.
    record.blocks.lock().unwrap().retain(|block| block.first >= seals[1].end);
    examine(&record).await.expect("forgotten segments are no fault");
    record.checkpoints.lock().unwrap().remove(0);
    let fault = examine(&record).await.unwrap_err().to_string();
    assert!(fault.contains("sealed the segment before entry 8 was removed"), "{fault}");
    assert!(fault.contains(&format!("from 1 to {}", seals[1].number - 1)), "{fault}");
}
