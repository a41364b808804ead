//! Goes through a record from its beginning to its end and stops at the first thing that is not as it was written.

use std::collections::{BTreeMap, BTreeSet};

use chancery_core::{Block, Checkpoint};

use super::checkpoint::{self, CheckpointBody, CheckpointFault, signed_body};
use super::entry::{BadLine, Entry, NOTHING, entries_of};
use super::merkle::Frontier;
use super::words::types;
use super::{Hash, from_hex, hex};

/// An entry this much older than the one before it was not recorded when it happened, unless the record says before it that
/// the clock was set back. Entries that happen at once may be recorded in either order, and clocks are set by a little.
pub const BACK_DATED_MICROS: i64 = 10 * 60 * 1_000_000;

pub(crate) fn is_back_dated(at: i64, last: i64) -> bool {
    is_back_dated_after(1, at, last)
}

/// The same where so many entries were recorded from the one to the other: each of them may be a little older than the one before.
pub(crate) fn is_back_dated_after(entries: u64, at: i64, last: i64) -> bool {
    let most = i64::try_from(entries).unwrap_or(i64::MAX).saturating_mul(BACK_DATED_MICROS);
    at < last.saturating_sub(most)
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordFault {
    #[error("entries {from} to {to} are missing")]
    Missing { from: u64, to: u64 },
    #[error("entry {0} stands in the record twice")]
    Twice(u64),
    #[error("the entries {from} to {to} are not as they were written")]
    Altered { from: u64, to: u64 },
    #[error(transparent)]
    Unreadable(#[from] BadLine),
    #[error("entry {index} is back-dated: its time is long before that of entry {}", index - 1)]
    BackDated { index: u64 },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointFault),
    #[error("checkpoint {number} does not agree with the record at entry {index}: one of them was changed after it was signed")]
    Disagrees { number: u64, index: u64 },
    #[error("checkpoint {number} is signed by {kid}, which was never a key of this node")]
    Stranger { number: u64, kid: String },
    #[error("checkpoint {0} does not follow the seal of the segment before it")]
    OutOfPlace(u64),
    #[error("{} removed: after checkpoint {after} comes checkpoint {next}", removed(*after, *next))]
    CheckpointsRemoved { after: u64, next: u64 },
    #[error(
        "the checkpoint that sealed the segment before entry {first} was removed: it had a number from {} to {}",
        after + 1,
        next - 1
    )]
    SealRemoved { first: u64, after: u64, next: u64 },
    #[error("the record begins with entry {0}, and no seal covers the entries before it")]
    NoBeginning(u64),
    #[error("entries {from} to {to} were signed and are gone")]
    Gone { from: u64, to: u64 },
}

/// The checkpoints between two that follow each other.
fn removed(after: u64, next: u64) -> String {
    match next - after {
        2 => format!("checkpoint {} was", after + 1),
        _ => format!("checkpoints {} to {} were", after + 1, next - 1),
    }
}

/// A segment as far as it is signed.
#[derive(Debug)]
pub struct Segment {
    pub first: u64,
    /// Of its entries.
    pub hashes: Vec<Hash>,
    /// Signs all of these.
    pub checkpoint: Checkpoint,
}

#[derive(Debug)]
pub struct Examination {
    /// By where they end, and in order.
    checkpoints: BTreeMap<u64, Vec<(Checkpoint, CheckpointBody)>>,
    next: u64,
    prev: Hash,
    last_at: Option<i64>,
    first: u64,
    before: Hash,
    tree: Frontier,
    hashes: Vec<Hash>,
    newest: Option<Checkpoint>,
    /// Where the newest checkpoint of all ends.
    signed: u64,
}

impl Examination {
    /// Of a record with these checkpoints whose first entry that is kept has this index.
    pub fn begin(checkpoints: Vec<Checkpoint>, first: u64) -> Result<Self, RecordFault> {
        let mut read = Vec::with_capacity(checkpoints.len());
        for checkpoint in checkpoints {
            let body = signed_body(&checkpoint)?;
            read.push((checkpoint, body));
        }
        let bodies: Vec<_> = read.iter().map(|(checkpoint, body)| (checkpoint, body)).collect();
        check_order(&bodies)?;
        check_none_removed(&bodies)?;
        let before = match first {
            0 => NOTHING,
            first => {
                let seal = read.iter().find(|(checkpoint, _)| checkpoint.sealed && checkpoint.end == first);
                seal.and_then(|(_, body)| from_hex(&body.hash)).ok_or(RecordFault::NoBeginning(first))?
            }
        };
        let signed = read.iter().map(|(checkpoint, _)| checkpoint.end).max().unwrap_or(0);
        let mut checkpoints: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (checkpoint, body) in read {
            checkpoints.entry(checkpoint.end).or_default().push((checkpoint, body));
        }
        let (tree, hashes) = (Frontier::default(), Vec::new());
        Ok(Self { checkpoints, next: first, prev: before, last_at: None, first, before, tree, hashes, newest: None, signed })
    }

