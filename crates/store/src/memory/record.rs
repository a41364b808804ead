//! The record of a store in memory: gone when the process ends, like the rest.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chancery_core::{Block, Chain, Checkpoint, Record, RecordEnd, RecordLines, RecordNote, RecordedWrite, Scribe, StoreError};
use chancery_protocol::Timestamp;

use super::locked;

#[derive(Debug)]
pub(super) struct MemoryRecord {
    scribe: Arc<dyn Scribe>,
    /// Taken after all other locks.
    kept: Mutex<RecordState>,
}

#[derive(Debug)]
struct RecordState {
    chain: Box<dyn Chain>,
    blocks: Vec<Block>,
    checkpoints: Vec<Checkpoint>,
}

impl RecordState {
    fn keep(&mut self) {
        let unwritten = self.chain.unwritten().clone();
        self.blocks.extend(unwritten.blocks);
        let sealed = unwritten.checkpoints.iter().filter(|checkpoint| checkpoint.sealed).map(|seal| seal.end).max();
        self.checkpoints.extend(unwritten.checkpoints);
        if let Some(end) = sealed {
            // The seal signs all that they did.
            self.checkpoints.retain(|checkpoint| checkpoint.sealed || checkpoint.end > end);
        }
        self.chain.written();
    }
}

impl MemoryRecord {
    pub(super) fn new(scribe: Arc<dyn Scribe>) -> Self {
        let chain = scribe.go_on(RecordEnd::default());
        Self { scribe, kept: Mutex::new(RecordState { chain, blocks: Vec::new(), checkpoints: Vec::new() }) }
    }

    pub(super) fn write(&self, what: RecordedWrite<'_>) -> RecordLines {
        self.scribe.write(what)
    }

    pub(super) fn add(&self, lines: &RecordLines) {
        let mut kept = locked(&self.kept);
        kept.chain.add(lines);
        kept.keep();
    }
}

#[async_trait]
impl Record for MemoryRecord {
    async fn note(&self, note: RecordNote) -> Result<(), StoreError> {
        self.add(&self.write(RecordedWrite::Note(&note)));
        Ok(())
    }

    async fn sign(&self, at: Timestamp) -> Result<(), StoreError> {
        let mut kept = locked(&self.kept);
        kept.chain.sign(at);
        kept.keep();
        Ok(())
    }

    async fn blocks(&self, from: u64, limit: usize) -> Result<Vec<Block>, StoreError> {
        let kept = locked(&self.kept);
        let start = kept.blocks.partition_point(|block| block.first < from);
        Ok(kept.blocks[start..].iter().take(limit).cloned().collect())
    }

    async fn checkpoints(&self, after: u64) -> Result<Vec<Checkpoint>, StoreError> {
        Ok(locked(&self.kept).checkpoints.iter().filter(|checkpoint| checkpoint.end > after).cloned().collect())
    }

    async fn forget(&self, before: u64) -> Result<u64, StoreError> {
        let mut kept = locked(&self.kept);
        let gone = kept.blocks.partition_point(|block| block.first < before);
        kept.blocks.drain(..gone);
        kept.checkpoints.retain(|checkpoint| checkpoint.sealed || checkpoint.end > before);
        Ok(gone as u64)
    }
}
