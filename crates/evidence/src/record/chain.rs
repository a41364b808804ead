//! The growing end of the record: links entries, grows the tree of their segment, signs where enough has gathered.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use chancery_core::{Block, Chain, RecordEnd, RecordLines, RecordedWrite, Scribe, UnwrittenRecord};
use chancery_identity::keys::Receipts;
use chancery_identity::{Algorithm, KeyRing, SigningKey};
use chancery_protocol::Timestamp;

use super::checkpoint::{self, SegmentState, signed_body};
use super::entry::{NOTHING, entries_of, write_link};
use super::examine::is_back_dated;
use super::lines::EntryWriter;
use super::merkle::Frontier;
use super::shorthand::{Garbled, SHORTHAND, time_of, write_out};
use super::{EvidenceConfig, Hash, from_hex, sha256};

/// Writes the record of one node.
#[derive(Debug)]
pub struct Recorder {
    segment_entries: u64,
    checkpoint_entries: u64,
    key: Arc<ArcSwapOption<SigningKey<Receipts>>>,
}

impl Recorder {
    pub fn new(config: &EvidenceConfig) -> Self {
        Self {
            segment_entries: config.segment_entries.max(1),
            checkpoint_entries: config.checkpoint_entries.max(1),
            key: Arc::default(),
        }
    }

    /// Checkpoints are signed with the key that is in use at this time.
    pub fn take_keys(&self, ring: &KeyRing, now: Timestamp) {
        self.key.store(ring.signing::<Receipts>(None, Algorithm::EdDsa, now).map(Arc::new));
    }
}

impl Scribe for Recorder {
    fn write(&self, what: RecordedWrite<'_>) -> RecordLines {
        EntryWriter::write(what)
    }

    fn go_on(&self, end: RecordEnd) -> Box<dyn Chain> {
        let mut stand = Standing::default();
        if let Some(sealed) = &end.sealed {
            match signed_body(sealed) {
                Ok(body) => stand.hash = from_hex(&body.hash).unwrap_or(NOTHING),
                Err(fault) => {
                    tracing::error!(%fault, "cannot read the last seal of the record; the record continues after it. Check it with `chancery evidence status`")
                }
            }
            stand.previous = checkpoint::digest(sealed);
            (stand.next, stand.first) = (sealed.end, sealed.end);
            // Its entries may be gone; it was signed when the last of them was recorded.
            stand.last_at = sealed.at;
            stand.before = stand.hash;
        }
        if let Some(newest) = &end.newest {
            (stand.number, stand.signed) = (newest.number, newest.end);
        }
        for block in &end.blocks {
            stand.take_up(block);
        }
        if let Some(newest) = &end.newest
            && stand.next < newest.end
        {
            tracing::error!(
                signed = newest.end,
                found = stand.next,
                "signed entries are missing from the record: the database lost them, or is an old copy. Check it with `chancery evidence status`"
            );
            // Their places stay empty, so that nobody takes others for them.
            stand.next = newest.end;
            stand.hash = signed_body(newest).ok().and_then(|body| from_hex(&body.hash)).unwrap_or(stand.hash);
        }
        Box::new(Recording {
            durable: stand.clone(),
            stand,
            unwritten: UnwrittenRecord::default(),
            entry: Vec::new(),
            segment_entries: self.segment_entries,
            checkpoint_entries: self.checkpoint_entries,
            key: Arc::clone(&self.key),
        })
    }
}

/// How the record stands.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// The index of the next entry.
    next: u64,
    hash: Hash,
    last_at: Timestamp,
    /// Of the segment.
    first: u64,
    before: Hash,
    tree: Frontier,
    /// Of the newest checkpoint, and the digest of the last one that sealed.
    number: u64,
    signed: u64,
    previous: Hash,
}

impl Standing {
    /// Entries that an earlier process wrote. A damaged block is logged and kept unchanged: verification of
    /// the record finds it.
    fn take_up(&mut self, block: &Block) {
        match entries_of(block, self.hash) {
            Ok(entries) => {
                for entry in &entries {
                    self.tree.push(&entry.hash);
                }
                if entries.last().map(|entry| entry.hash) != Some(block.hash) || self.next != block.first {
                    tracing::error!(
                        first = block.first,
                        "a block of the record does not match its hash: it was changed. Check it with `chancery evidence status`"
                    );
                }
                self.last_at = entries.last().map_or(self.last_at, |entry| entry.at);
            }
            Err(fault) => {
                tracing::error!(first = block.first, %fault, "cannot read a block of the record: it is damaged. Check it with `chancery evidence status`")
            }
        }
        self.hash = block.hash;
        self.next = block.first.saturating_add(block.count);
    }
}