    /// The next block: its entries, and the segments that end in it. It includes entries without a signature.
    pub fn block(&mut self, block: &Block) -> Result<(Vec<Entry>, Vec<Segment>), RecordFault> {
        let next = self.next;
        match block.first {
            first if first > next => return Err(RecordFault::Missing { from: next, to: first - 1 }),
            first if first < next => return Err(RecordFault::Twice(first)),
            _ => {}
        }
        let entries = entries_of(block, self.prev)?;
        let last = next + block.count.saturating_sub(1);
        if entries.len() as u64 != block.count || entries.last().map(|entry| entry.hash) != Some(block.hash) {
            return Err(RecordFault::Altered { from: next, to: last });
        }
        let mut segments = Vec::new();
        for entry in &entries {
            segments.extend(self.entry(entry)?);
        }
        Ok((entries, segments))
    }

    fn entry(&mut self, entry: &Entry) -> Result<Option<Segment>, RecordFault> {
        let at = entry.at.micros();
        if let Some(last) = self.last_at
            && is_back_dated(at, last)
            && !(entry.kind == types::CLOCK && entry.data["before"] == last)
        {
            return Err(RecordFault::BackDated { index: entry.index });
        }
        self.last_at = Some(at);
        self.tree.push(&entry.hash);
        self.hashes.push(entry.hash);
        (self.prev, self.next) = (entry.hash, entry.index + 1);
        let mut ended = None;
        for (checkpoint, body) in self.checkpoints.remove(&self.next).unwrap_or_default() {
            let agrees = body.first == self.first
                && body.before == hex(&self.before)
                && body.hash == hex(&entry.hash)
                && body.root == hex(&self.tree.root());
            if !agrees {
                return Err(RecordFault::Disagrees { number: checkpoint.number, index: entry.index });
            }
            if checkpoint.sealed {
                let hashes = std::mem::take(&mut self.hashes);
                ended = Some(Segment { first: self.first, hashes, checkpoint });
                (self.first, self.before, self.tree, self.newest) = (self.next, entry.hash, Frontier::default(), None);
            } else {
                self.newest = Some(checkpoint);
            }
        }
        Ok(ended)
    }

    /// There are no more blocks: what is signed of the segment that is open.
    pub fn end(self) -> Result<Option<Segment>, RecordFault> {
        if self.next < self.signed {
            return Err(RecordFault::Gone { from: self.next, to: self.signed - 1 });
        }
        let Self { first, mut hashes, newest, .. } = self;
        Ok(newest.map(|checkpoint| {
            hashes.truncate(usize::try_from(checkpoint.end - first).unwrap_or(usize::MAX));
            Segment { first, hashes, checkpoint }
        }))
    }
}

/// A party that can change all stored data can also sign it, but not with these keys. An [`Examination`]
/// verifies the signatures.
pub fn check_signers(checkpoints: &[Checkpoint], own: &BTreeSet<String>) -> Result<(), RecordFault> {
    for checkpoint in checkpoints {
        let body = serde_json::from_str::<CheckpointBody>(&checkpoint.body);
        let kid = body.map_err(|fault| CheckpointFault::Unreadable(checkpoint.number, fault.to_string()))?.kid;
        if !own.contains(&kid) {
            return Err(RecordFault::Stranger { number: checkpoint.number, kid });
        }
    }
    Ok(())
}

/// Finds checkpoints that were removed from a record. A seal replaces the checkpoints before it in its
/// segment, and is kept permanently. So every segment but the open one has its seal. The checkpoints after
/// the last seal are numbered without gaps.
fn check_none_removed(checkpoints: &[(&Checkpoint, &CheckpointBody)]) -> Result<(), RecordFault> {
    let (mut sealed_up_to, mut before) = (0, 0);
    for (checkpoint, body) in checkpoints {
        let number = checkpoint.number;
        if body.first > sealed_up_to {
            return Err(RecordFault::SealRemoved { first: body.first, after: before, next: number });
        }
        // What a seal replaced may have had any numbers between the seal before it and its own.
        if !checkpoint.sealed && number != before + 1 {
            return Err(RecordFault::CheckpointsRemoved { after: before, next: number });
        }
        if checkpoint.sealed {
            sealed_up_to = checkpoint.end;
        }
        before = number;
    }
    Ok(())
}

/// Checkpoints are numbered in the order in which they were signed, and each names the seal before its segment.
pub(crate) fn check_order(checkpoints: &[(&Checkpoint, &CheckpointBody)]) -> Result<(), RecordFault> {
    let mut seals: BTreeMap<u64, (&Checkpoint, &CheckpointBody)> = BTreeMap::new();
    let mut before: Option<&Checkpoint> = None;
    for (checkpoint, body) in checkpoints {
        let number = checkpoint.number;
        let follows = before.is_none_or(|before| before.number < number && before.end <= checkpoint.end);
        let segment_before = seals.get(&body.first);
        let in_place = segment_before
            .is_none_or(|(seal, sealed)| body.before == sealed.hash && body.previous == hex(&checkpoint::digest(seal)));
        let opens = body.first > 0 || (body.before == hex(&NOTHING) && body.previous == hex(&NOTHING));
        if !(follows && in_place && opens && body.sealed == checkpoint.sealed) {
            return Err(RecordFault::OutOfPlace(number));
        }
        before = Some(checkpoint);
        if checkpoint.sealed {
            seals.insert(checkpoint.end, (checkpoint, body));
        }
    }
    Ok(())
}
