//! Keeps the record of a node: signs it from time to time, and forgets what is older than it has to keep.

use std::sync::Arc;
use std::time::Duration;

use chancery_core::{Chancery, Checkpoint, Record, StoreError};
use chancery_evidence::record::{EvidenceConfig, Recorder};
use chancery_protocol::Timestamp;

use crate::key_registry::KeyRegistry;

/// How often to look for what is too old.
const TIDY_EVERY: Duration = Duration::from_secs(60 * 60);
const DAY_MICROS: u64 = 24 * 60 * 60 * 1_000_000;

/// Who writes the record, if one is to be kept.
pub(crate) fn recorder(config: &EvidenceConfig, keys: &KeyRegistry, now: Timestamp) -> Option<Arc<Recorder>> {
    config.record.then(|| {
        let recorder = Recorder::new(config);
        recorder.take_keys(&keys.ring(), now);
        Arc::new(recorder)
    })
}

/// Signs and tidies up until the node stops. The last signature is made when the store closes.
pub(crate) async fn keep(chancery: Chancery, config: EvidenceConfig, keys: Arc<KeyRegistry>) {
    let Some(record) = chancery.record() else { return };
    remember(&*record, &keys).await;
    let stopping = chancery.shutdown_token();
    let every = Duration::from_secs(config.checkpoint_seconds.max(1));
    let mut untidied = TIDY_EVERY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = stopping.cancelled() => return,
        }
        let now = chancery.now();
        untidied += every;
        let kept = match record.sign(now).await {
            Ok(()) if untidied >= TIDY_EVERY => {
                untidied = Duration::ZERO;
                tidy(&*record, &config, now).await
            }
            signed => signed,
        };
        if let Err(fault) = kept {
            tracing::error!(error = &fault as &dyn std::error::Error, "cannot sign or trim the record; the node tries again");
        }
        remember(&*record, &keys).await;
    }
}

/// Signs what is recorded before a node stops, and remembers that it did.
pub(crate) async fn conclude(chancery: &Chancery, keys: &KeyRegistry) {
    let Some(record) = chancery.record() else { return };
    // The store signs again when it closes, and reports what goes wrong then.
    if record.sign(chancery.now()).await.is_ok() {
        remember(&*record, keys).await;
    }
}

/// Remembers the newest checkpoint, unless one that was remembered is gone.
async fn remember(record: &dyn Record, keys: &KeyRegistry) {
    match record.checkpoints(0).await {
        Ok(checkpoints) => {
            if let Err(missing) = keys.record_mark.compare(&checkpoints) {
                tracing::error!(missing, "checkpoints that this node signed are missing from the record");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot read the checkpoints of the record"),
    }
}

/// Forgets the entries of sealed segments that are old enough, or too many. They go one segment after the other, so that writers
/// get their turn in between.
pub(crate) async fn tidy(record: &dyn Record, config: &EvidenceConfig, now: Timestamp) -> Result<(), StoreError> {
    let checkpoints = record.checkpoints(0).await?;
    let Some(before) = goes_before(&checkpoints, config, now) else { return Ok(()) };
    let Some(first) = record.blocks(0, 1).await?.first().map(|block| block.first) else { return Ok(()) };
    let seals = checkpoints.iter().filter(|checkpoint| checkpoint.sealed).map(|seal| seal.end);
    for end in seals.filter(|end| *end > first && *end <= before) {
        record.forget(end).await?;
        tracing::info!(end, "deleted a segment of the record");
    }
    Ok(())
}

/// Where the newest segment ends that may go.
fn goes_before(checkpoints: &[Checkpoint], config: &EvidenceConfig, now: Timestamp) -> Option<u64> {
    let end = checkpoints.iter().map(|checkpoint| checkpoint.end).max()?;
    let age = i64::try_from(config.keep_days.saturating_mul(DAY_MICROS)).unwrap_or(i64::MAX);
    let too_old = |seal: &Checkpoint| config.keep_days > 0 && seal.at.micros() < now.micros().saturating_sub(age);
    let too_many = |seal: &Checkpoint| config.keep_entries > 0 && end - seal.end >= config.keep_entries;
    let seals = checkpoints.iter().filter(|checkpoint| checkpoint.sealed);
    seals.filter(|seal| too_old(seal) || too_many(seal)).map(|seal| seal.end).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(number: u64, end: u64, day: u64) -> Checkpoint {
        let at = Timestamp::from_micros((day * DAY_MICROS) as i64);
        Checkpoint { number, end, sealed: number.is_multiple_of(2), at, body: String::new(), signature: Vec::new() }
    }

    #[test]
    fn whole_segments_go_by_age_and_by_number_and_the_open_one_stays() {
        let checkpoints = [seal(1, 5, 1), seal(2, 10, 1), seal(4, 20, 2), seal(6, 30, 3), seal(7, 35, 9)];
        let now = Timestamp::from_micros((10 * DAY_MICROS) as i64);
        let goes = |keep_days, keep_entries| {
            goes_before(&checkpoints, &EvidenceConfig { keep_days, keep_entries, ..EvidenceConfig::default() }, now)
        };
        assert_eq!(goes(0, 0), None, "all is kept");
        assert_eq!(goes(9, 0), None, "exactly as old as it may be");
        assert_eq!(goes(8, 0), Some(10));
        assert_eq!(goes(7, 0), Some(20));
        assert_eq!(goes(1, 0), Some(30), "what is not sealed stays");
        assert_eq!(goes(0, 26), None);
        assert_eq!(goes(0, 25), Some(10));
        assert_eq!(goes(0, 15), Some(20));
        assert_eq!(goes(0, 1), Some(30));
    }
}