#[derive(Debug)]
struct Recording {
    stand: Standing,
    /// As it was after the last transaction.
    durable: Standing,
    unwritten: UnwrittenRecord,
    /// The entry that is being linked, written out.
    entry: Vec<u8>,
    segment_entries: u64,
    checkpoint_entries: u64,
    key: Arc<ArcSwapOption<SigningKey<Receipts>>>,
}

impl Recording {
    fn signature(&mut self, at: Timestamp, sealed: bool) {
        let Some(key) = self.key.load_full() else {
            tracing::error!("cannot sign the record: the node has no receipt key. Make one with `chancery keys rotate receipts`");
            return;
        };
        let stand = &self.stand;
        let signed = checkpoint::sign(
            &SegmentState {
                at,
                before: &stand.before,
                first: stand.first,
                count: stand.next - stand.first,
                hash: &stand.hash,
                root: &stand.tree.root(),
                number: stand.number + 1,
                previous: &stand.previous,
                sealed,
            },
            &key,
        );
        match signed {
            Ok(checkpoint) => {
                self.stand.number += 1;
                self.stand.signed = self.stand.next;
                if sealed {
                    self.stand.previous = checkpoint::digest(&checkpoint);
                }
                self.unwritten.checkpoints.push(checkpoint);
            }
            Err(fault) => tracing::error!(fault, "cannot sign the record; the node tries again at the next checkpoint"),
        }
    }

    /// The next of these lines becomes the next entry.
    fn link(&mut self, lines: &mut &[u8], at: Timestamp) -> Result<(), Garbled> {
        let (index, begin) = (self.stand.next, *lines);
        self.entry.clear();
        write_out(lines, &mut self.entry, |to| write_link(to, index, &self.stand.hash))?;
        let hash = sha256(&self.entry);
        let line = &begin[..begin.len() - lines.len()];
        match self.unwritten.blocks.last_mut() {
            Some(block) if block.first >= self.stand.first => {
                block.count += 1;
                block.hash = hash;
                block.entries.extend_from_slice(line);
            }
            _ => {
                let entries = [&[SHORTHAND], line].concat();
                self.unwritten.blocks.push(Block { first: index, count: 1, at, hash, entries });
            }
        }
        self.stand.hash = hash;
        self.stand.next += 1;
        self.stand.last_at = at;
        self.stand.tree.push(&hash);
        if self.stand.next - self.stand.first >= self.segment_entries {
            self.seal();
        } else if self.stand.next - self.stand.signed >= self.checkpoint_entries {
            self.signature(at, false);
        }
        Ok(())
    }

    fn link_all(&mut self, mut lines: &[u8]) -> Result<(), Garbled> {
        while let Some(micros) = time_of(lines) {
            let (at, last_at) = (Timestamp::from_micros(micros), self.stand.last_at);
            if is_back_dated(micros, last_at.micros()) {
                self.link(&mut &*EntryWriter::clock(at, last_at).0, at)?;
            }
            self.link(&mut lines, at)?;
        }
        Ok(())
    }

    /// The next segment begins, if the last one could be sealed.
    fn seal(&mut self) {
        let number = self.stand.number;
        self.signature(self.stand.last_at, true);
        if self.stand.number > number {
            let stand = &mut self.stand;
            (stand.first, stand.before, stand.tree) = (stand.next, stand.hash, Frontier::default());
        }
    }
}

impl Chain for Recording {
    fn add(&mut self, lines: &RecordLines) {
        if let Err(fault) = self.link_all(&lines.0) {
            // They are ours, so they can be read; if not, that is told rather than nothing.
            tracing::error!(%fault, "cannot add lines to the record, so these entries are missing: report this defect of Chancery");
        }
    }

    fn sign(&mut self, at: Timestamp) {
        if self.stand.next > self.stand.signed {
            self.signature(at, false);
        }
    }

    fn unwritten(&self) -> &UnwrittenRecord {
        &self.unwritten
    }

    fn written(&mut self) {
        if !self.unwritten.blocks.is_empty() || !self.unwritten.checkpoints.is_empty() {
            self.unwritten = UnwrittenRecord::default();
            self.durable.clone_from(&self.stand);
        }
    }

    fn undo(&mut self) {
        self.unwritten = UnwrittenRecord::default();
        self.stand.clone_from(&self.durable);
    }
}
